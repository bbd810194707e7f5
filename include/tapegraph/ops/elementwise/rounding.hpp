#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// floor, ceil, round (halves to even), trunc. They are step functions, so results count as
/// constants. Integers are unchanged.

namespace tapegraph {

#define TG_ROUNDING(word)                                                                                              \
    struct word##_op : map_op<1> {                                                                                     \
        static constexpr std::string_view name = #word;                                                               \
        static constexpr bool integers = true;                                                                         \
        template <class V>                                                                                             \
        TG_HD static constexpr V value(V x) {                                                                          \
            if constexpr (std::is_floating_point_v<V>)                                                                 \
                return math::word(x);                                                                                  \
            else                                                                                                       \
                return x;                                                                                              \
        }                                                                                                              \
    };                                                                                                                 \
    template <operand A>                                                                                               \
    TG_INLINE constexpr auto word(const A& x) {                                                                        \
        return apply<word##_op>(x);                                                                                    \
    }

TG_ROUNDING(floor)
TG_ROUNDING(ceil)
TG_ROUNDING(round)
TG_ROUNDING(trunc)
#undef TG_ROUNDING

} // namespace tapegraph
