#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>

/// Parts of sums over all gradients of a step.

namespace tapegraph::detail {

/// f(slots, w, g), or f(g) where that is what f takes, with a value.
constexpr auto term_of(const auto& f, const auto& slots, const auto& w, const auto& g) {
    if constexpr (requires { f(slots, w, g); })
        return eval(f(slots, w, g));
    else
        return eval(f(g));
}

/// x in the element type of `like`, a handle.
template <class Like, class X>
constexpr auto as_type_of(const Like& like, const X& x) {
    if constexpr (requires { like.owner(); })
        return like.type() == x.type() ? x : like.type() == dtype::f64 ? eval(cast<double>(x)) : eval(cast<float>(x));
    else if constexpr (std::is_same_v<Like, X>)
        return x;
    else
        return eval(cast<typename Like::element_type>(x));
}

} // namespace tapegraph::detail
