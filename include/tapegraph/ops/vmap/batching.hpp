#pragma once

#include <tapegraph/ops/refusal.hpp>
#include <tapegraph/ops/vmap/batched.hpp>

/// Batching rules of operations that declare one (`batching`): the batch is an additional leading
/// axis. Elementwise operations and reductions need no rule.

namespace tapegraph {

/// Reductions that are differentiated as a whole arrive as operations.
template <class Op>
    requires whole_reduction<Op>
struct batching_rule<Op> {
    static constexpr auto apply(const auto& c, const typename Op::attributes& a, const auto& x) {
        auto shifted = a;
        shifted.axes <<= 1; // axis 0 is the batch
        return c.template run<Op>(shifted, nullptr, c.whole(x));
    }
};

/// An error for one example is an error for the batch.
template <class Texts, int Arity>
struct batching_rule<detail::refused_op<Texts, Arity>> {
    static constexpr auto apply(const auto& c, const auto& a, const auto&... x) {
        return c.template run<detail::refused_op<Texts, Arity>>(a, nullptr, c.whole(x)...);
    }
};

namespace detail {
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
    static constexpr auto apply(const auto& c, const typename Op::attributes& a, const auto&... x) {
        return c.template run<Op>(a, nullptr, c.whole(x)...);
    }
};
/// The operation has a leading batch axis of its own: both are merged.
template <class Op>
struct batched_images {
    static constexpr auto apply(const auto& c, const auto& a, const auto& x, const auto&... filters) {
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

template <class Op>
    requires(Op::batched == batching::rows)
struct batching_rule<Op> : detail::batched_rows<Op> {};
template <class Op>
    requires(Op::batched == batching::axis)
struct batching_rule<Op> : detail::batched_axis<Op> {};
template <class Op>
    requires(Op::batched == batching::images)
struct batching_rule<Op> : detail::batched_images<Op> {};

} // namespace tapegraph
