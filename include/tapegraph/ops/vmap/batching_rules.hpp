#pragma once

#include <tapegraph/ops/vmap/batched.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>
#include <tapegraph/ops/refusal.hpp>
#include <tapegraph/ops/cumulative/cumulative.hpp>

/// How operations are carried out for a batch: the batch is one more axis in front. Elementwise operations and reductions
/// need no rule.

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

/// Reductions that are differentiated as a whole come as operations.
template <class Op>
    requires whole_reduction<Op>
struct batching_rule<Op> {
    static constexpr auto apply(const auto& c, const typename Op::attributes& a, const auto& x) {
        auto shifted = a;
        shifted.axes <<= 1; // axis 0 is the batch
        return c.template run<Op>(shifted, nullptr, c.whole(x));
    }
};

/// What does not fit one example does not fit the batch.
template <class Texts, int Arity>
struct batching_rule<detail::refused_op<Texts, Arity>> {
    static constexpr auto apply(const auto& c, const auto& a, const auto&... x) {
        return c.template run<detail::refused_op<Texts, Arity>>(a, nullptr, c.whole(x)...);
    }
};

namespace detail {
/// slice and embed: the batch is kept whole.
template <class Op>
struct batched_ranges {
    static constexpr auto apply(const auto& c, const slice_op::attributes& a, const auto& x) {
        auto shifted = a; // and what there is beside ranges: the number that padding is made of
        shifted.begin[0] = 0, shifted.step[0] = 1;
        for (int i = 0; i + 1 < max_rank; ++i) shifted.begin[i + 1] = a.begin[i], shifted.step[i + 1] = a.step[i];
        const shape to = c.with_batch(*c.target);
        return c.template run<Op>(shifted, &to, c.whole(x));
    }
};
/// The operation has one axis as attribute.
template <class Op>
struct batched_axis {
    static constexpr auto apply(const auto& c, const typename Op::attributes& a, const auto& x) {
        auto shifted = a;
        ++shifted.axis;
        return c.template run<Op>(shifted, nullptr, c.whole(x));
    }
};
/// The operation works along the last axis, or element by element: the batch is one of the axes before it.
template <class Op>
struct batched_rows {
    static constexpr auto apply(const auto& c, const typename Op::attributes& a, const auto& x) {
        return c.template run<Op>(a, nullptr, c.whole(x));
    }
};
/// The operation has a batch of its own in front: both become one.
template <class Op>
struct batched_images {
    static constexpr auto apply(const auto& c, const window_attributes& a, const auto& x, const auto&... filters) {
        const shape images = shape_of(c.whole(x));
        shape folded;
        folded.attach(images.table());
        folded.push_back(images.size(0, 2));
        for (int i = 2; i < images.rank(); ++i) folded.push_back(images[i]);
        const auto y = c.template run<Op>(a, nullptr, c.reshape(c.whole(x), folded), filters...);
        const shape found = shape_of(y);
        shape unfolded = c.with_batch({});
        unfolded.push_back(images[1]);
        for (int i = 1; i < found.rank(); ++i) unfolded.push_back(found[i]);
        return c.reshape(y, unfolded);
    }
};
} // namespace detail

/// fill, arange, linspace: the same for every example.
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
struct batching_rule<cumulative_sum_op> : detail::batched_axis<cumulative_sum_op> {};
template <>
struct batching_rule<cumulative_product_op> : detail::batched_axis<cumulative_product_op> {};
template <>
struct batching_rule<arg_reduce_op> : detail::batched_axis<arg_reduce_op> {};
template <>
struct batching_rule<argsort_op> : detail::batched_rows<argsort_op> {};
template <class T>
struct batching_rule<one_hot_op<T>> : detail::batched_axis<one_hot_op<T>> {};
template <>
struct batching_rule<max_pool_op> : detail::batched_images<max_pool_op> {};
template <>
struct batching_rule<average_pool_op> : detail::batched_images<average_pool_op> {};

template <>
struct batching_rule<matmul_op> {
    template <class C, class A, class B>
    static constexpr auto apply(const C& c, const matmul_op::attributes& t, const A& a, const B& b) {
        const shape left = shape_of(a), right = shape_of(b);
        const int rank = left.rank() > right.rank() ? left.rank() : right.rank();
        if constexpr (!C::template is_batched<B>) {
            // One matrix for all examples: their rows are rows of one product.
            if (right.rank() == 2 && left.rank() >= 2 && t.transpose_a == 0) {
                const shape stacked = shape_of(c.whole(a));
                const shape product = [&] {
                    shape s = stacked;
                    s.set(stacked.rank() - 1, right[t.transpose_b != 0 ? 0 : 1]);
                    return s;
                }();
                shape rows;
                rows.attach(stacked.table());
                rows.push_back(stacked.size(0, stacked.rank() - 1));
                rows.push_back(stacked[stacked.rank() - 1]);
                return c.reshape(c.template run<matmul_op>(t, nullptr, c.reshape(c.whole(a), rows), b), product);
            }
        }
        const auto side = [&]<class X>(const X& x) {
            if constexpr (C::template is_batched<X>)
                return detail::lined_up(x, rank, c.where);
            else
                return x;
        };
        return c.template run<matmul_op>(t, nullptr, side(a), side(b));
    }
};

