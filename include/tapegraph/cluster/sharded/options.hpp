#pragma once

#include <tapegraph/cluster/ranks/tree_sum.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/train/model_base.hpp>
#include <tapegraph/train/traces.hpp>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

namespace tapegraph {

/// Shards a model's training step: `compile<Mode>(model{}, spec, loss{}, adam{}, sharded{.shards =
/// 8})`. Each batch is cut into this many shards of (almost) equal size, a power of two. Their
/// gradients, weighted by their records, are added by one balanced tree, followed by one update of
/// the optimizer. Results depend on the number of shards, but not on the ranks or devices that
/// compute them.
struct sharded {
    int shards = 1;
    compile_options options{};
    /// The ranks that share the shards; their number must divide that of the shards: rank r
    /// computes the r-th part of them. Every rank creates the same model and trains it on the same
    /// data set. It must outlive the model. Null: one process.
    distributed::exchange* ranks = nullptr;
    /// The same ranks by their GPUs, an nccl_exchange created through `ranks`: gradients are added
    /// on the GPUs and sent from GPU to GPU. For models in graph mode on a GPU; null: the CPU adds
    /// them, to the same bits.
    distributed::exchange* devices = nullptr;
};

namespace detail {

/// The mode of models whose step is sharded.
template <class Mode>
struct sharded_mode {};

inline constexpr int most_shards = 32768;

inline void check_shards(int shards, int ranks) {
    if (shards < 1 || shards > most_shards || !std::has_single_bit(static_cast<unsigned>(shards)))
        throw argument_error("shards is " + std::to_string(shards) + ", not a power of two up to 32768");
    if (ranks > 1) distributed::require_tree(ranks, shards);
}

/// The records of shard `shard` of `shards` in a batch of `records`; sizes differ by at most one.
struct shard_range {
    std::int64_t first, count;
    shard_range(std::int64_t records, int shard, int shards)
        : first(records * shard / shards), count(records * (shard + 1) / shards - first) {}
};

/// Random numbers depend on the shard: it is stored in the 16 bits above the step's 32
/// (core/philox.hpp), so that the first shard draws the numbers of a whole batch.
inline random_state random_of_shard(std::uint64_t seed, std::int64_t step, int shard) {
    return {seed, static_cast<std::uint64_t>(step) | static_cast<std::uint64_t>(shard) << 32};
}

/// Views of a shard's records in a batch's columns.
void cut_columns(const buffer_view* columns, std::size_t count, const shard_range& range, buffer_view* to);

/// The number of records of a batch that can be sharded: every column has as many.
std::int64_t records_to_cut(const buffer_view* columns, std::size_t count, int shards, bool ends_epoch);

} // namespace detail
} // namespace tapegraph

namespace tapegraph::detail {

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void cut_columns(const buffer_view* columns, std::size_t count, const shard_range& range,
                               buffer_view* to) {
    for (std::size_t i = 0; i < count; ++i) {
        to[i] = columns[i];
        const std::size_t record =
            columns[i].extents[0] > 0 ? columns[i].bytes() / static_cast<std::size_t>(columns[i].extents[0]) : 0;
        to[i].data = static_cast<std::byte*>(columns[i].data) + static_cast<std::size_t>(range.first) * record;
        to[i].extents[0] = range.count;
    }
}

TG_DEFINITION std::int64_t records_to_cut(const buffer_view* columns, std::size_t count, int shards, bool ends_epoch) {
    for (std::size_t i = 0; i < count; ++i)
        if (columns[i].rank == 0 || columns[i].extents[0] != columns[0].extents[0])
            throw shape_error("shards: column " + std::to_string(i) + " of the batch has " +
                              (columns[i].rank == 0 ? std::string("no axis of records")
                                                    : std::to_string(columns[i].extents[0]) + " records, the first " +
                                                          std::to_string(columns[0].extents[0])));
    const std::int64_t records = columns[0].extents[0];
    if (records < shards && !ends_epoch)
        throw argument_error("shards: a batch of " + std::to_string(records) + " records cannot be cut into " +
                             std::to_string(shards) + " shards");
    return records;
}

#endif

} // namespace tapegraph::detail
