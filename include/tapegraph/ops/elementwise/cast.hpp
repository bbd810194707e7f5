#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

namespace tapegraph {

/// Converts to another element type. To bool: x != 0. To integers: toward zero; values that do not
/// fit (NaN, too) give whatever the processor makes of them. Derivatives pass between floating
/// types.
template <class To>
struct cast_op : map_op<1> {
    static constexpr std::string_view name = "cast";
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    static constexpr bool from_integers = true;
    static constexpr zero_adjoint zeros = zero_adjoint::passes;
    static constexpr dtype result_type(dtype) { return dtype_of<To>; }
    template <class V>
    TG_HD static constexpr To value(V x) {
        if constexpr (std::is_same_v<To, bool>)
            return x != V(0);
        else if constexpr (std::is_same_v<V, bool> && std::is_floating_point_v<To>)
            return static_cast<To>(int(x)); // g++ leaves loops scalar that convert comparisons to floats directly
        else
            return static_cast<To>(x);
    }
    // An adjoint always takes its operand's element type, so no cast back is needed here.
    static constexpr auto vjp(auto dy, auto, auto) { return dy; }
};

/// `cast<float>(labels)`
template <class To, operand A>
TG_INLINE constexpr auto cast(const A& x) {
    if constexpr (arithmetic<A>)
        return cast_op<To>::value(x); // from the type it has
    else
        return apply<cast_op<To>>(x);
}

} // namespace tapegraph
