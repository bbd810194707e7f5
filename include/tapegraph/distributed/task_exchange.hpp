#pragma once

#include <tapegraph/core/task_group.hpp>
#include <tapegraph/distributed/agreement.hpp>
#include <tapegraph/distributed/cluster_spec.hpp>
#include <tapegraph/distributed/collectives.hpp>

#include <algorithm>
#include <vector>

/// Sends values between the tasks of a cluster as messages between ranks.

namespace tapegraph::distributed {

/// A task_group over an exchange between the computing tasks of a cluster; `members`: the number of
/// each in the cluster. All of these must outlive it. Created by tg::server.
template <class = void>
class basic_task_exchange final : public task_group {
public:
    basic_task_exchange(exchange& ranks, const cluster_spec& cluster, const std::vector<int>& members)
        : ranks_(&ranks), cluster_(&cluster), members_(&members) {}
    basic_task_exchange(const basic_task_exchange&) = delete;
    basic_task_exchange& operator=(const basic_task_exchange&) = delete;
    ~basic_task_exchange() override {
        for (request& each : under_way_) ranks_->cancel(each);
    }

    int rank() const override { return ranks_->rank(); }
    int size() const override { return ranks_->size(); }
    int chief() const override { return ranks_->chief(); }
    int rank_of(std::string_view task) const override {
        const task_name name = parse_task_name(task);
        const auto at = std::find(members_->begin(), members_->end(), cluster_->rank_of(name));
        if (at == members_->end()) throw argument_error("tasks: " + name.text() + " computes no part of a model");
        return static_cast<int>(at - members_->begin());
    }
    std::string name_of(int rank) const override {
        return cluster_->task_of((*members_)[static_cast<std::size_t>(rank)]).text();
    }
    void set_step(std::int64_t step) override { ranks_->set_step(step); }

    void open_channels(int count) override {
        if (count > most_channels)
            throw exchange_error("tasks: a program has " + std::to_string(count - 1) +
                                 " values that go from task to task; " + std::to_string(most_channels - 1) + " can");
        while (static_cast<int>(channels_.size()) < count) channels_.push_back(ranks_->open_channel());
    }
    message send(int to, std::span<const std::byte> bytes, int channel, std::string_view label) override {
        return keep(ranks_->start(to, bytes, {}, channels_.at(static_cast<std::size_t>(channel)), label));
    }
    message receive(int from, std::span<std::byte> bytes, int channel, std::string_view label) override {
        return keep(ranks_->start(from, {}, bytes, channels_.at(static_cast<std::size_t>(channel)), label));
    }
    void wait(message which) override {
        ranks_->wait(under_way_[static_cast<std::size_t>(which)]);
        free_.push_back(which);
    }
    void cancel(message which) noexcept override {
        ranks_->cancel(under_way_[static_cast<std::size_t>(which)]);
        free_.push_back(which); // has capacity: either one was taken from it, or it has grown with under_way_
    }
    void progress() override { ranks_->progress(); }
    void broadcast(int from, std::span<std::byte> bytes, const std::string& label) override {
        distributed::broadcast(*ranks_, from, bytes, label);
    }
    void barrier(const std::string& label) override { distributed::barrier(*ranks_, label); }
    void agree(std::span<const std::pair<std::string_view, std::uint64_t>> fields) override {
        std::vector<agreed_field> all;
        for (const auto& [name, hash] : fields) all.push_back({std::string(name), hash, {}});
        distributed::agree(*ranks_, std::span<const agreed_field>(all));
    }

private:
    static constexpr int most_channels = 960; // of a rank_group's 1,024; the rest have other uses

    message keep(request of) {
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

    exchange* ranks_;
    const cluster_spec* cluster_;
    const std::vector<int>* members_;
    std::vector<int> channels_;
    std::vector<request> under_way_;
    std::vector<message> free_;
};
using task_exchange = basic_task_exchange<>;

} // namespace tapegraph::distributed