/// Slices of a table per example or of one table, by indices per example or by the same ones.
template <>
struct batching_rule<gather_op> {
    template <class C, class Table, class Indices>
    static constexpr auto apply(const C& c, const gather_op::attributes& a, const Table& table, const Indices& indices) {
        if constexpr (!C::template is_batched<Table>) {
            if (a.batch == 0) {
                const auto taken = c.template run<gather_op>(a, nullptr, table, c.whole(indices));
                return c.move_axis(taken, static_cast<int>(a.axis), 0);
            }
        } else if constexpr (!C::template is_batched<Indices>) {
            if (a.batch == 0) return c.template run<gather_op>({a.axis + 1, 0}, nullptr, c.whole(table), indices);
        }
        const auto& like = detail::first_batched<typename C::tag>(table, indices);
        return c.template run<gather_op>({a.axis + 1, a.batch + 1}, nullptr, c.spread(table, like), c.spread(indices, like));
    }
};
template <>
struct batching_rule<scatter_add_op> {
    template <class C, class Values, class Indices>
    static constexpr auto apply(const C& c, const gather_op::attributes& a, const Values& values, const Indices& indices) {
        const shape to = c.with_batch(*c.target);
        if constexpr (!C::template is_batched<Indices>) {
            if (a.batch == 0) return c.template run<scatter_add_op>({a.axis + 1, 0}, &to, c.whole(values), indices);
        }
        const auto& like = detail::first_batched<typename C::tag>(values, indices);
        return c.template run<scatter_add_op>({a.axis + 1, a.batch + 1}, &to, c.spread(values, like),
                                              c.spread(indices, like));
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
/// remap and fold: one rule per axis; the batch is kept.
template <class Op>
struct batched_map {
    static constexpr auto apply(const auto& c, const index_map_op::attributes& a, const auto& x) {
        typename Op::attributes shifted;
        for (int i = 0; i + 1 < max_rank; ++i) shifted.map[i + 1] = a.map[i], shifted.amount[i + 1] = a.amount[i];
        if (a.map[0] < 0) shifted.map[0] = a.map[0]; // what is wrong stays wrong
        const shape to = c.with_batch(*c.target);
        return c.template run<Op>(shifted, &to, c.whole(x));
    }
};
} // namespace detail

template <>
struct batching_rule<take_along_op> : detail::batched_along<take_along_op> {};
template <>
struct batching_rule<put_along_op> : detail::batched_along<put_along_op> {};
template <>
struct batching_rule<index_map_op> : detail::batched_map<index_map_op> {};
template <>
struct batching_rule<index_map_adjoint_op> : detail::batched_map<index_map_adjoint_op> {};

/// Filters for all examples: more images. Filters per example: more groups of channels.
template <>
struct batching_rule<convolution_op> {
    template <class C, class X, class W>
    static constexpr auto apply(const C& c, const window_attributes& a, const X& x, const W& w) {
        if constexpr (!C::template is_batched<W>) {
            return detail::batched_images<convolution_op>::apply(c, a, x, w);
        } else {
            if (!c.count.known())
                mode_transforms<mode_of_t<std::remove_cvref_t<decltype(c.whole(w))>>>::refuse(
                    c.whole(w), "vmap: filters per example need a number of examples known to the compiler", shape_of(x),
                    shape_of(w));
            window_attributes grouped = a;
            grouped.groups = a.groups * (c.count.known() ? c.count.value : 1);
            const auto y = c.template run<convolution_op>(grouped, nullptr, channels(c, c.spread(x, w)), channels(c, c.whole(w)));
            const shape found = shape_of(y), filters = shape_of(w);
            const int rank = found.rank();
            shape parted = found; // [..., examples, filters of one]
            parted.set(rank - 1, c.count);
            parted.push_back(filters[filters.rank() - 1]);
            return c.move_axis(c.reshape(y, parted), rank - 1, 0);
        }
    }

private:
    /// [examples, ..., channels] to [..., examples * channels]
    static constexpr auto channels(const auto& c, const auto& whole) {
        const int rank = shape_of(whole).rank();
        const auto moved = c.move_axis(whole, 0, rank - 2);
        const shape s = shape_of(moved);
        shape merged;
        merged.attach(s.table());
        for (int i = 0; i + 2 < rank; ++i) merged.push_back(s[i]);
        merged.push_back(s.size(rank - 2, rank));
        return c.reshape(moved, merged);
    }
};

} // namespace tapegraph
