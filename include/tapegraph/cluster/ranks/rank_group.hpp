#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>
#include <tapegraph/core/component.hpp>

#include <algorithm>

namespace tapegraph::distributed {

/// Some ranks of an exchange as an exchange of their own, numbered in their order: the workers of a
/// cluster. Every member constructs one, with the same members, and uses it on the thread of the
/// underlying exchange.
class rank_group final : public exchange {
public:
    /// A group uses this many channels of the underlying exchange, starting at `first_channel`;
    /// groups that share members start elsewhere.
    static constexpr int channels = 1024;

    /// Throws range_error for an unknown rank, argument_error for a duplicate one, or if this one
    /// is not among them.
    rank_group(exchange& underlying, std::vector<int> members, int first_channel = channels);
    std::string name() const override { return std::to_string(size()) + " ranks of " + underlying_->name(); }
    double now() const override { return underlying_->now(); }
    /// The rank in the underlying exchange of a member.
    int member(int rank) const { return members_.at(static_cast<std::size_t>(rank)); }

protected:
    void start_pair(int slot, int peer, std::span<const std::byte> send, std::span<std::byte> receive,
                    int channel) override;
    bool finished(int slot) override { return underlying_->test(requests_[static_cast<std::size_t>(slot)]); }
    void poll() override { underlying_->progress(); }
    void cancel_pair(int slot) noexcept override {
        if (static_cast<std::size_t>(slot) < requests_.size())
            underlying_->cancel(requests_[static_cast<std::size_t>(slot)]);
    }

private:
    static int place_in(const exchange& underlying, const std::vector<int>& members);

    exchange* underlying_;
    std::vector<int> members_;
    std::vector<request> requests_;
    int first_channel_;
};

#if TG_DEFINES(cluster)

TG_DEFINITION rank_group::rank_group(exchange& underlying, std::vector<int> members, int first_channel)
    : exchange(place_in(underlying, members), static_cast<int>(members.size())),
      underlying_(&underlying),
      members_(std::move(members)),
      first_channel_(first_channel) {
    set_deadline(underlying.deadline());
    for (std::size_t i = 0; i < members_.size(); ++i)
        if (members_[i] == underlying.chief()) set_chief(static_cast<int>(i));
}

TG_DEFINITION void rank_group::start_pair(int slot, int peer, std::span<const std::byte> send,
                                          std::span<std::byte> receive, int channel) {
    if (channel >= channels)
        throw exchange_error("exchange: a group of ranks has " + std::to_string(channels) + " channels; " +
                             std::string(label_of(slot)) + " is one too many");
    if (requests_.size() <= static_cast<std::size_t>(slot)) requests_.resize(static_cast<std::size_t>(slot) + 1);
    underlying_->set_step(step());
    requests_[static_cast<std::size_t>(slot)] =
        underlying_->start(member(peer), send, receive, first_channel_ + channel, label_of(slot));
}

TG_DEFINITION int rank_group::place_in(const exchange& underlying, const std::vector<int>& members) {
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (members[i] < 0 || members[i] >= underlying.size())
            throw range_error("rank_group: no rank " + std::to_string(members[i]) + " among " +
                              std::to_string(underlying.size()));
        if (std::find(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(i), members[i]) !=
            members.begin() + static_cast<std::ptrdiff_t>(i))
            throw argument_error("rank_group: rank " + std::to_string(members[i]) + " appears twice");
    }
    const auto own = std::find(members.begin(), members.end(), underlying.rank());
    if (own == members.end())
        throw argument_error("rank_group: rank " + std::to_string(underlying.rank()) + " is not in the group");
    return static_cast<int>(own - members.begin());
}

#endif

} // namespace tapegraph::distributed
