#pragma once

#include <tapegraph/ops/attention/attention.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/vmap/batching.hpp>

/// Batching rules of attention: examples are merged with its own batch.

namespace tapegraph {

namespace detail {

template <class C>
struct batched_attention {
    const C& c;

    /// [examples, batch, ...] to [examples batch, ...].
    constexpr auto merged(const auto& x) const {
        const shape from = shape_of(x);
        shape to = no_axes(from);
        to.push_back(from[0] * from[1]);
        for (int i = 2; i < from.rank(); ++i) to.push_back(from[i]);
        return c.reshape(x, to);
    }
    constexpr auto operand(const auto& x, const auto& like) const { return merged(c.spread(x, like)); }
    /// A bias may be that of all examples if it is that of all of their records.
    constexpr auto bias(const attention_attributes& a, const auto& x, const auto& like, const extent& batch) const {
        if (a.biased == 0) return filled_like(c.spread(x, like), shape{1, 1, 1, 1}, 0, c.where);
        const auto whole = c.spread(x, like);
        shape to = shape_of(whole);
        to.set(1, batch);
        return merged(c.template run<broadcast_op>({}, &to, whole));
    }
    /// Parts of every example, [examples, n] each, and one after the other along `axis`.
    constexpr auto joined(const auto& first, const auto& second, int axis) const {
        return concat(first, second, axis, c.where);
    }
    constexpr auto flat(const auto& x) const {
        shape to = no_axes(shape_of(x));
        to.push_back(shape_of(x).size());
        return c.reshape(x, to);
    }
    /// Elements `before` to `before` + `count` of a vector, as [examples, count / examples].
    constexpr auto rows(const auto& x, const extent& before, const extent& each) const {
        shape to = no_axes(shape_of(x));
        to.push_back(c.count);
        to.push_back(each);
        return c.reshape(part_of(x, 0, before, c.count * each, c.where), to);
    }
    /// Results of examples, and what is known of their queries, to those of one batch, and back.
    constexpr auto merged_result(const auto& x, const extent& results) const {
        const extent all = shape_of(x)[1];
        return joined(flat(part_of(x, 1, extent(0, all.table), results, c.where)),
                      flat(part_of(x, 1, results, all - results, c.where)), 0);
    }
    constexpr auto result_of_each(const auto& x, const extent& results, const extent& numbers) const {
        return joined(rows(x, extent(0, results.table), results), rows(x, results * c.count, numbers), 1);
    }
};

} // namespace detail

template <>
struct batching_rule<attention_op> {
    static constexpr auto apply(const auto& c, const attention_attributes& a, const auto& q, const auto& k,
                                const auto& v, const auto& bias, const auto& address) {
        using C = std::remove_cvref_t<decltype(c)>;
        const auto& like = detail::first_batched<typename C::tag>(q, k, v, bias, address);
        const detail::batched_attention<C> on{c};
        const shape dims = shape_of(c.spread(q, like)), values = shape_of(c.spread(v, like));
        const auto y =
            c.template run<attention_op>(a, nullptr, on.operand(q, like), on.operand(k, like), on.operand(v, like),
                                         on.bias(a, bias, like, dims[1]), c.whole(address));
        const extent queries = dims.size(1, 4);
        return on.result_of_each(y, queries * values[4], queries * 2);
    }
};
template <>
struct batching_rule<attention_gradient_op> {
    static constexpr auto apply(const auto& c, const attention_attributes& a, const auto& dy, const auto& q,
                                const auto& k, const auto& v, const auto& bias, const auto& address, const auto& y) {
        using C = std::remove_cvref_t<decltype(c)>;
        const auto& like = detail::first_batched<typename C::tag>(dy, q, k, v, bias, address, y);
        const detail::batched_attention<C> on{c};
        const shape of_q = shape_of(c.spread(q, like)), of_k = shape_of(c.spread(k, like)),
                    of_v = shape_of(c.spread(v, like));
        const extent results = of_q.size(1, 4) * of_v[4], first = of_q.size(1, 5), second = of_k.size(1, 5);
        const auto slopes = c.template run<attention_gradient_op>(
            a, nullptr, on.merged_result(c.spread(dy, like), results), on.operand(q, like), on.operand(k, like),
            on.operand(v, like), on.bias(a, bias, like, of_q[1]), c.whole(address),
            on.merged_result(c.spread(y, like), results));
        const auto queries = on.rows(slopes, extent(0, first.table), first);
        const auto keys = on.rows(slopes, first * c.count, second);
        const auto values = on.rows(slopes, (first + second) * c.count, of_v.size(1, 5));
        return on.joined(on.joined(queries, keys, 1), values, 1);
    }
};
template <>
struct batching_rule<numbers_at_op> {
    static constexpr auto apply(const auto& c, const no_attributes& a, const auto& address) {
        const shape to = c.with_batch(*c.target);
        return c.template run<numbers_at_op>(a, &to, c.whole(address));
    }
};

} // namespace tapegraph
