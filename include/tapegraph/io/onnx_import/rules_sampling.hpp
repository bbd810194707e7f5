#pragma once

#include <tapegraph/io/onnx_import/weighted_elements.hpp>

#include <cmath>
#include <numbers>

/// GridSample, the discrete Fourier transform, spectrograms, and window functions.

namespace tapegraph::io::onnx_import {

namespace rules {

/// Maps positions outside an axis of `size` elements inside, as `padding` says; "zeros" keeps them.
inline node kept_inside(const node& x, double size, const std::string& padding, bool aligned) {
    if (padding == "zeros") return x;
    if (padding == "border") return eval(minimum(maximum(x, 0), size - 1));
    const double low = aligned ? 0 : -0.5, span = aligned ? size - 1 : size;
    if (span <= 0) return eval(zeros_like(x));
    const node far = eval(abs(x - low)), turns = eval(floor(far / span)), rest = eval(far - turns * span);
    const node odd = eval(turns - 2 * floor(turns / 2));
    const node inside = eval(where(odd == 0, rest + low, low + span - rest));
    return eval(minimum(maximum(inside, 0), size - 1));
}
inline void grid_sample(call& c) {
    const std::string mode = c.text("mode", "linear"), padding = c.text("padding_mode", "zeros");
    const bool aligned = c.integer("align_corners", 0) != 0, nearest = mode == "nearest",
               cubic = mode == "cubic" || mode == "bicubic";
    if (!nearest && !cubic && mode != "linear" && mode != "bilinear") refuse("mode = '" + mode + "'");
    if (padding != "zeros" && padding != "border" && padding != "reflection")
        refuse("padding_mode = '" + padding + "'");
    const int n = c.rank(0) - 2;
    if (n < 1 || n > 3 || c.rank(1) != n + 2 || (cubic && n != 2)) refuse("of rank " + std::to_string(c.rank(0)));
    const dtype type = c.type(0), inner = type == dtype::f64 ? dtype::f64 : dtype::f32;
    const shape s = c.dims(0), g = c.dims(1);
    const node grid = converted(c.plain(1), c.type(1), inner);
    std::vector<node> places;
    std::vector<double> sizes;
    for (int i = 0; i < n; ++i) {
        const auto size = static_cast<double>(known_extent(s[i + 2], "sampling"));
        const node at = take(grid, n - 1 - i, n + 1); // the last coordinate is that of the first axis
        const node x = aligned ? eval((at + 1) * ((size - 1) / 2)) : eval(((at + 1) * size - 1) / 2);
        places.push_back(x);
        sizes.push_back(size);
    }
    // [batch, elements, channels]; points [batch, count]
    std::vector<int> last{0};
    for (int i = 0; i < n; ++i) last.push_back(i + 2);
    last.push_back(1);
    const node image = reshape(converted(c.arranged(0, last), type, inner),
                               shape_of_items(c, {s[0].value, s.size(2, n + 2).value, s[1].value}));
    const shape points = shape_of_items(c, {g[0].value, g.size(1, n + 1).value});
    std::vector<std::vector<choice>> choices;
    for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        node x = reshape(places[k], points);
        if (!cubic) x = kept_inside(x, sizes[k], padding, aligned);
        std::vector<choice> own;
        if (nearest) {
            const node at = eval(round(x));
            own.push_back({at, eval(ones_like(at))});
        } else {
            const node low = eval(floor(x)), d = eval(x - low);
            if (!cubic) {
                own = neighbours(x);
            } else {
                constexpr double a = -0.75;
                const auto near = [&](const node& t) { return node(eval(((a + 2) * t - (a + 3)) * t * t + 1)); };
                const auto distant = [&](const node& t) {
                    return node(eval(((a * t - 5 * a) * t + 8 * a) * t - 4 * a));
                };
                own.push_back({eval(low - 1), distant(eval(d + 1))});
                own.push_back({low, near(d)});
                own.push_back({eval(low + 1), near(eval(1 - d))});
                own.push_back({eval(low + 2), distant(eval(2 - d))});
            }
        }
        if (cubic)
            for (choice& each : own) each.at = kept_inside(each.at, sizes[k], padding, aligned);
        choices.push_back(own);
    }
    const node total = weighted_elements(image, sizes, choices);
    std::vector<std::int64_t> dims{s[0].value};
    for (int i = 0; i < n; ++i) dims.push_back(g[i + 1].value);
    dims.push_back(s[1].value);
    c.give_laid(0, converted(reshape(total, shape_of_items(c, dims)), inner, type), type, last);
}

/// The transform of length n along an axis of doubles, whose last axis holds one or two parts.
inline node fourier(call& c, node x, int axis, std::int64_t n, bool inverse, bool onesided) {
    const int rank = x.rank();
    const bool mirrored = inverse && onesided;
    const std::int64_t given = known_extent(x.shape()[axis], "transforming"),
                       parts = known_extent(x.shape()[rank - 1], "parts");
    const std::int64_t wanted = mirrored ? n / 2 + 1 : n;
    if (given > wanted) x = part(x, axis, 0, wanted);
    if (given < wanted) {
        pad_op::attributes box = tapegraph::detail::whole_slice();
        shape target = x.shape();
        target.set(axis, wanted);
        x = graph::invoke<pad_op>(box, &target, std::source_location::current(), x);
    }
    const std::int64_t rows = wanted, columns = !inverse && onesided ? n / 2 + 1 : n;
    array cosines(dtype::f64, {rows, columns}), sines = cosines;
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t k = 0; k < columns; ++k) {
            const double turn = 2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
            const bool twice = mirrored && i > 0 && 2 * i != n;
            const double factor = (inverse ? 1.0 / static_cast<double>(n) : 1.0) * (twice ? 2 : 1);
            static_cast<double*>(cosines.data())[i * columns + k] = factor * std::cos(turn);
            static_cast<double*>(sines.data())[i * columns + k] = factor * (inverse ? 1 : -1) * std::sin(turn);
        }
    std::vector<int> order;
    for (int i = 0; i + 1 < rank; ++i) order.push_back(i);
    std::swap(order[static_cast<std::size_t>(axis)], order.back());
    const auto turned = [&](const node& v) { return rank == 2 ? v : c.on.transposed(v, order); };
    const node real = turned(take(x, 0, rank - 1)), co = c.on.constant(cosines), si = c.on.constant(sines);
    node re = matmul(real, co), im = matmul(real, si);
    if (parts == 2) {
        const node imaginary = turned(take(x, 1, rank - 1));
        re = eval(re - matmul(imaginary, si));
        im = eval(im + matmul(imaginary, co));
    }
    return mirrored
               ? with_axis(turned(re), rank - 1)
               : node(tapegraph::concat(
                     std::vector<node>{with_axis(turned(re), rank - 1), with_axis(turned(im), rank - 1)}, rank - 1));
}

