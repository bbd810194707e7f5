#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

/// Normalizations. 16-bit elements are computed in float, as the operators' pages require.

namespace tapegraph::io::onnx_import {

namespace rules {

/// Converts a value to the type in which it is normalized.
inline node wide(const node& x) { return x.type() == dtype::f64 ? x : converted(x, x.type(), dtype::f32); }
inline node wide_of(call& c, int i) { return wide(c.plain(i)); }

/// Reshapes [channels] to broadcast along the axis of channels in x.
inline node for_channels(call& c, const node& v, const node& x, int place) {
    if (place == x.rank() - 1) return v;
    std::vector<std::int64_t> dims{v.shape()[0].value};
    for (int k = place + 1; k < x.rank(); ++k) dims.push_back(1);
    return reshape(v, shape_of_items(c, dims));
}

inline void batch_normalization_rule(call& c) {
    const double epsilon = c.number("epsilon", 1e-5f), momentum = c.number("momentum", 0.9f);
    const bool trains = c.integer("training_mode", 0) != 0;
    c.ignore("is_test"), c.ignore("consumed_inputs");
    if (c.integer("spatial", 1) != 1) refuse("spatial = 0");
    std::vector<int> axes;
    const node given = as_it_lies(c, 0, axes), x = wide(given);
    const int place = place_of(axes, 1);
    if (c.rank(0) < 2) refuse("of rank " + std::to_string(c.rank(0)));
    node mean_of = wide_of(c, 3), variance = wide_of(c, 4);
    if (trains) {
        std::vector<int> over;
        for (int k = 0; k < x.rank(); ++k)
            if (k != place) over.push_back(k);
        const node m = mean(x, axes_of(over), {.keepdims = true});
        const node batch_mean = mean(x, axes_of(over)), batch_variance = mean(square(x - m), axes_of(over));
        const auto moved = [&](const node& old, const node& now) {
            return eval(momentum * old + (1 - momentum) * now);
        };
        c.give(1, converted(moved(mean_of, batch_mean), x.type(), c.type(3)), c.type(3));
        c.give(2, converted(moved(variance, batch_variance), x.type(), c.type(4)), c.type(4));
        mean_of = batch_mean, variance = batch_variance;
    } else if (c.wants(1)) {
        refuse("with outputs of training, outside of it");
    }
    const node factor = eval(wide_of(c, 1) / sqrt(variance + epsilon));
    const auto spread = [&](const node& v) { return for_channels(c, v, x, place); };
    const node y = eval((x - spread(mean_of)) * spread(factor) + spread(wide_of(c, 2)));
    c.give_laid(0, converted(y, y.type(), c.type(0)), c.type(0), axes);
}

inline std::vector<int> axes_from(int first, int rank) {
    std::vector<int> over;
    for (int k = first; k < rank; ++k) over.push_back(k);
    return over;
}
/// Normalizes over the axes from `first` on by the operation for it, where the parameters have their
/// extents. Returns false for others, which broadcast.
inline bool normalized_records(call& c, const node& x, int first, bool centered, double epsilon) {
    const bool offset = c.has(2);
    const node gamma = wide_of(c, 1), beta = offset ? wide_of(c, 2) : gamma;
    const auto fits = [&](const node& p) {
        bool same = p.rank() == x.rank() - first && p.type() == x.type();
        for (int i = 0; same && i < p.rank(); ++i) same = p.shape()[i] == x.shape()[first + i];
        return same;
    };
    if (!fits(gamma) || !fits(beta)) return false;
    const normalization_attributes parts{.first = first, .last = first, .centered = centered, .epsilon = epsilon};
    const node y = tapegraph::detail::normalized(x, parts, true, gamma, offset, beta, std::source_location::current());
    c.give(0, converted(y, y.type(), c.type(0)), c.type(0));
    return true;
}
inline void layer_normalization_rule(call& c) {
    const int first = c.axis(c.integer("axis", -1), c.rank(0));
    const double epsilon = c.number("epsilon", 1e-5f);
    if (c.integer("stash_type", 1) != 1) refuse("stash_type other than float");
    const node x = wide_of(c, 0);
    if (!c.wants(1) && !c.wants(2) && normalized_records(c, x, first, true, epsilon)) return;
    const axes over = axes_of(axes_from(first, x.rank()));
    const node m = mean(x, over, {.keepdims = true});
    const node inverse = eval(1 / sqrt(mean(square(x - m), over, {.keepdims = true}) + epsilon));
    node y = eval((x - m) * inverse * wide_of(c, 1));
    if (c.has(2)) y = eval(y + wide_of(c, 2));
    c.give(0, converted(y, y.type(), c.type(0)), c.type(0));
    c.give(1, m, m.type());
    c.give(2, inverse, inverse.type());
}
inline void rms_normalization_rule(call& c) {
    const int first = c.axis(c.integer("axis", -1), c.rank(0));
    const double epsilon = c.number("epsilon", 1e-5f);
    if (c.integer("stash_type", 1) != 1) refuse("stash_type other than float");
    const node x = wide_of(c, 0);
    if (normalized_records(c, x, first, false, epsilon)) return;
    const node m = mean(square(x), axes_of(axes_from(first, x.rank())), {.keepdims = true});
    const node y = eval(x / sqrt(m + epsilon) * wide_of(c, 1));
    c.give(0, converted(y, y.type(), c.type(0)), c.type(0));
}
/// Normalizes over groups of channels and all axes after them. `by_group`: scale and bias are per
/// group, as before opset 21.
inline void grouped(call& c, std::int64_t groups, bool by_group, double epsilon) {
    const shape s = c.dims(0);
    if (s.rank() < 3) refuse("of rank " + std::to_string(s.rank()));
    const std::int64_t channels = known_extent(s[1], "groups");
    if (groups < 1 || channels % groups != 0) refuse("in groups that do not divide the channels");
    const node x =
        reshape(wide_of(c, 0), shape_of_items(c, {s[0].value, groups, channels / groups, s.size(2, s.rank()).value}));
    const node m = mean(x, {2, 3}, {.keepdims = true});
    const node v = mean(square(x - m), {2, 3}, {.keepdims = true});
    const auto factor = [&](int i) {
        return reshape(wide_of(c, i), by_group ? shape{groups, 1, 1} : shape{groups, channels / groups, 1});
    };
    const node y = eval((x - m) / sqrt(v + epsilon) * factor(1) + factor(2));
    c.give(0, converted(reshape(y, s), y.type(), c.type(0)), c.type(0));
}
inline void instance_normalization_rule(call& c) {
    c.ignore("consumed_inputs");
    grouped(c, known_extent(c.dims(0)[1], "channels"), false, c.number("epsilon", 1e-5f));
}
inline void group_normalization_rule(call& c) {
    if (c.integer("stash_type", 1) != 1) refuse("stash_type other than float");
    const std::int64_t groups = c.integer("num_groups", 0);
    const extent scales = c.dims(1)[0];
    grouped(c, groups, c.opset() < 21 && scales.value == groups && c.dims(0)[1].value != groups,
            c.number("epsilon", 1e-5f));
}
inline void mean_variance_normalization(call& c) {
    std::vector<int> over;
    for (const std::int64_t a : c.integers("axes", {0, 2, 3})) over.push_back(c.axis(a, c.rank(0)));
    const node x = wide_of(c, 0), m = mean(x, axes_of(over), {.keepdims = true});
    const node deviation = eval(sqrt(mean(square(x), axes_of(over), {.keepdims = true}) - square(m)));
    const node y = eval((x - m) / (deviation + 1e-9));
    c.give(0, converted(y, y.type(), c.type(0)), c.type(0));
}
inline void lp_normalization(call& c) {
    const int axis = c.axis(c.integer("axis", -1), c.rank(0));
    const std::int64_t p = c.integer("p", 2);
    if (p != 1 && p != 2) refuse("p = " + std::to_string(p));
    const node x = wide_of(c, 0);
    const node n =
        p == 1 ? sum(abs(x), axis, {.keepdims = true}) : node(eval(sqrt(sum(square(x), axis, {.keepdims = true}))));
    const node y = eval(where(n == 0, 0, x / n));
    c.give(0, converted(y, y.type(), c.type(0)), c.type(0));
}
inline void local_response(call& c) {
    const std::int64_t size = c.integer("size", 1);
    const double alpha = c.number("alpha", 1e-4f), beta = c.number("beta", 0.75), bias = c.number("bias", 1);
    const node x = wide_of(c, 0);
    const std::int64_t before = (size - 1) / 2, after = size - 1 - before;
    if (size < 1 || x.rank() < 2) refuse("size = " + std::to_string(size));
    pad_op::attributes box = tapegraph::detail::whole_slice();
    shape target = x.shape();
    box.begin[1] = before;
    target.set(1, target[1] + (before + after));
    const node squares = graph::invoke<pad_op>(box, &target, std::source_location::current(), eval(square(x)));
    node total;
    for (std::int64_t k = 0; k < size; ++k) {
        const node one = part(squares, 1, k, x.shape()[1]);
        total = k == 0 ? one : eval(total + one);
    }
    const node y = eval(x / pow(bias + alpha / static_cast<double>(size) * total, beta));
    c.give(0, converted(y, y.type(), c.type(0)), c.type(0));
}

inline std::span<const operator_rule> normalizations() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"BatchNormalization", &batch_normalization_rule},
        {"LayerNormalization", &layer_normalization_rule},
        {"RMSNormalization", &rms_normalization_rule},
        {"SimplifiedLayerNormalization", &rms_normalization_rule}, // onnxruntime's name for it, in the standard domain
        {"InstanceNormalization", &instance_normalization_rule},
        {"GroupNormalization", &group_normalization_rule},
        {"MeanVarianceNormalization", &mean_variance_normalization},
        {"LpNormalization", &lp_normalization},
        {"LRN", &local_response},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
