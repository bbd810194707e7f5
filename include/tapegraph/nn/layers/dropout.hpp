#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/keeps_mask.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

namespace tapegraph {

/// Options of `dropout`.
struct dropout_options {
    double rate = 0.5; ///< the fraction of elements set to zero
};

/// In training, sets each element to zero with probability `rate` and scales the others by 1 / (1 -
/// rate); otherwise returns its operand. The rate is in [0, 1).
template <layer_scope Scope, tensor_like X>
constexpr auto dropout(const Scope& scope, const X& x, const dropout_options& o = {},
                       std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const bool sensible = scope.require(o.rate >= 0 && o.rate < 1, "dropout: rate must lie in [0, 1)");
    if (!sensible || !scope.training() || o.rate == 0) return scope.leave("dropout", mark, input);
    const auto drawn = scope.uniform_like(input); // at least float, because in 16 bits a rate of 0.999 may be 1
    return scope.leave("dropout", mark, eval(tapegraph::where(drawn >= o.rate, input * (1 / (1 - o.rate)), 0), where));
}
template <layer_scope Scope>
no_such_option_in<dropout_options> dropout(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing dropout(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(dropout, dropout_options)

} // namespace tapegraph
