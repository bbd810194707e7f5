#pragma once

#include <tapegraph/ops/shards/sum_over_shards.hpp>
#include <tapegraph/ops/vmap/batched.hpp>

/// Sums over shards under vmap: one sum for the whole batch of examples.

namespace tapegraph {

template <>
struct batching_rule<sum_over_shards_op> {
    template <class C, class X>
    static constexpr auto apply(const C& c, const sum_over_shards_op::attributes& a, const X& x) {
        return c.template run<sum_over_shards_op>(a, nullptr, c.whole(x));
    }
};

} // namespace tapegraph
