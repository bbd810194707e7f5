#pragma once

#include <tapegraph/nn/layers/normalization.hpp>
#include <tapegraph/ops/shards/sum_over_shards.hpp>

/// Batch normalization with statistics of the whole batch where a step is sharded. Not part of
/// tapegraph.hpp:
///
///     auto h = tg::batch_normalization(scope / "norm", x, {.momentum = 0.9}, tg::synchronized);

namespace tapegraph {

/// Follows the options of batch normalization: mean and variance are those of all shards (Keras's
/// synchronized=True, PyTorch's SyncBatchNorm).
struct synchronized_t {};
inline constexpr synchronized_t synchronized{};

/// Like `batch_normalization`. The shards of a process run in parallel, each with an arena of its
/// own, and wait for each other five times per layer and step. Without sharding the numbers are
/// those of batch_normalization, bit for bit.
template <class Scope, tensor_like X>
constexpr auto batch_normalization(const Scope& scope, const X& x, const batch_normalization_options& o, synchronized_t,
                                   std::source_location where = std::source_location::current()) {
    return detail::normalized_batch(
        scope, x, o, where, [&](const auto& values, const auto& input, const axes& leading) {
            const auto count = detail::shard_extent(input, detail::reduced_size(input, leading));
            const auto total = sum_over_shards(sum(values, leading, {}, where), where);
            return total / sum_over_shards(count, where);
        });
}

} // namespace tapegraph
