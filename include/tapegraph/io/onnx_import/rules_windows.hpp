#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>
#include <tapegraph/io/onnx_import/places_of_maxima.hpp>

/// Convolutions and pooling. Images have channels last here; values record their layout, so nothing
/// is transposed between two of these operators.

namespace tapegraph::io::onnx_import {

namespace rules {

/// Convolves x [batch, spatial..., channels] with filters [spatial..., in, out]; over three axes it
/// sums over the first.
inline node convolved(call& c, const node& x, const node& filters, const window& w, std::int64_t groups) {
    const auto n = static_cast<int>(w.taps.size());
    const auto here = std::source_location::current();
    if (n <= 2) return graph::invoke<convolution_op>(attributes_of(w, groups), nullptr, here, x, filters);
    std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank())), after = before;
    before[1] = w.before[0], after[1] = w.after[0];
    const node wide = padded(c, x, before, after, "constant", 0);
    const extent depth = outputs_of(w, 0, x.shape()[1]);
    const window flat = without_first(w);
    node sum;
    for (std::int64_t k = 0; k < w.taps[0]; ++k) {
        const node slice = stepped(wide, 1, k * w.dilations[0], w.strides[0], depth);
        const shape s = slice.shape();
        const node images = reshape(slice, shape_of_items(c, {s.size(0, 2).value, s[2].value, s[3].value, s[4].value}));
        const node y = convolved(c, images, take(filters, k, 0), flat, groups);
        sum = k == 0 ? y : eval(sum + y);
    }
    const shape y = sum.shape();
    return reshape(sum, shape_of_items(c, {x.shape()[0].value, depth.value, y[1].value, y[2].value, y[3].value}));
}
inline std::vector<int> filter_axes(int rank) {
    std::vector<int> order;
    for (int i = 2; i < rank; ++i) order.push_back(i);
    order.push_back(1), order.push_back(0);
    return order;
}
inline std::vector<std::int64_t> taps_of(call& c, int i) {
    std::vector<std::int64_t> taps;
    const shape s = c.dims(i);
    for (int k = 2; k < s.rank(); ++k) taps.push_back(known_extent(s[k], "a kernel"));
    return taps;
}
inline void conv_rule(call& c) {
    const int rank = c.rank(0);
    if (rank < 3 || rank > 5) refuse("over " + std::to_string(rank - 2) + " axes");
    if (!is_floating(c.type(0)) || c.type(1) != c.type(0)) refuse(std::string("of ") + name_of(c.type(0)));
    window w = window_of(c, rank - 2, taps_of(c, 1));
    const std::int64_t groups = c.integer("group", 1);
    node x = c.arranged(0, channels_last(rank));
    resolve(w, x.shape());
    node y = convolved(c, x, c.arranged(1, filter_axes(rank)), w, groups);
    if (c.has(2)) y = eval(y + c.plain(2));
    c.give_laid(0, y, c.type(0), channels_last(rank));
}