inline void dft_rule(call& c) {
    const bool inverse = c.integer("inverse", 0) != 0, onesided = c.integer("onesided", 0) != 0;
    const int rank = c.rank(0);
    std::int64_t axis_given = c.opset() < 20 ? c.integer("axis", 1) : -2;
    if (c.opset() >= 20 && c.has(2)) axis_given = c.integers(2, "axes").at(0);
    const int axis = c.axis(axis_given, rank);
    const dtype type = c.type(0);
    if (type != dtype::f32 && type != dtype::f64) refuse(std::string("of ") + name_of(type));
    if (axis == rank - 1) refuse("over the axis of real and imaginary parts");
    node x = converted(c.plain(0), type, dtype::f64);
    const std::int64_t given = known_extent(x.shape()[axis], "transforming"),
                       parts = known_extent(x.shape()[rank - 1], "parts");
    if (parts != 1 && parts != 2) refuse("of " + std::to_string(parts) + " parts");
    // On the way back to real numbers, the other half of a one-sided spectrum is its mirror image.
    const bool mirrored = inverse && onesided;
    const std::int64_t n = c.has(1) ? c.integers(1, "lengths").at(0) : mirrored ? 2 * (given - 1) : given;
    if (n < 1) refuse("of length " + std::to_string(n));
    c.give(0, converted(fourier(c, x, axis, n, inverse, onesided), dtype::f64, type), type);
}

