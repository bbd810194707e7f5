#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>
#include <tapegraph/io/onnx_import/rules_movement.hpp>

/// Windows that slide over images, of convolutions, pooling and blocks.

namespace tapegraph::io::onnx_import {

namespace rules {

/// The order [batch, spatial..., channels] of ONNX's axes [batch, channels, spatial...].
inline std::vector<int> channels_last(int rank) {
    std::vector<int> axes{0};
    for (int i = 2; i < rank; ++i) axes.push_back(i);
    axes.push_back(1);
    return axes;
}

struct window {
    std::vector<std::int64_t> taps, strides, dilations, before, after;
    bool ceils = false;
    std::string auto_pad;
};
inline window window_of(call& c, int spatial, std::vector<std::int64_t> taps) {
    window w;
    const auto n = static_cast<std::size_t>(spatial);
    w.taps = c.integers("kernel_shape", taps);
    w.strides = c.integers("strides", std::vector<std::int64_t>(n, 1));
    w.dilations = c.integers("dilations", std::vector<std::int64_t>(n, 1));
    const std::vector<std::int64_t> pads = c.integers("pads", std::vector<std::int64_t>(2 * n, 0));
    w.auto_pad = c.text("auto_pad", "NOTSET");
    if (w.taps.size() != n || w.strides.size() != n || w.dilations.size() != n || pads.size() != 2 * n)
        refuse("a window of other than " + std::to_string(spatial) + " axes");
    for (std::size_t i = 0; i < n; ++i)
        if (w.taps[i] < 1 || w.strides[i] < 1 || w.dilations[i] < 1) refuse("an invalid window");
    w.before.assign(pads.begin(), pads.begin() + spatial);
    w.after.assign(pads.begin() + spatial, pads.end());
    if (w.auto_pad != "NOTSET") w.before.assign(n, 0), w.after.assign(n, 0);
    if (w.auto_pad != "NOTSET" && w.auto_pad != "VALID" && w.auto_pad != "SAME_UPPER" && w.auto_pad != "SAME_LOWER")
        refuse("auto_pad = '" + w.auto_pad + "'");
    return w;
}
/// Replaces auto_pad by amounts of padding, for the extents of x [batch, spatial..., channels].
inline void resolve(window& w, const shape& x) {
    if (!w.auto_pad.starts_with("SAME")) return;
    for (std::size_t i = 0; i < w.taps.size(); ++i) {
        const std::int64_t span = (w.taps[i] - 1) * w.dilations[i] + 1;
        std::int64_t total = span - 1;
        if (w.strides[i] != 1) {
            const std::int64_t n = known_extent(x[static_cast<int>(i) + 1], "same padding"),
                               out = (n + w.strides[i] - 1) / w.strides[i];
            total = std::max<std::int64_t>((out - 1) * w.strides[i] + span - n, 0);
        }
        const std::int64_t less = total / 2;
        w.before[i] = w.auto_pad == "SAME_UPPER" ? less : total - less;
        w.after[i] = total - w.before[i];
    }
}
inline window_attributes attributes_of(const window& w, std::int64_t groups) {
    window_attributes a;
    const auto n = static_cast<int>(w.taps.size());
    a.mode = static_cast<std::int64_t>(padding_mode::explicit_amounts);
    a.groups = groups;
    a.window[0] = 1;
    for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        const int axis = i + 2 - n;
        a.stride[axis] = w.strides[k], a.dilation[axis] = w.dilations[k], a.window[axis] = w.taps[k];
        a.before[axis] = w.before[k], a.after[axis] = w.after[k];
    }
    return a;
}
inline window without_first(window w) {
    for (auto* list : {&w.taps, &w.strides, &w.dilations, &w.before, &w.after}) list->erase(list->begin());
    return w;
}
inline extent outputs_of(const window& w, std::size_t i, const extent& n) {
    return (n + (w.before[i] + w.after[i] - (w.taps[i] - 1) * w.dilations[i] - 1)) / w.strides[i] + 1;
}
/// Every `step`th element of an axis, `count` of them from `begin` on.
inline node stepped(const node& x, int axis, std::int64_t begin, std::int64_t step, const extent& count) {
    slice_op::attributes a = tapegraph::detail::whole_slice();
    shape target = x.shape();
    a.begin[axis] = begin;
    a.step[axis] = step;
    target.set(axis, count);
    return graph::invoke<slice_op>(a, &target, std::source_location::current(), x);
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
