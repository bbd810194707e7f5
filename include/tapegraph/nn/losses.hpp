#pragma once

#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/ops/reduction/softmax.hpp>

/// Losses. A loss is an empty type with `operator()(output, labels)`, the mean loss of the batch; `labels(type, shape)`, element
/// type and shape of the labels for an output of this type and shape; and, where it has a meaning, `accuracy(output, labels)`,
/// the share of records that are right.

namespace tapegraph {

/// Element type and shape of a tensor, symbolic extents included.
struct tensor_spec {
    dtype type;
    shape dims;
};

/// Binary cross-entropy of logits x against labels z in [0, 1], of the output's type and shape:
/// max(x, 0) - x z + log(1 + exp(-|x|)), which does not overflow.
struct sigmoid_cross_entropy {
    constexpr auto operator()(auto x, auto z) const { return mean(maximum(x, 0) - x * z + log1p(exp(-abs(x)))); }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto accuracy(auto x, auto z) { return mean(cast<float>((x > 0) == (z > 0.5))); }
};

/// Binary cross-entropy of probabilities p, clipped to [1e-7, 1 - 1e-7] as Keras does.
struct binary_cross_entropy {
    constexpr auto operator()(auto p, auto z) const {
        const auto q = eval(minimum(maximum(p, 1e-7), 1 - 1e-7));
        return mean(-(z * log(q) + (1 - z) * log(1 - q)));
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto accuracy(auto p, auto z) { return mean(cast<float>((p > 0.5) == (z > 0.5))); }
};

/// Cross-entropy of logits [batch..., classes] against a distribution of the same shape (one-hot rows, say).
struct softmax_cross_entropy {
    constexpr auto operator()(auto x, auto z) const { return mean(-sum(z * log_softmax(x), -1)); }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto accuracy(auto x, auto z) {
        return mean(cast<float>(argmax(x, -1) == argmax(z, -1)));
    }
};

/// Cross-entropy of logits [batch..., classes] against int32 class numbers [batch...].
struct sparse_softmax_cross_entropy {
    constexpr auto operator()(auto x, auto z) const {
        const auto chosen = take_along(log_softmax(x), expand_dims(z, -1));
        return mean(-chosen);
    }
    static constexpr tensor_spec labels(dtype, const shape& output) {
        shape dims;
        dims.attach(output.table());
        for (int i = 0; i + 1 < output.rank(); ++i) dims.push_back(output[i]);
        return {dtype::i32, dims};
    }
    static constexpr auto accuracy(auto x, auto z) {
        return mean(cast<float>(argmax(x, -1) == z));
    }
};

/// The mean of squared differences.
struct mean_squared_error {
    constexpr auto operator()(auto x, auto z) const { return mean(square(x - z)); }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
};

} // namespace tapegraph
