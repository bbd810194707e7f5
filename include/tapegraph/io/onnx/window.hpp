#pragma once

#include <tapegraph/io/onnx/call.hpp>
#include <tapegraph/ops/pooling/lp_pooling.hpp>

/// Convolutions and pooling, with channels first as in ONNX.

namespace tapegraph::onnx::detail {

/// Kernel, strides and padding of a node whose spatial extents are `in` and `out`. Returns false if
/// the padding amounts are unknown.
template <class G>
bool window_settings(G& g, attributes& settings, const window_attributes& a, int from, int node,
                     const std::vector<std::int64_t>& taps, bool dilations) {
    const int spatial = g.rank(node) - 2;
    std::vector<std::int64_t> strides, spread, before, after;
    bool amounts = true;
    for (int i = 0; i < spatial; ++i) {
        const int axis = i + 2 - spatial;
        const std::int64_t in = g.extent_of(from, i + 1), out = g.extent_of(node, i + 1);
        const std::int64_t effective = (taps[static_cast<std::size_t>(i)] - 1) * a.dilation[axis] + 1;
        strides.push_back(a.stride[axis]);
        spread.push_back(a.dilation[axis]);
        if (a.is(padding_mode::same)) {
            // For a symbolic extent the amount is known if it is the same for all values.
            std::int64_t total = a.stride[axis] == 1 ? effective - 1 : 0;
            if (!is_symbolic(in))
                total = std::max<std::int64_t>((out - 1) * a.stride[axis] + effective - in, 0);
            else if (a.stride[axis] != 1)
                amounts = false;
            before.push_back(total / 2);
            after.push_back(total - total / 2);
        } else if (a.is(padding_mode::causal)) {
            before.push_back(effective - 1);
            after.push_back(0);
        } else {
            before.push_back(a.before[axis]);
            after.push_back(a.after[axis]);
        }
    }
    settings.set("kernel_shape", taps).set("strides", strides);
    if (dilations) settings.set("dilations", spread);
    if (!dilations && *std::max_element(spread.begin(), spread.end()) > 1) return false;
    if (!amounts) {
        settings.set("auto_pad", "SAME_UPPER");
    } else {
        before.insert(before.end(), after.begin(), after.end());
        settings.set("pads", before);
    }
    return true;
}

/// The order [filters, channels / groups, taps...] for [taps..., channels / groups, filters].
inline order kernel_order(int rank) {
    order axes{rank - 1, rank - 2};
    for (int i = 0; i + 2 < rank; ++i) axes.push_back(i);
    return axes;
}

template <class G>
void write_convolution(G& g, int node, int convolution, int bias) {
    const auto a = g.template attributes_of<convolution_op>(convolution);
    const int from = g.t.argument(convolution, 0), kernel = g.t.argument(convolution, 1), rank = g.rank(node);
    auto taps = g.dims(kernel);
    taps.resize(static_cast<std::size_t>(rank - 2));
    attributes settings;
    if (!window_settings(g, settings, a, from, convolution, taps, true)) return g.refuse(node);
    if (a.groups != 1) settings.set("group", a.groups);
    const order axes = G::channels_first(rank);
    std::vector<std::string> operands{g.in_order(from, axes), g.in_order(kernel, kernel_order(rank))};
    if (bias >= 0) operands.push_back(g.plain(bias));
    g.define(node, g.emit("Conv", operands, settings), axes);
}

/// conv_transpose: the adjoint of a convolution.
template <class G>
void write_transposed_convolution(G& g, int node) {
    const auto a = g.template attributes_of<convolution_op>(node);
    const int from = g.t.argument(node, 0), kernel = g.t.argument(node, 1), rank = g.rank(node), spatial = rank - 2;
    auto taps = g.dims(kernel);
    taps.resize(static_cast<std::size_t>(spatial));
    std::vector<std::int64_t> strides, spread, pads(static_cast<std::size_t>(2 * spatial)),
        more(static_cast<std::size_t>(spatial));
    auto& e = g.t.extents;
    for (int i = 0; i < spatial; ++i) {
        const int axis = i + 2 - spatial;
        const auto p = static_cast<std::size_t>(i);
        const std::int64_t effective = (taps[p] - 1) * a.dilation[axis] + 1;
        // The excess of the full result over the requested one.
        const std::int64_t small = e.multiply(e.add(g.extent_of(from, i + 1), 1, -1), a.stride[axis]);
        const std::int64_t surplus = e.add(e.add(small, effective), g.extent_of(node, i + 1), -1);
        if (is_symbolic(surplus)) return g.refuse(node, "whose padding depends on a symbol");
        const std::int64_t before = a.is(padding_mode::same) ? (surplus > 0 ? surplus / 2 : 0) : a.before[axis];
        strides.push_back(a.stride[axis]);
        spread.push_back(a.dilation[axis]);
        pads[p] = before;
        pads[p + static_cast<std::size_t>(spatial)] = std::max<std::int64_t>(surplus - before, 0);
        more[p] = std::max<std::int64_t>(before - surplus, 0);
    }
    attributes settings;
    settings.set("kernel_shape", taps)
        .set("strides", strides)
        .set("dilations", spread)
        .set("pads", pads)
        .set("output_padding", more);
    if (a.groups != 1) settings.set("group", a.groups);
    const order axes = G::channels_first(rank);
    g.define(node, g.emit("ConvTranspose", {g.in_order(from, axes), g.in_order(kernel, kernel_order(rank))}, settings),
             axes);
}

inline std::vector<std::int64_t> taps_of(const window_attributes& a, int spatial) {
    return spatial == 1 ? std::vector<std::int64_t>{a.window[1]} : std::vector<std::int64_t>{a.window[0], a.window[1]};
}

/// A dilated mean, which opset 17 does not have: a convolution of each channel by equal weights,
/// divided by the fraction of the window inside the image unless padding counts.
template <class G>
void write_dilated_mean(G& g, int node, const window_attributes& a, attributes settings,
                        const std::vector<std::int64_t>& taps) {
    const int from = g.t.argument(node, 0), rank = g.rank(node);
    const std::int64_t channels = g.extent_of(from, rank - 1);
    const dtype type = g.at(node).type;
    if (is_symbolic(channels) || type != dtype::f32)
        return g.refuse(node, "dilated, of symbolic channels or not of f32");
    std::int64_t window = 1;
    for (const std::int64_t t : taps) window *= t;
    const auto kernel = [&](std::int64_t filters) {
        const std::vector<float> each(static_cast<std::size_t>(filters * window), 1.0f / static_cast<float>(window));
        std::vector<std::int64_t> dims{filters, 1};
        dims.insert(dims.end(), taps.begin(), taps.end());
        return g.constants(std::string(reinterpret_cast<const char*>(each.data()), each.size() * sizeof(float)), type,
                           dims);
    };
    const order axes = G::channels_first(rank);
    attributes grouped = settings;
    std::string y = g.emit("Conv", {g.in_order(from, axes), kernel(channels)}, grouped.set("group", channels));
    if (!a.count_padding && !a.is(padding_mode::valid)) {
        std::vector<std::int64_t> dims{1, 1};
        for (int i = 1; i + 1 < rank; ++i) dims.push_back(g.extent_of(from, i));
        const std::string ones = g.emit("Expand", {g.constant(1, type), g.shape_tensor(dims)});
        y = g.emit("Div", {y, g.emit("Conv", {ones, kernel(1)}, settings)});
    }
    g.define(node, y, axes);
}

template <class G>
void write_pool(G& g, int node) {
    const bool lp = g.is(node, "lp_pool"), maximum = g.is(node, "max_pool");
    const window_attributes a =
        lp ? g.template attributes_of<lp_pool_op>(node).window : g.template attributes_of<max_pool_op>(node);
    const int from = g.t.argument(node, 0), rank = g.rank(node);
    const order axes = G::channels_first(rank);
    attributes settings;
    const auto taps = taps_of(a, rank - 2);
    const bool spread = a.dilation[1] > 1 || (rank == 4 && a.dilation[0] > 1);
    const bool as_convolution = spread && !maximum && !lp && g.opset < 19; // when means got dilations
    if (!window_settings(g, settings, a, from, node, taps, maximum || as_convolution || g.opset >= (lp ? 18 : 19)))
        return g.refuse(node, "dilated, which opset 17 does not know of norms");
    if (as_convolution) return write_dilated_mean(g, node, a, settings, taps);
    if (lp) {
        const double norm = g.template attributes_of<lp_pool_op>(node).norm;
        if (norm != static_cast<double>(static_cast<std::int64_t>(norm)))
            return g.refuse(node, "of a norm that is not an integer");
        settings.set("p", static_cast<std::int64_t>(norm));
    } else if (!maximum) {
        settings.set("count_include_pad", a.count_padding);
    }
    g.define(node,
             g.emit(lp        ? "LpPool"
                    : maximum ? "MaxPool"
                              : "AveragePool",
                    {g.in_order(from, axes)}, settings),
             axes);
}

} // namespace tapegraph::onnx::detail
