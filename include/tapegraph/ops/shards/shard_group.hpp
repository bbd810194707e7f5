#pragma once

#include <tapegraph/core/call.hpp>

/// The interface through which the shards of a step exchange sums while they run.

namespace tapegraph {

/// The shards of a batch, seen from one of them.
class shard_group {
public:
    /// Sums `in` over all shards into `out`, matching calls by their order. Returns when every
    /// shard has called it.
    virtual void add(const buffer_view& in, const buffer_view& out) = 0;

protected:
    ~shard_group() = default;
};

namespace detail {
inline shard_group*& shards_of_thread() {
    static constinit thread_local shard_group* current = nullptr;
    return current;
}
} // namespace detail

/// The group of the shard that this thread runs; null where the batch is not sharded.
inline shard_group* current_shards() { return detail::shards_of_thread(); }

/// While it lives, this thread runs a shard of a group.
class shard_scope {
public:
    explicit shard_scope(shard_group* group) : before_(current_shards()) { detail::shards_of_thread() = group; }
    shard_scope(const shard_scope&) = delete;
    shard_scope& operator=(const shard_scope&) = delete;
    ~shard_scope() { detail::shards_of_thread() = before_; }

private:
    shard_group* before_;
};

} // namespace tapegraph