/// The adjoint of a convolution without padding: x [batch, spatial..., in], filters [spatial...,
/// out, in].
inline node spread(call& c, const node& x, const node& filters, const window& w, std::int64_t groups) {
    const auto n = static_cast<int>(w.taps.size());
    const auto here = std::source_location::current();
    const auto length = [&](int i) {
        const auto k = static_cast<std::size_t>(i);
        return (x.shape()[i + 1] - 1) * w.strides[k] + ((w.taps[k] - 1) * w.dilations[k] + 1);
    };
    const extent out = filters.shape()[n] * groups;
    if (n <= 2) {
        shape target;
        target.attach(&c.on.trace().extents);
        target.push_back(x.shape()[0]);
        for (int i = 0; i < n; ++i) target.push_back(length(i));
        target.push_back(out);
        return graph::invoke<convolution_input_gradient_op>(attributes_of(w, groups), &target, here, x, filters);
    }
    const shape s = x.shape();
    const node images = reshape(x, shape_of_items(c, {s.size(0, 2).value, s[2].value, s[3].value, s[4].value}));
    node sum;
    for (std::int64_t k = 0; k < w.taps[0]; ++k) {
        const node y = spread(c, images, take(filters, k, 0), without_first(w), groups);
        const shape flat = y.shape();
        const node volumes =
            reshape(y, shape_of_items(c, {s[0].value, s[1].value, flat[1].value, flat[2].value, flat[3].value}));
        pad_op::attributes box = tapegraph::detail::whole_slice();
        box.begin[1] = k * w.dilations[0];
        box.step[1] = w.strides[0];
        shape target = volumes.shape();
        target.set(1, length(0));
        const node there = graph::invoke<pad_op>(box, &target, here, volumes);
        sum = k == 0 ? there : eval(sum + there);
    }
    return sum;
}
inline void conv_transpose_rule(call& c) {
    const int rank = c.rank(0), n = rank - 2;
    if (rank < 3 || rank > 5) refuse("over " + std::to_string(n) + " axes");
    if (!is_floating(c.type(0)) || c.type(1) != c.type(0)) refuse(std::string("of ") + name_of(c.type(0)));
    window w = window_of(c, n, taps_of(c, 1));
    const std::int64_t groups = c.integer("group", 1);
    std::vector<std::int64_t> more =
        c.integers("output_padding", std::vector<std::int64_t>(static_cast<std::size_t>(n), 0));
    std::vector<std::int64_t> wanted = c.integers("output_shape");
    if (wanted.size() == static_cast<std::size_t>(rank)) wanted.erase(wanted.begin(), wanted.begin() + 2);
    if (more.size() != static_cast<std::size_t>(n) || (!wanted.empty() && wanted.size() != more.size()))
        refuse("output_padding or output_shape of other than " + std::to_string(n) + " axes");
    const node x = c.arranged(0, channels_last(rank));
    window bare = w;
    bare.before.assign(more.size(), 0), bare.after.assign(more.size(), 0);
    node y = spread(c, x, c.arranged(1, filter_axes(rank)), bare, groups);
    for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        const extent whole = y.shape()[i + 1];
        std::int64_t front = w.before[k];
        extent length = whole + (more[k] - w.before[k] - w.after[k]);
        if (!wanted.empty() || w.auto_pad.starts_with("SAME")) {
            length = wanted.empty() ? x.shape()[i + 1] * w.strides[k] : extent(wanted[k]);
            const std::int64_t total = known_extent(whole + more[k] - length, "an output of given length");
            front = total < 0 ? 0 : w.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
        }
        // Cuts off the front, and appends zeros where the output is longer than the result.
        const extent left = whole - front, missing = length - left;
        if (missing.known() && missing.value > 0) {
            std::vector<std::int64_t> none(static_cast<std::size_t>(rank)), after = none;
            after[k + 1] = missing.value;
            y = padded(c, y, none, after, "constant", 0);
        } else if (!missing.known()) {
            refuse_symbols("an output of given length");
        }
        y = part(y, i + 1, front, length);
    }
    if (c.has(2)) y = eval(y + c.plain(2));
    c.give_laid(0, y, c.type(0), channels_last(rank));
}

