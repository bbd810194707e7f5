#pragma once

#include <tapegraph/model/initializer.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/keeps_mask.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/reduction/axes.hpp>

/// Activations that Keras has as layers and that are not operations. Not part of tapegraph.hpp:
/// programs without them do not compile them.

namespace tapegraph {

/// Defaults as in Keras.
struct prelu_options {
    axes shared_axes = std::initializer_list<
        int>{}; ///< axes of x, from 1 on, along which one number is shared: {1, 2} for the pixels of an image
    initializer alpha_initializer = init::zeros{};
    regularizer alpha_regularizer{};
    constraint alpha_constraint{};
};

/// x where it is positive, alpha x elsewhere, with a learnt "alpha" for each element of a record
/// (He et al. 2015): x's extents without the batch, 1 along shared axes; the others must be known.
template <layer_scope Scope, tensor_like X>
constexpr auto prelu(const Scope& scope, const X& x, const prelu_options& o = {},
                     std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input);
    const std::int64_t shared = o.shared_axes.all ? 0 : o.shared_axes.bits(dims.rank());
    shape extents;
    bool known = true;
    for (int i = 1; i < dims.rank(); ++i) {
        const bool one = (shared >> i & 1) != 0;
        known = known && (one || dims[i].known());
        extents.push_back(one || !dims[i].known() ? extent(1) : extent(dims[i].value));
    }
    const bool sensible = scope.require(dims.rank() > 1 && shared >> dims.rank() == 0 && (shared & 1) == 0,
                                        "prelu: shared axes must be axes of x after the batch") &&
                          scope.require(known, "prelu: extents of axes that are not shared must be known");
    if (!sensible) return scope.leave("prelu", mark, input);
    const auto alpha = scope.variable_like(
        input, "alpha", extents,
        {.initializer = o.alpha_initializer, .regularizer = o.alpha_regularizer, .constraint = o.alpha_constraint});
    return scope.leave("prelu", mark, eval(leaky_relu(input, alpha), where));
}
template <layer_scope Scope>
no_such_option_in<prelu_options> prelu(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing prelu(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(prelu, prelu_options)

/// x where it is above theta, 0 elsewhere. A formula.
template <tensor_like X>
constexpr auto thresholded_relu(const X& x, double theta = 1) {
    return where(x > theta, x, 0);
}

} // namespace tapegraph
