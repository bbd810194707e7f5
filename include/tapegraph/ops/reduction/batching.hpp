#pragma once

#include <tapegraph/ops/reduction/normalization.hpp>
#include <tapegraph/ops/reduction/softmax_cross_entropy.hpp>
#include <tapegraph/ops/vmap/batching.hpp>

/// Batching rules of normalization and of the cross entropy of class numbers.

namespace tapegraph {

/// The batch is another axis before the records. Where parameters differ between examples, or their
/// derivatives already do, it is one of the examples'.
template <>
struct batching_rule<normalization_op> {
    template <class C, class X, class P, class Q>
    static constexpr auto apply(const C& c, const normalization_attributes& a, const X& x, const P& gamma,
                                const Q& beta) {
        const auto& like = detail::first_batched<typename C::tag>(x, gamma, beta);
        auto more = a;
        ++more.first, ++more.last;
        if constexpr (C::template is_batched<P> || C::template is_batched<Q>) {
            ++more.examples, ++more.own;
            return c.template run<normalization_op>(more, nullptr, c.spread(x, like), c.spread(gamma, like),
                                                    c.spread(beta, like));
        } else {
            if (a.examples == 0) return c.template run<normalization_op>(more, nullptr, c.whole(x), gamma, beta);
            ++more.examples, ++more.own;
            return c.template run<normalization_op>(more, nullptr, c.whole(x), c.spread(gamma, like),
                                                    c.spread(beta, like));
        }
    }
};

/// Every example has sums of its own.
template <>
struct batching_rule<normalization_sums_op> {
    template <class C, class D, class X, class P>
    static constexpr auto apply(const C& c, const normalization_attributes& a, const D& dy, const X& x,
                                const P& gamma) {
        const auto& like = detail::first_batched<typename C::tag>(dy, x, gamma);
        auto more = a;
        ++more.first, ++more.last, ++more.examples, ++more.own;
        return c.template run<normalization_sums_op>(more, nullptr, c.spread(dy, like), c.spread(x, like),
                                                     c.spread(gamma, like));
    }
};
template <>
struct batching_rule<normalization_gradient_op> {
    template <class C, class D, class X, class P, class S>
    static constexpr auto apply(const C& c, const normalization_attributes& a, const D& dy, const X& x, const P& gamma,
                                const S& sums) {
        const auto& like = detail::first_batched<typename C::tag>(dy, x, gamma, sums);
        auto more = a;
        ++more.first, ++more.last, ++more.examples, ++more.own;
        return c.template run<normalization_gradient_op>(more, nullptr, c.spread(dy, like), c.spread(x, like),
                                                         c.spread(gamma, like), c.spread(sums, like));
    }
};

namespace detail {
/// The batch is another axis before the rows, of all operands.
template <class Op>
struct batched_labels {
    template <class C, class... X>
    static constexpr auto apply(const C& c, const no_attributes& a, const X&... x) {
        const auto& like = first_batched<typename C::tag>(x...);
        return c.template run<Op>(a, nullptr, c.spread(x, like)...);
    }
};
} // namespace detail

template <>
struct batching_rule<sparse_softmax_cross_entropy_op> : detail::batched_labels<sparse_softmax_cross_entropy_op> {};
template <>
struct batching_rule<sparse_softmax_cross_entropy_gradient_op>
    : detail::batched_labels<sparse_softmax_cross_entropy_gradient_op> {};

} // namespace tapegraph
