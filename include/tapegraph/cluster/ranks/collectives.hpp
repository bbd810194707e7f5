#pragma once

#include <tapegraph/cluster/ranks/tree_sum.hpp>
#include <tapegraph/core/component.hpp>

/// Collective operations of ranks other than sums of gradients. Functions wait until they are done.

namespace tapegraph::distributed {

/// Every rank contributes a block of bytes, of any size; all get all blocks, concatenated in order
/// of ranks. Used for rows of sparse gradients in order of shards, and for values that are
/// compared. Memory grows to the largest result and stays.
class block_gather final : public operation {
public:
    block_gather(exchange& ranks, std::string label, int channel = -1);
    ~block_gather() override {
        if (state_ != state::idle) ranks_->dismiss(*this);
        for (request& each : requests_) ranks_->cancel(each);
    }

    /// `block` must stay valid until it is done.
    void start(std::span<const std::byte> block);
    /// Whether all blocks have arrived.
    bool done() const { return state_ == state::idle; }
    /// Waits for all blocks. Throws exchange_error when the deadline has passed.
    void wait() {
        if (!done()) ranks_->wait(*this, [this] { return done(); });
    }
    /// The block contributed by a rank.
    std::span<const std::byte> block(int rank) const {
        const auto r = static_cast<std::size_t>(rank);
        return {all_.data() + offsets_[r], offsets_[r + 1] - offsets_[r]};
    }
    /// All blocks.
    std::span<const std::byte> blocks() const { return {all_.data(), offsets_.back()}; }

    bool advance() override {
        if (state_ == state::idle) return true;
        if (!all_arrived()) return false;
        if (state_ == state::sizes) {
            start_blocks();
            if (!all_arrived()) return false;
        }
        state_ = state::idle;
        return true;
    }
    request pending() const override {
        for (const request& each : requests_)
            if (each.valid()) return each;
        return {};
    }

private:
    enum class state { idle, sizes, blocks };

    template <class F>
    void each_peer(const F& f) {
        // Each rank starts with another one, its neighbour.
        for (int k = 1; k < ranks_->size(); ++k) {
            const int peer = (ranks_->rank() + k) % ranks_->size();
            f(peer, static_cast<std::size_t>(peer));
        }
    }
    bool all_arrived() {
        bool all = true;
        for (request& each : requests_) all = ranks_->test(each) && all;
        return all;
    }
    void start_blocks();

    exchange* ranks_;
    int channel_;
    state state_ = state::idle;
    std::string label_, size_label_, block_label_;
    std::span<const std::byte> own_;
    std::vector<std::size_t> sizes_, offsets_;
    std::vector<request> requests_;
    std::vector<std::byte> all_;
};

/// Sends bytes of one rank to all others, down a binomial tree.
void broadcast(exchange& ranks, int root, std::span<std::byte> bytes, const std::string& label = "broadcast");

/// Returns once all ranks have called it.
void barrier(exchange& ranks, const std::string& label = "barrier");

/// Sums a few values over the ranks by the tree, in place: metrics, norms.
template <class T>
void sum_over_ranks(exchange& ranks, std::span<T> values, const std::string& label = "sum over ranks") {
    tree_sum sum(ranks, values.size(), sum_of<T>, label, exchange::waiting_channel);
    sum.start_all_reduce(values.data());
    sum.wait();
}

#if TG_DEFINES(cluster)

TG_DEFINITION block_gather::block_gather(exchange& ranks, std::string label, int channel)
    : ranks_(&ranks), channel_(channel < 0 ? ranks.open_channel() : channel), label_(std::move(label)) {
    sizes_.resize(static_cast<std::size_t>(ranks.size()));
    offsets_.resize(sizes_.size() + 1);
    requests_.resize(sizes_.size());
    size_label_ = label_ + ", sizes of blocks";
    block_label_ = label_ + ", blocks";
}

TG_DEFINITION void block_gather::start(std::span<const std::byte> block) {
    if (!done()) throw argument_error("block_gather: " + label_ + " was started twice");
    own_ = block;
    const auto mine = static_cast<std::size_t>(ranks_->rank());
    sizes_[mine] = block.size();
    state_ = state::sizes;
    each_peer([&](int peer, std::size_t p) {
        requests_[p] = ranks_->start(peer, std::as_bytes(std::span(&sizes_[mine], 1)),
                                     std::as_writable_bytes(std::span(&sizes_[p], 1)), channel_, size_label_);
    });
    if (!advance()) ranks_->enlist(*this);
}

TG_DEFINITION void block_gather::start_blocks() {
    for (std::size_t r = 0; r < sizes_.size(); ++r) offsets_[r + 1] = offsets_[r] + sizes_[r];
    if (all_.size() < offsets_.back()) all_.resize(offsets_.back());
    std::copy(own_.begin(), own_.end(),
              all_.begin() + static_cast<std::ptrdiff_t>(offsets_[static_cast<std::size_t>(ranks_->rank())]));
    state_ = state::blocks;
    each_peer([&](int peer, std::size_t p) {
        if (own_.empty() && sizes_[p] == 0) return;
        requests_[p] =
            ranks_->start(peer, own_, std::span(all_.data() + offsets_[p], sizes_[p]), channel_, block_label_);
    });
}

TG_DEFINITION void broadcast(exchange& ranks, int root, std::span<std::byte> bytes, const std::string& label) {
    const int channel = exchange::waiting_channel, size = ranks.size();
    if (root < 0 || root >= size)
        throw range_error("broadcast: no rank " + std::to_string(root) + " among " + std::to_string(size));
    if (bytes.empty()) return;
    const int mine = (ranks.rank() - root + size) % size; // the root is number 0
    const auto peer = [&](int number) { return (number + root) % size; };
    int bit = 1;
    for (; bit < size; bit *= 2)
        if ((mine & bit) != 0) {
            scoped_request from(ranks, ranks.start(peer(mine - bit), {}, bytes, channel, label));
            from.wait();
            break;
        }
    for (bit /= 2; bit > 0; bit /= 2)
        if (mine + bit < size) {
            scoped_request to(ranks, ranks.start(peer(mine + bit), bytes, {}, channel, label));
            to.wait();
        }
}

TG_DEFINITION void barrier(exchange& ranks, const std::string& label) {
    const int channel = exchange::waiting_channel, size = ranks.size();
    const std::byte signal{1};
    std::byte heard{};
    // In round k every rank receives from the one 2^k before it (Hensgen, Finkel, Manber 1988);
    // works for any number of ranks.
    for (int distance = 1; distance < size; distance *= 2) {
        const int next = (ranks.rank() + distance) % size, before = (ranks.rank() + size - distance) % size;
        scoped_request to(ranks, ranks.start(next, std::span(&signal, 1), {}, channel, label));
        scoped_request from(ranks, ranks.start(before, {}, std::span(&heard, 1), channel, label));
        from.wait();
        to.wait();
    }
}

#endif

} // namespace tapegraph::distributed
