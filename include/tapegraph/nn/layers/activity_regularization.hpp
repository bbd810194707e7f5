#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/keeps_mask.hpp>
#include <tapegraph/nn/regularizer.hpp>

/// A penalty on a layer's output instead of its weights. Not part of tapegraph.hpp: programs
/// without it do not compile it.

namespace tapegraph {

/// Returns x and adds to the model's loss, in training and in evaluation, l1 |x| + l2 x^2 summed
/// over a record and averaged over the batch, like Keras's ActivityRegularization and
/// `activity_regularizer=`:
///
///     h = tg::activity_regularization(scope / "sparse", tg::dense(scope / "code", h, {.units = 32}), tg::regularizers::l1{1e-4});
///
/// x is [batch, ...]. Regularizers other than l1, l2 and l1_l2, and a scalar x, are refused.
template <layer_scope Scope, tensor_like X>
constexpr auto activity_regularization(const Scope& scope, const X& x, const regularizer& penalty,
                                       std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const bool sensible =
        scope.require(shape_of(input).rank() > 0, "activity_regularization: x must be [batch, ...], given a scalar") &&
        scope.require(penalty.kind == regularizer_kind::l1_l2, "activity_regularization: l1, l2 or l1_l2");
    if (sensible) {
        const auto wide = detail::as_float(input, where); // squares leave half's range
        scope.add_loss(sum(mean(penalty.a * abs(wide) + penalty.b * square(wide), 0, {}, where), {}, {}, where), where);
    }
    return scope.leave("activity_regularization", mark, input);
}
template <class = void>
detail::scope_missing activity_regularization(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(activity_regularization, regularizer)

} // namespace tapegraph
