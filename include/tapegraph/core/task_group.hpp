#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

/// The interface that carries values between the tasks of a cluster that compute parts of one
/// model.

namespace tapegraph {

/// The tasks of a cluster, seen from one of them. `tg::server` makes one: `compile_options{.tasks =
/// server.tasks()}`. All tasks run the same program; a task's rank is its number.
class task_group {
public:
    /// A message in flight.
    using message = int;

    virtual ~task_group() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// The rank that computes whatever no device name places, and that writes files.
    virtual int chief() const = 0;
    /// The rank of "/job:worker/replica:0/task:1". Throws range_error or argument_error where the
    /// cluster has no such task.
    virtual int rank_of(std::string_view task) const = 0;
    /// "/job:worker/task:1"
    virtual std::string name_of(int rank) const = 0;
    /// The step that errors name.
    virtual void set_step(std::int64_t step) = 0;

    /// Opens channels numbered below `count`. Every rank asks for as many, in the same order of
    /// calls.
    virtual void open_channels(int count) = 0;
    /// Starts sending, or receiving. Messages of one channel between two ranks arrive in the order
    /// in which they were started. The bytes, the buffer that receives them, and the label must
    /// live until the message is done.
    virtual message send(int to, std::span<const std::byte> bytes, int channel, std::string_view label) = 0;
    virtual message receive(int from, std::span<std::byte> bytes, int channel, std::string_view label) = 0;
    /// Waits until the message is done. Throws exchange_error at the deadline.
    virtual void wait(message which) = 0;
    virtual void cancel(message which) noexcept = 0;
    /// Advances messages in flight, without waiting.
    virtual void progress() = 0;
    /// Sends bytes from one rank to all others; every rank calls it.
    virtual void broadcast(int from, std::span<std::byte> bytes, const std::string& label) = 0;
    /// Returns when every rank has called it.
    virtual void barrier(const std::string& label) = 0;
    /// Throws exchange_error on every rank if ranks differ in one of these fields, which are names
    /// and hashes.
    virtual void agree(std::span<const std::pair<std::string_view, std::uint64_t>> fields) = 0;
};

} // namespace tapegraph
