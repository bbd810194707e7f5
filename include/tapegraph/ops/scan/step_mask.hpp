#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/movement/view.hpp>

namespace tapegraph {

/// A mask of the steps that count: bool [batch, time]. Other steps keep the state and the output.
template <handle M>
struct step_mask {
    M steps;
};
template <class M>
step_mask(M) -> step_mask<M>;

namespace detail {

template <class M>
inline constexpr bool can_be_bool = true;
template <class M>
    requires requires { typename M::element_type; }
inline constexpr bool can_be_bool<M> = std::is_same_v<typename M::element_type, bool>;

/// x [batch, time, ...] with 0 where a mask [batch, time] says that a step does not count. A
/// derivative there is 0, but its factor is still read, and 0 times NaN is NaN: layers read zeros
/// instead. A mask of the wrong shape is left for the caller to refuse.
template <handle X, handle M>
constexpr X counted_steps(const X& x, const M& mask, std::source_location where) {
    const shape steps = shape_of(mask), values = shape_of(x);
    bool valid = steps.rank() <= values.rank();
    for (int i = 0; valid && i < steps.rank(); ++i) valid = equal_or_required(values[i], steps[i]);
    if constexpr (requires { mask.owner(); }) valid = valid && mask.type() == dtype::boolean;
    if constexpr (can_be_bool<M>) {
        if (valid) {
            shape target = steps;
            while (target.rank() < values.rank()) target.push_back(1);
            return eval(tapegraph::where(invoke<reshape_op>({}, &target, where, mask), x, 0), where);
        }
    }
    return x;
}

} // namespace detail

} // namespace tapegraph