// Pooling
enum class pooling { largest, mean, power };
struct pool {
    window w;
    pooling kind;
    bool counts_padding = false;
    double p = 2;
};
/// Joins slices axis by axis, which works for every window.
inline node pooled_by_slices(call& c, node x, const pool& of) {
    const window& w = of.w;
    const bool largest = of.kind == pooling::largest;
    if (of.kind == pooling::power) x = eval(pow(abs(x), of.p));
    const double fill = !largest                ? 0
                        : is_floating(x.type()) ? -std::numeric_limits<double>::infinity()
                        : x.type() == dtype::u8 ? 0
                                                : -2147483648.0;
    for (std::size_t i = 0; i < w.taps.size(); ++i) {
        const int axis = static_cast<int>(i) + 1;
        const std::int64_t span = (w.taps[i] - 1) * w.dilations[i] + 1, stride = w.strides[i];
        const extent n = x.shape()[axis];
        extent out = outputs_of(w, i, n);
        std::int64_t padding_after = w.after[i];
        if (w.ceils) {
            const std::int64_t size = known_extent(n, "ceil_mode");
            std::int64_t count = (size + w.before[i] + w.after[i] - span + stride - 1) / stride + 1;
            if ((count - 1) * stride >= size + w.before[i]) --count; // no window begins in the padding after the end
            padding_after = std::max(padding_after, (count - 1) * stride + span - size - w.before[i]);
            out = count;
        }
        std::vector<std::int64_t> front(static_cast<std::size_t>(x.rank())), after = front;
        front[i + 1] = w.before[i], after[i + 1] = padding_after;
        const node wide = padded(c, x, front, after, "constant", fill);
        node joined;
        for (std::int64_t k = 0; k < w.taps[i]; ++k) {
            const node slice = stepped(wide, axis, k * w.dilations[i], stride, out);
            joined = k == 0 ? slice : largest ? eval(maximum(joined, slice)) : eval(joined + slice);
        }
        x = joined;
        if (of.kind != pooling::mean) continue;
        const std::int64_t size = known_extent(n, "means"), count = out.value;
        array divisors(dtype::f64, {count});
        const std::int64_t low = of.counts_padding ? -w.before[i] : 0,
                           high = of.counts_padding ? size + w.after[i] : size;
        for (std::int64_t o = 0; o < count; ++o) {
            std::int64_t inside = 0;
            for (std::int64_t k = 0; k < w.taps[i]; ++k) {
                const std::int64_t at = o * stride - w.before[i] + k * w.dilations[i];
                inside += at >= low && at < high;
            }
            static_cast<double*>(divisors.data())[o] = static_cast<double>(inside);
        }
        shape along;
        for (int k = axis; k < x.rank(); ++k) along.push_back(k == axis ? count : 1);
        x = eval(x / reshape(converted(c.on.constant(divisors), dtype::f64, x.type()), along));
    }
    return of.kind == pooling::power ? eval(pow(x, 1 / of.p)) : x;
}
inline void pool_rule(call& c, pooling kind) {
    const int rank = c.rank(0);
    if (rank < 3 || rank > 5) refuse("over " + std::to_string(rank - 2) + " axes");
    const dtype type = c.type(0);
    if (!is_floating(type) && kind != pooling::largest) refuse(std::string("of ") + name_of(type));
    pool of{window_of(c, rank - 2, {}), kind};
    of.w.ceils = c.integer("ceil_mode", 0) != 0;
    const bool columns_first = c.integer("storage_order", 0) != 0; // of places alone
    if (kind == pooling::mean) of.counts_padding = c.integer("count_include_pad", 0) != 0;
    if (kind == pooling::power) {
        const attribute* const p = c.find("p");
        if (p != nullptr) of.p = p->type == attribute::number ? static_cast<double>(p->f) : static_cast<double>(p->i);
    }
    const node x = c.arranged(0, channels_last(rank));
    resolve(of.w, x.shape());
    if (c.wants(1)) give_places_of_maxima(c, of.w, of.w.ceils, columns_first);
    bool native = rank < 5 && is_floating(type) && kind != pooling::power;
    for (std::size_t i = 0; i < of.w.taps.size(); ++i) {
        const std::int64_t span = (of.w.taps[i] - 1) * of.w.dilations[i] + 1;
        native = native && of.w.before[i] < span && of.w.after[i] < span && of.w.before[i] >= 0 && of.w.after[i] >= 0;
        if (of.w.ceils) {
            const extent n = x.shape()[static_cast<int>(i) + 1];
            native = native && n.known() && (n.value + of.w.before[i] + of.w.after[i] - span) % of.w.strides[i] == 0;
        }
    }
    if (!native) {
        const node y = in_float(x, [&](const node& v) { return pooled_by_slices(c, v, of); });
        return c.give_laid(0, y, type, channels_last(rank));
    }
    window_attributes a = attributes_of(of.w, 1);
    a.count_padding = of.counts_padding;
    const auto here = std::source_location::current();
    c.give_laid(0,
                kind == pooling::largest ? graph::invoke<max_pool_op>(a, nullptr, here, x)
                                         : graph::invoke<average_pool_op>(a, nullptr, here, x),
                type, channels_last(rank));
}
inline void global_pool(call& c, pooling kind) {
    std::vector<int> axes, over;
    const node x = as_it_lies(c, 0, axes);
    if (!is_floating(c.type(0))) refuse(std::string("of ") + name_of(c.type(0)));
    for (std::size_t k = 0; k < axes.size(); ++k)
        if (axes[k] >= 2) over.push_back(static_cast<int>(k));
    const double p = kind == pooling::power ? static_cast<double>(c.integer("p", 2)) : 0;
    const node y = in_float(x, [&](const node& v) -> node {
        if (kind == pooling::largest) return max(v, axes_of(over), {.keepdims = true});
        if (kind == pooling::mean) return mean(v, axes_of(over), {.keepdims = true});
        return eval(pow(sum(pow(abs(v), p), axes_of(over), {.keepdims = true}), 1 / p));
    });
    c.give_laid(0, y, c.type(0), axes);
}

inline std::span<const operator_rule> windows() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Conv", &conv_rule},
        {"ConvTranspose", &conv_transpose_rule},
        {"MaxPool", [](call& c) { pool_rule(c, pooling::largest); }},
        {"AveragePool", [](call& c) { pool_rule(c, pooling::mean); }},
        {"LpPool", [](call& c) { pool_rule(c, pooling::power); }},
        {"GlobalMaxPool", [](call& c) { global_pool(c, pooling::largest); }},
        {"GlobalAveragePool", [](call& c) { global_pool(c, pooling::mean); }},
        {"GlobalLpPool", [](call& c) { global_pool(c, pooling::power); }},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
