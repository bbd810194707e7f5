#pragma once

#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/gather/gather_scatter.hpp>
#include <tapegraph/ops/vmap/batched.hpp>

/// Batching rules for selecting elements by indices.

namespace tapegraph {

/// Slices of one table per example or of a common one, by indices per example or common ones.
template <>
struct batching_rule<gather_op> {
    template <class C, class Table, class Indices>
    static constexpr auto apply(const C& c, const gather_op::attributes& a, const Table& table,
                                const Indices& indices) {
        if constexpr (!C::template is_batched<Table>) {
            if (a.batch == 0) {
                const auto taken = c.template run<gather_op>(a, nullptr, table, c.whole(indices));
                return c.move_axis(taken, static_cast<int>(a.axis), 0);
            }
        } else if constexpr (!C::template is_batched<Indices>) {
            if (a.batch == 0) return c.template run<gather_op>({a.axis + 1, 0}, nullptr, c.whole(table), indices);
        }
        const auto& like = detail::first_batched<typename C::tag>(table, indices);
        return c.template run<gather_op>({a.axis + 1, a.batch + 1}, nullptr, c.spread(table, like),
                                         c.spread(indices, like));
    }
};
template <>
struct batching_rule<scatter_add_op> {
    template <class C, class Values, class Indices>
    static constexpr auto apply(const C& c, const gather_op::attributes& a, const Values& values,
                                const Indices& indices) {
        const shape to = c.with_batch(*c.target);
        if constexpr (!C::template is_batched<Indices>) {
            if (a.batch == 0) return c.template run<scatter_add_op>({a.axis + 1, 0}, &to, c.whole(values), indices);
        }
        const auto& like = detail::first_batched<typename C::tag>(values, indices);
        return c.template run<scatter_add_op>({a.axis + 1, a.batch + 1}, &to, c.spread(values, like),
                                              c.spread(indices, like));
    }
};
/// A table per example and common edges are slabs of one table; all else is edges per example.
template <bool Weighted>
struct batching_rule<gather_scatter_add_op<Weighted>> {
    template <class C, class Table, class... Edges>
    static constexpr auto apply(const C& c, const gather_op::attributes& a, const Table& table, const Edges&... edges) {
        using op = gather_scatter_add_op<Weighted>;
        const shape to = c.with_batch(*c.target);
        if constexpr (!(C::template is_batched<Edges> || ...)) {
            if (a.batch == 0) return c.template run<op>({a.axis + 1, 0}, &to, c.whole(table), edges...);
        }
        const auto& like = detail::first_batched<typename C::tag>(table, edges...);
        return c.template run<op>({a.axis + 1, a.batch + 1}, &to, c.spread(table, like), c.spread(edges, like)...);
    }
};

namespace detail {
template <class Op>
struct batched_along {
    template <class C, class X, class Indices>
    static constexpr auto apply(const C& c, const take_along_op::attributes& a, const X& x, const Indices& indices) {
        const auto& like = first_batched<typename C::tag>(x, indices);
        const shape to = c.target != nullptr ? c.with_batch(*c.target) : shape{};
        return c.template run<Op>({a.axis + 1}, c.target != nullptr ? &to : nullptr, c.spread(x, like),
                                  c.spread(indices, like));
    }
};
} // namespace detail

template <>
struct batching_rule<take_along_op> : detail::batched_along<take_along_op> {};
template <>
struct batching_rule<put_along_op> : detail::batched_along<put_along_op> {};

} // namespace tapegraph
