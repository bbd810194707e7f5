#pragma once

#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/vmap/batched.hpp>

/// Batching rules for moving elements.

namespace tapegraph {

template <>
struct batching_rule<reshape_op> {
    static constexpr auto apply(const auto& c, const reshape_op::attributes& a, const auto& x) {
        const shape to = c.target != nullptr ? c.with_batch(*c.target) : shape{};
        return c.template run<reshape_op>(a, c.target != nullptr ? &to : nullptr, c.whole(x));
    }
};
template <>
struct batching_rule<broadcast_op> {
    static constexpr auto apply(const auto& c, const no_attributes&, const auto& x) {
        const shape to = c.with_batch(*c.target);
        return c.template run<broadcast_op>({}, &to, detail::lined_up(x, c.target->rank(), c.where));
    }
};
template <>
struct batching_rule<transpose_op> {
    static constexpr auto apply(const auto& c, const transpose_op::attributes& a, const auto& x) {
        transpose_op::attributes shifted;
        shifted.rank = a.rank + 1;
        for (int i = 0; i < a.rank && i + 1 < max_rank; ++i) shifted.permutation[i + 1] = a.permutation[i] + 1;
        return c.template run<transpose_op>(shifted, nullptr, c.whole(x));
    }
};

namespace detail {
/// slice and pad: the batch is kept whole.
template <class Op>
struct batched_ranges {
    static constexpr auto apply(const auto& c, const slice_op::attributes& a, const auto& x) {
        auto shifted = a; // also keeps attributes other than ranges: the padding value
        shifted.begin[0] = 0, shifted.step[0] = 1;
        for (int i = 0; i + 1 < max_rank; ++i) shifted.begin[i + 1] = a.begin[i], shifted.step[i + 1] = a.step[i];
        const shape to = c.with_batch(*c.target);
        return c.template run<Op>(shifted, &to, c.whole(x));
    }
};
/// index_map and its adjoint: one rule per axis; the batch is kept.
template <class Op>
struct batched_map {
    static constexpr auto apply(const auto& c, const index_map_op::attributes& a, const auto& x) {
        typename Op::attributes shifted;
        for (int i = 0; i + 1 < max_rank; ++i) shifted.map[i + 1] = a.map[i], shifted.amount[i + 1] = a.amount[i];
        if (a.map[0] < 0) shifted.map[0] = a.map[0]; // an invalid map stays invalid
        const shape to = c.with_batch(*c.target);
        return c.template run<Op>(shifted, &to, c.whole(x));
    }
};
} // namespace detail

/// fill, arange, linspace: every example has the same values.
template <class T>
struct batching_rule<arange_op<T>> {
    static constexpr auto apply(const auto& c, const typename arange_op<T>::attributes& a, const auto& x) {
        const shape to = c.with_batch(*c.target);
        const auto one = c.template run<arange_op<T>>(a, c.target, c.whole(x));
        return c.template run<broadcast_op>({}, &to, one);
    }
};

template <>
struct batching_rule<slice_op> : detail::batched_ranges<slice_op> {};
template <>
struct batching_rule<pad_op> : detail::batched_ranges<pad_op> {};
template <>
struct batching_rule<index_map_op> : detail::batched_map<index_map_op> {};
template <>
struct batching_rule<index_map_adjoint_op> : detail::batched_map<index_map_adjoint_op> {};

} // namespace tapegraph
