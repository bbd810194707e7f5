#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>

#include <string_view>

/// Terms of sums over all gradients of a step.

namespace tapegraph::detail {

/// Calls f(slots, w, g), or f(g) if f takes only that, and evaluates the result.
constexpr auto term_of(const auto& f, const auto& slots, const auto& w, const auto& g) {
    if constexpr (requires { f(slots, w, g); })
        return eval(f(slots, w, g));
    else
        return eval(f(g));
}

/// Casts x to the element type of `like`, a handle.
template <class Like, class X>
constexpr auto as_type_of(const Like& like, const X& x) {
    if constexpr (requires { like.owner(); })
        return like.type() == x.type() ? x : like.type() == dtype::f64 ? eval(cast<double>(x)) : eval(cast<float>(x));
    else if constexpr (std::is_same_v<Like, X>)
        return x;
    else
        return eval(cast<typename Like::element_type>(x));
}

/// Whether an optimizer requires the gradients of a scaled loss (nn/optimizers/loss_scaling.hpp),
/// and the scalars that hold the scale.
template <class Optimizer>
constexpr bool scales_loss() {
    if constexpr (requires { Optimizer::scales_loss; })
        return Optimizer::scales_loss;
    else
        return false;
}
inline constexpr std::string_view loss_scale_name = "loss_scale", good_steps_name = "loss_scale_good_steps";

} // namespace tapegraph::detail
