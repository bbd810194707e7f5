#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

#include <cmath>

/// Resize and Upsample. Axis by axis, an element of the result is a sum of a few elements of the
/// operand, whose positions and weights are computed when the model is made
/// (onnx.ai/onnx/operators/onnx__Resize.html).

namespace tapegraph::io::onnx_import {

namespace rules {

struct resizing {
    std::string mode, transform, rounding;
    double cubic = -0.75, extrapolation = 0;
    bool antialias = false, excludes = false;
};

/// For each position of the result, positions of the operand and their weights; empty where the
/// extrapolation value is used.
using taps = std::vector<std::vector<std::pair<std::int64_t, double>>>;

inline double source_place(const resizing& r, double out, double scale, std::int64_t from, std::int64_t to,
                           double begin, double end) {
    const auto n = static_cast<double>(from), m = static_cast<double>(to);
    if (r.transform == "half_pixel") return (out + 0.5) / scale - 0.5;
    if (r.transform == "asymmetric") return out / scale;
    if (r.transform == "pytorch_half_pixel") return m > 1 ? (out + 0.5) / scale - 0.5 : 0;
    if (r.transform == "align_corners") { // by the scale, as in ONNX's suite, not by the rounded extent
        const double width = scale * n;
        return width == 1 ? 0 : out * (n - 1) / (width - 1);
    }
    if (r.transform == "half_pixel_symmetric") {
        const double adjustment = m / (scale * n);
        return n / 2 * (1 - adjustment) + (out + 0.5) / scale - 0.5;
    }
    if (r.transform == "tf_crop_and_resize")
        return m > 1 ? begin * (n - 1) + out * (end - begin) * (n - 1) / (m - 1) : 0.5 * (begin + end) * (n - 1);
    refuse("coordinate_transformation_mode = '" + r.transform + "'");
}
inline double weight_at(const resizing& r, double distance) {
    const double d = std::fabs(distance), a = r.cubic;
    if (r.mode == "linear") return d < 1 ? 1 - d : 0;
    if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}
inline std::int64_t nearest_place(const resizing& r, double x) {
    const double low = std::floor(x);
    if (r.rounding == "round_prefer_floor")
        return static_cast<std::int64_t>(x - low == 0.5 ? low : std::floor(x + 0.5));
    if (r.rounding == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(x + 0.5));
    if (r.rounding == "floor") return static_cast<std::int64_t>(low);
    if (r.rounding == "ceil") return static_cast<std::int64_t>(std::ceil(x));
    refuse("nearest_mode = '" + r.rounding + "'");
}
inline taps taps_of_axis(const resizing& r, double scale, std::int64_t from, std::int64_t to, double begin,
                         double end) {
    taps all(static_cast<std::size_t>(to));
    for (std::int64_t o = 0; o < to; ++o) {
        const double x = source_place(r, static_cast<double>(o), scale, from, to, begin, end);
        auto& row = all[static_cast<std::size_t>(o)];
        if (r.transform == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(from - 1))) continue;
        if (r.mode == "nearest") {
            row.push_back({std::clamp<std::int64_t>(nearest_place(r, x), 0, from - 1), 1});
            continue;
        }
        const double stretch = r.antialias && scale < 1 ? scale : 1, reach = (r.mode == "linear" ? 1 : 2) / stretch;
        double total = 0;
        for (auto k = static_cast<std::int64_t>(std::floor(x - reach));
             k <= static_cast<std::int64_t>(std::ceil(x + reach)); ++k) {
            const double w = weight_at(r, (static_cast<double>(k) - x) * stretch);
            const bool outside = k < 0 || k >= from;
            if (w == 0 || (outside && r.excludes)) continue;
            total += w;
            row.push_back({std::clamp<std::int64_t>(k, 0, from - 1), w});
        }
        for (auto& each : row) each.second /= total;
    }
    return all;
}
inline node resampled(call& c, const node& x, int axis, const taps& all, double extrapolation) {
    std::size_t most = 1;
    for (const auto& row : all) most = std::max(most, row.size());
    const auto count = static_cast<std::int64_t>(all.size());
    shape along;
    for (int k = axis; k < x.rank(); ++k) along.push_back(k == axis ? count : 1);
    node sum;
    bool beyond = false;
    array inside(dtype::boolean, {count});
    for (std::size_t o = 0; o < all.size(); ++o) {
        static_cast<bool*>(inside.data())[o] = !all[o].empty();
        beyond = beyond || all[o].empty();
    }
    for (std::size_t t = 0; t < most; ++t) {
        std::vector<std::int64_t> places;
        array weights(dtype::f64, {count});
        bool ones = most == 1;
        for (std::size_t o = 0; o < all.size(); ++o) {
            const bool there = t < all[o].size();
            places.push_back(there ? all[o][t].first : 0);
            static_cast<double*>(weights.data())[o] = there ? all[o][t].second : 0;
        }
        const node chosen = gather(x, c.on.constant(array::integers(places)), axis);
        if (ones) {
            sum = chosen;
            continue;
        }
        const node factor = reshape(converted(c.on.constant(weights), dtype::f64, x.type()), along);
        sum = t == 0 ? eval(chosen * factor) : eval(sum + chosen * factor);
    }
    if (!beyond) return sum;
    return eval(where(reshape(c.on.constant(inside), along), sum, extrapolation));
}

inline void resize(call& c, const resizing& r, const std::vector<std::int64_t>& which, std::vector<double> scales,
                   std::vector<std::int64_t> sizes, const std::vector<double>& region, const std::string& policy) {
    std::vector<int> axes;
    const node given = as_it_lies(c, 0, axes);
    const bool computes = r.mode != "nearest" || r.transform == "tf_crop_and_resize";
    const dtype type = c.type(0);
    if (type == dtype::boolean && computes) refuse("of bool");
    if (r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic") refuse("mode = '" + r.mode + "'");
    const dtype inner = !computes ? type : type == dtype::f64 || is_integer(type) ? dtype::f64 : dtype::f32;
    node x = computes ? converted(given, type, inner) : given;
    const std::size_t n = which.size();
    if ((!scales.empty() && scales.size() != n) || (!sizes.empty() && sizes.size() != n))
        refuse("of other than its axes' number of scales or sizes");
    // Axes that stay as they are need no numbers: a batch may have any extent.
    std::vector<std::int64_t> from;
    std::vector<bool> stays;
    for (std::size_t i = 0; i < n; ++i) {
        const extent e = c.dims(0)[c.axis(which[i], c.rank(0))];
        const bool same = sizes.empty() ? scales[i] == 1 : sizes[i] == e.value;
        stays.push_back(!e.known() && same && policy == "stretch" && r.transform != "tf_crop_and_resize");
        from.push_back(stays[i] ? 1 : known_extent(e, "resizing"));
        if (!stays[i] && !sizes.empty() && is_symbolic(sizes[i]))
            refuse_symbols("sizes that depend on the extents of inputs");
    }
    if (!sizes.empty() && policy != "stretch") {
        double common = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double s = static_cast<double>(sizes[i]) / static_cast<double>(from[i]);
            common = policy == "not_larger" ? std::min(common, s) : std::max(common, s);
        }
        scales.assign(n, common);
        for (std::size_t i = 0; i < n; ++i)
            sizes[i] = static_cast<std::int64_t>(std::floor(common * static_cast<double>(from[i]) + 0.5));
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (stays[i]) continue;
        const auto m = static_cast<double>(from[i]);
        const double begin = region.empty() ? 0 : region[i], end = region.empty() ? 1 : region[i + n];
        const double span = r.transform == "tf_crop_and_resize" ? end - begin : 1;
        const std::int64_t to = !sizes.empty() ? sizes[i] : static_cast<std::int64_t>(std::floor(m * span * scales[i]));
        const double scale = !scales.empty() ? scales[i] : static_cast<double>(to) / (m * 1.0);
        if (to < 1 || from[i] < 1) refuse("to an extent of " + std::to_string(to));
        if (to == from[i] && scale == 1 && r.transform != "tf_crop_and_resize") continue;
        const int place = place_of(axes, c.axis(which[i], c.rank(0)));
        x = resampled(c, x, place, taps_of_axis(r, scale, from[i], to, begin, end), r.extrapolation);
    }
    if (computes && is_integer(type)) x = eval(round(x));
    c.give_laid(0, computes ? converted(x, inner, type) : x, type, axes);
}
inline std::vector<std::int64_t> every_axis(call& c) {
    std::vector<std::int64_t> which;
    for (int i = 0; i < c.rank(0); ++i) which.push_back(i);
    return which;
}
inline std::vector<double> numbers_of(call& c, int i, const char* what) {
    std::vector<double> items;
    if (!c.has(i)) return items;
    if (c.known(i) == nullptr) refuse_symbols(std::string(what) + " that are computed from values");
    if (c.known(i)->symbolic()) refuse_symbols(std::string(what) + " that depend on the extents of inputs");
    for (std::int64_t k = 0; k < c.known(i)->size(); ++k) items.push_back(c.known(i)->number(k));
    return items;
}
inline void resize_rule(call& c) {
    resizing r;
    r.mode = c.text("mode", "nearest");
    r.transform = c.opset() < 11 ? "asymmetric" : c.text("coordinate_transformation_mode", "half_pixel");
    r.rounding = c.opset() < 11 ? "floor" : c.text("nearest_mode", "round_prefer_floor");
    r.cubic = c.number("cubic_coeff_a", -0.75);
    r.extrapolation = c.number("extrapolation_value", 0);
    r.antialias = c.integer("antialias", 0) != 0;
    r.excludes = c.integer("exclude_outside", 0) != 0;
    const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
        refuse("keep_aspect_ratio_policy = '" + policy + "'");
    const std::vector<std::int64_t> which = c.integers("axes", every_axis(c));
    const bool old = c.opset() < 11;
    const std::vector<double> scales = numbers_of(c, old ? 1 : 2, "scales");
    const std::vector<double> region =
        r.transform == "tf_crop_and_resize" ? numbers_of(c, 1, "regions") : std::vector<double>{};
    if (!region.empty() && region.size() != 2 * which.size()) refuse("a region of other than two numbers an axis");
    std::vector<std::int64_t> sizes;
    if (c.has(3)) sizes = c.extents(3, "sizes");
    if (scales.empty() == sizes.empty()) refuse("with both scales and sizes, or neither");
    resize(c, r, which, scales, sizes, region, policy);
}
inline void upsample_rule(call& c) {
    resizing r;
    r.mode = c.text("mode", "nearest");
    r.transform = "asymmetric", r.rounding = "floor";
    std::vector<double> scales;
    if (c.inputs() > 1)
        scales = numbers_of(c, 1, "scales");
    else
        for (const float s : c.numbers("scales")) scales.push_back(static_cast<double>(s));
    resize(c, r, every_axis(c), scales, {}, {}, "stretch");
}

inline std::span<const operator_rule> resizings() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Resize", &resize_rule},
        {"Upsample", &upsample_rule},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
