#pragma once

#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

namespace tapegraph::testing {

/// A scalar of all that F gives. Squares make every adjoint its own; the weights make the terms differ.
template <class F>
struct loss_of {
    constexpr auto operator()(const auto&... x) const {
        return std::apply(
            [](auto first, auto... rest) {
                auto total = eval(sum(square(first)));
                ((total = eval(total * 0.5 + sum(square(rest)))), ...);
                return total;
            },
            F{}(x...));
    }
};
template <class F>
constexpr auto gradient_loss(F) {
    return value_and_gradient(loss_of<F>{});
}

} // namespace tapegraph::testing
