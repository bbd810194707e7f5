#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

/// What carries values between the tasks of a cluster that compute parts of one model.

namespace tapegraph {

/// The tasks of a cluster as one of them sees the others. `tg::server` makes one: `compile_options{.tasks = server.tasks()}`. All tasks
/// run the same program; a rank is a task's number.
class task_group {
public:
    /// A message under way.
    using message = int;

    virtual ~task_group() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// The rank that computes what no name places, and writes files.
    virtual int chief() const = 0;
    /// Of "/job:worker/replica:0/task:1". Throws range_error or argument_error where the cluster has no such task.
    virtual int rank_of(std::string_view task) const = 0;
    /// "/job:worker/task:1"
    virtual std::string name_of(int rank) const = 0;
    /// The step that errors name.
    virtual void set_step(std::int64_t step) = 0;

    /// Makes room for channels of numbers below this; every rank asks for as many, in the same order of calls.
    virtual void open_channels(int count) = 0;
    /// Begins to send, or to receive. Messages of one channel between two ranks arrive in the order in which they were started. What is
    /// sent, where it is received, and the label must live until the message is done.
    virtual message send(int to, std::span<const std::byte> bytes, int channel, std::string_view label) = 0;
    virtual message receive(int from, std::span<std::byte> bytes, int channel, std::string_view label) = 0;
    /// Throws exchange_error at the deadline.
    virtual void wait(message which) = 0;
    virtual void cancel(message which) noexcept = 0;
    /// Moves messages under way on, without waiting.
    virtual void progress() = 0;
    /// From one rank to all others; on every rank.
    virtual void broadcast(int from, std::span<std::byte> bytes, const std::string& label) = 0;
    /// Until every rank has called it.
    virtual void barrier(const std::string& label) = 0;
    /// Throws exchange_error, the same on every rank, where they differ in one of these; `fields` are names and hashes.
    virtual void agree(std::span<const std::pair<std::string_view, std::uint64_t>> fields) = 0;
};

} // namespace tapegraph
