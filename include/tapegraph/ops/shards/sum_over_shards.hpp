#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/ops/shards/shard_group.hpp>

/// sum_over_shards: combines values of all shards of a batch.

namespace tapegraph {

struct sum_over_shards_op {
    static constexpr std::string_view name = "sum_over_shards";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
        io.require(io.type == dtype::f32 || io.type == dtype::f64, "sum_over_shards: the operand must be f32 or f64");
    }
    template <int I>
    static constexpr auto vjp(const attributes&, auto dy, auto, auto) {
        return invoke<sum_over_shards_op>({}, nullptr, std::source_location::current(), dy);
    }
    static double flops(const kernel_call&) { return 0; }
};

/// The sum over the shards of a step's batch (cluster/sharded.hpp), of all ranks; x itself where
/// the batch is not sharded: in predictions, evaluations and steps of whole batches. x is float or
/// double, of a shape that is the same on all shards, such as [channels]. Every shard must call it
/// equally often. The derivative by x is the sum of all shards' derivatives.
template <tensor_like X>
constexpr auto sum_over_shards(const X& x, std::source_location where = std::source_location::current()) {
    return invoke<sum_over_shards_op>({}, nullptr, where, eval(x, where));
}

namespace detail {

/// Whether the computation is for a shard of a batch. In the trace of a step that is known at
/// compile time.
template <handle X>
constexpr bool in_shards(const X& x) {
    if constexpr (requires { x.owner(); })
        return x.owner().in_shards;
    else
        return current_shards() != nullptr;
}

/// An extent of this shard as a number of the values' element type.
template <handle X>
constexpr auto shard_extent(const X& values, extent size) {
    const auto nothing = sum(zeros_like(values));
    return eval(nothing + extent_number(nothing, size));
}

} // namespace detail
} // namespace tapegraph
