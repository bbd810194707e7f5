#pragma once

#include <tapegraph/cluster/cluster_spec.hpp>
#include <tapegraph/cluster/ranks/agreement.hpp>
#include <tapegraph/cluster/ranks/collectives.hpp>
#include <tapegraph/core/component.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Sends values between the tasks of a cluster as messages between ranks.

namespace tapegraph::distributed {

/// Messages over an exchange between the computing tasks of a cluster; `members`: the number of
/// each in the cluster. All of these must outlive it.
class task_messages {
public:
    /// A message in flight.
    using message = int;

    task_messages(exchange& ranks, const cluster_spec& cluster, const std::vector<int>& members)
        : ranks_(&ranks), cluster_(&cluster), members_(&members) {}
    task_messages(const task_messages&) = delete;
    task_messages& operator=(const task_messages&) = delete;
    ~task_messages() {
        for (request& each : under_way_) ranks_->cancel(each);
    }

    /// The number of this process, from 0.
    int rank() const { return ranks_->rank(); }
    int size() const { return ranks_->size(); }
    /// The rank of the chief.
    int chief() const { return ranks_->chief(); }
    /// The rank of a computing task by its name. Throws range_error or argument_error where the
    /// cluster has no such task.
    int rank_of(std::string_view task) const;
    /// The task of a rank as text, for messages.
    std::string name_of(int rank) const {
        return cluster_->task_of((*members_)[static_cast<std::size_t>(rank)]).text();
    }
    /// The step that errors name.
    void set_step(std::int64_t step) { ranks_->set_step(step); }

    /// Opens channels numbered below `count`. Every rank asks for as many, in the same order of
    /// calls.
    void open_channels(int count);
    /// Starts sending, or receiving. Messages of one channel between two ranks arrive in the order
    /// in which they were started. The bytes, the buffer that receives them, and the label must
    /// live until the message is done.
    message send(int to, std::span<const std::byte> bytes, int channel, std::string_view label) {
        return keep(ranks_->start(to, bytes, {}, channels_.at(static_cast<std::size_t>(channel)), label));
    }
    /// Starts to receive from a rank into `bytes`, which must live until the message has arrived.
    message receive(int from, std::span<std::byte> bytes, int channel, std::string_view label) {
        return keep(ranks_->start(from, {}, bytes, channels_.at(static_cast<std::size_t>(channel)), label));
    }
    /// Waits until the message is done. Throws exchange_error at the deadline.
    void wait(message which) {
        ranks_->wait(under_way_[static_cast<std::size_t>(which)]);
        free_.push_back(which);
    }
    /// Gives up a message that may never arrive.
    void cancel(message which) noexcept {
        ranks_->cancel(under_way_[static_cast<std::size_t>(which)]);
        free_.push_back(which); // has capacity: either one was taken from it, or it has grown with under_way_
    }
    /// Advances messages in flight, without waiting.
    void progress() { ranks_->progress(); }
    /// Sends bytes from one rank to all others; every rank calls it.
    void broadcast(int from, std::span<std::byte> bytes, const std::string& label) {
        distributed::broadcast(*ranks_, from, bytes, label);
    }
    /// Returns when every rank has called it.
    void barrier(const std::string& label) { distributed::barrier(*ranks_, label); }
    /// Throws exchange_error on every rank if ranks differ in one of these fields, which are names
    /// and hashes.
    void agree(std::span<const std::pair<std::string_view, std::uint64_t>> fields) {
        std::vector<agreed_field> all;
        for (const auto& [name, hash] : fields) all.push_back({std::string(name), hash, {}});
        distributed::agree(*ranks_, std::span<const agreed_field>(all));
    }

private:
    static constexpr int most_channels = 960; // of a rank_group's 1,024; the rest have other uses

    message keep(request of);

    exchange* ranks_;
    const cluster_spec* cluster_;
    const std::vector<int>* members_;
    std::vector<int> channels_;
    std::vector<request> under_way_;
    std::vector<message> free_;
};

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION int task_messages::rank_of(std::string_view task) const {
    const task_name name = parse_task_name(task);
    const auto at = std::find(members_->begin(), members_->end(), cluster_->rank_of(name));
    if (at == members_->end()) throw argument_error("tasks: " + name.text() + " computes no part of a model");
    return static_cast<int>(at - members_->begin());
}

TG_DEFINITION void task_messages::open_channels(int count) {
    if (count > most_channels)
        throw exchange_error("tasks: a program has " + std::to_string(count - 1) +
                             " values that go from task to task; " + std::to_string(most_channels - 1) + " can");
    while (static_cast<int>(channels_.size()) < count) channels_.push_back(ranks_->open_channel());
}

TG_DEFINITION task_messages::message task_messages::keep(request of) {
    if (free_.empty()) {
        under_way_.push_back(of);
        free_.reserve(under_way_.capacity());
        return static_cast<message>(under_way_.size()) - 1;
    }
    const message at = free_.back();
    free_.pop_back();
    under_way_[static_cast<std::size_t>(at)] = of;
    return at;
}

#endif

} // namespace tapegraph::distributed