inline void stft_rule(call& c) {
    const bool onesided = c.integer("onesided", 1) != 0;
    const dtype type = c.type(0);
    if ((type != dtype::f32 && type != dtype::f64) || c.rank(0) < 2 || c.rank(0) > 3)
        refuse(std::string("of ") + name_of(type) + " of rank " + std::to_string(c.rank(0)));
    node x = converted(c.plain(0), type, dtype::f64);
    if (x.rank() == 2) x = with_axis(x, 2);
    const std::int64_t size = known_extent(x.shape()[1], "a signal"), parts = known_extent(x.shape()[2], "parts"),
                       step = c.integers(1, "a frame_step").at(0);
    const std::int64_t length = c.has(3)   ? c.integers(3, "a frame_length").at(0)
                                : c.has(2) ? known_extent(c.dims(2)[0], "a window")
                                           : size;
    if (step < 1 || length < 1 || length > size || (parts != 1 && parts != 2))
        refuse("frames of " + std::to_string(length) + " in steps of " + std::to_string(step) + " from a signal of " +
               std::to_string(size));
    if (onesided && parts == 2) refuse("onesided, of a complex signal");
    const std::int64_t frames = (size - length) / step + 1;
    std::vector<std::int64_t> places;
    for (std::int64_t f = 0; f < frames; ++f)
        for (std::int64_t k = 0; k < length; ++k) places.push_back(f * step + k);
    node framed = reshape(gather(x, c.on.constant(array::integers(places)), 1),
                          shape_of_items(c, {x.shape()[0].value, frames, length, parts}));
    if (c.has(2)) {
        if (c.rank(2) != 1 || c.dims(2)[0].value != length) refuse("a window of another length than frames");
        framed = eval(framed * with_axis(converted(c.plain(2), c.type(2), dtype::f64), 1));
    }
    c.give(0, converted(fourier(c, framed, 2, length, false, onesided), dtype::f64, type), type);
}

/// Triangles on the mel scale: 2595 log10(1 + f / 700) of a frequency f.
inline void mel_weight_matrix(call& c) {
    const auto type = element_type(static_cast<int>(c.integer("output_datatype", 1)));
    const std::int64_t bands = c.integers(0, "a number of bands").at(0), length = c.integers(1, "a length").at(0),
                       rate = c.integers(2, "a rate").at(0);
    const double lowest = c.scalar(3, "a frequency"), highest = c.scalar(4, "a frequency");
    if (!type || bands < 1 || length < 1 || rate < 1 || bands > 100000 || length > 100000000 / bands)
        refuse("bands, lengths or rates that are not positive, or too large");
    const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
    const std::int64_t bins = length / 2 + 1;
    const double step = (mel(highest) - mel(lowest)) / static_cast<double>(bands + 2);
    std::vector<std::int64_t> edges;
    for (std::int64_t k = 0; k < bands + 2; ++k) {
        const double f = 700 * (std::pow(10, (mel(lowest) + step * static_cast<double>(k)) / 2595) - 1);
        edges.push_back(
            static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * f / static_cast<double>(rate))));
        if (!(f >= 0) || edges.back() < 0 || edges.back() >= bins) refuse("bands beyond the spectrum");
    }
    array weights(dtype::f64, {bins, bands});
    for (std::int64_t band = 0; band < bands; ++band) {
        const auto k = static_cast<std::size_t>(band);
        const std::int64_t low = edges[k], peak = edges[k + 1], high = edges[k + 2];
        const auto at = [&](std::int64_t bin) -> double& {
            return static_cast<double*>(weights.data())[bin * bands + band];
        };
        for (std::int64_t bin = low; bin <= peak; ++bin)
            at(bin) = low == peak ? 1 : static_cast<double>(bin - low) / static_cast<double>(peak - low);
        for (std::int64_t bin = peak; bin < high; ++bin)
            at(bin) = static_cast<double>(high - bin) / static_cast<double>(high - peak);
    }
    c.give(0, converted(c.on.constant(weights), dtype::f64, *type), *type);
}

/// a0 - a1 cos(2 pi k / n) + a2 cos(4 pi k / n)
inline void window_function(call& c, double a0, double a1, double a2) {
    const bool periodic = c.integer("periodic", 1) != 0;
    const auto type = element_type(static_cast<int>(c.integer("output_datatype", 1)));
    const std::int64_t size = c.integers(0, "sizes").at(0);
    if (!type || size < 0) refuse("output_datatype");
    array a(dtype::f64, {size});
    const auto n = static_cast<double>(periodic ? size : size - 1);
    for (std::int64_t k = 0; k < size; ++k) {
        const double turn = n > 0 ? 2 * std::numbers::pi * static_cast<double>(k) / n : 0;
        static_cast<double*>(a.data())[k] = a0 - a1 * std::cos(turn) + a2 * std::cos(2 * turn);
    }
    c.give(0, converted(c.on.constant(a), dtype::f64, *type), *type);
}

inline std::span<const operator_rule> samplings() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"GridSample", &grid_sample},
        {"DFT", &dft_rule},
        {"STFT", &stft_rule},
        {"MelWeightMatrix", &mel_weight_matrix},
        {"HannWindow", [](call& c) { window_function(c, 0.5, 0.5, 0); }},
        {"HammingWindow", [](call& c) { window_function(c, 25.0 / 46, 21.0 / 46, 0); }},
        {"BlackmanWindow", [](call& c) { window_function(c, 0.42, 0.5, 0.08); }},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
