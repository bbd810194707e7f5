#pragma once

#include <tapegraph/model/initializer.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/keeps_mask.hpp>
#include <tapegraph/ops/product/matmul.hpp>

namespace tapegraph {

/// Defaults as in Keras.
struct dense_options {
    std::int64_t units = 1; ///< outputs, positive
    bool use_bias = true;
    initializer kernel_initializer = init::glorot_uniform{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, bias_constraint{};
};

/// y = x W + b over the last axis: x [..., in] to [..., units], W "kernel" [in, units], b "bias"
/// [units]. x must have an axis, whose extent must be known while the model is traced.
template <layer_scope Scope, tensor_like X>
constexpr auto dense(const Scope& scope, const X& x, const dense_options& options,
                     std::source_location where = std::source_location::current()) {
    if constexpr (!handle<X>) { // one layer for a tensor and for a formula
        return dense(scope, scope.operand(x, where), options, where);
    } else {
        const auto input = scope.operand(x, where);
        const auto mark = scope.enter();
        const shape dims = shape_of(input);
        const std::int64_t features = detail::features_of(scope, dims, "dense: input needs an axis of features");
        const std::int64_t units =
            scope.require(options.units > 0, "dense: units must be positive") ? options.units : 1;
        const auto kernel = scope.variable_like(input, "kernel", {features, units}, detail::kernel_options(options));
        const auto product = matmul(input, kernel, {}, where);
        if (!options.use_bias) return scope.leave("dense", mark, product);
        const auto bias = scope.variable_like(input, "bias", {units}, detail::bias_options(options));
        return scope.leave("dense", mark, eval(product + bias, where));
    }
}
template <layer_scope Scope>
no_such_option_in<dense_options> dense(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing dense(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(dense, dense_options)

} // namespace tapegraph
