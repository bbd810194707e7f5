#pragma once

#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/vmap/batched.hpp>

/// Batching rules of matrix products.

namespace tapegraph {

template <>
struct batching_rule<matmul_op> {
    template <class C, class A, class B>
    static constexpr auto apply(const C& c, const matmul_op::attributes& t, const A& a, const B& b) {
        const shape left = shape_of(a), right = shape_of(b);
        const int rank = left.rank() > right.rank() ? left.rank() : right.rank();
        if constexpr (!C::template is_batched<B>) {
            // With one matrix for all examples, their rows become rows of one product.
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

} // namespace tapegraph
