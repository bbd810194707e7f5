#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>
#include <tapegraph/core/component.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

/// A simulated network: ranks are threads of which one runs at a time, the one whose virtual clock
/// is behind all others'. So times are the same on every machine under any load, the wait of a step
/// is an exact number, and a peer that is silent for ten minutes is tested in no time.

namespace tapegraph::distributed {

/// Every rank's connection: full duplex, with one message per direction at a time, to a switch that
/// is never the bottleneck.
struct imitated_link {
    double bits_per_second = 10e9;
    double latency = 50e-6;       ///< seconds until the first bit arrives
    double jitter = 0;            ///< maximum additional seconds, random for each message, which reorders their arrival
    std::uint64_t seed = 0;       ///< of the random numbers
    double poll_seconds = 100e-9; ///< the duration of one poll
};

class imitated_network;

/// A rank on the network, with a clock of its own.
class imitated_exchange final : public exchange {
public:
    imitated_exchange(imitated_network& network, int rank, int size) : exchange(rank, size), network_(network) {}

    std::string name() const override { return "imitated network"; }
    double now() const override { return clock_; }
    /// Computes for this many seconds, and calls progress every `between` seconds, like
    /// parallel_for between tasks.
    void compute(double seconds, double between = 1e-3);
    /// Seconds that this rank only waited: the exposed part of the exchanges.
    double waited() const { return waited_; }

protected:
    void start_pair(int slot, int peer, std::span<const std::byte> send, std::span<std::byte> receive,
                    int channel) override;
    bool finished(int slot) override {
        const transfer& of = transfers_[static_cast<std::size_t>(slot)];
        return of.left == 0 && of.end <= clock_;
    }
    void poll() override;
    void cancel_pair(int slot) noexcept override;
    void idle(int looks, double last) override;

private:
    friend class imitated_network;
    struct transfer {
        int left = 0;
        double end = 0;
    };

    imitated_network& network_;
    double clock_ = 0, waited_ = 0;
    bool idle_ = false;
    std::vector<transfer> transfers_;
};

/// The network and its clocks. run_on_network runs f as each of the ranks.
class imitated_network {
public:
    imitated_network(int size, imitated_link link);
    /// The exchange of a rank, from 0.
    imitated_exchange& rank(int which) { return *ranks_.at(static_cast<std::size_t>(which)); }

    /// Waits for a rank's first turn.
    void enter(int rank) {
        std::unique_lock lock(mutex_);
        wait_for_turn(lock, rank);
    }
    /// Called when a rank has ended; a nonempty `why` ends the others, too.
    void leave(int rank, const std::string& why);

private:
    friend class imitated_exchange;
    static constexpr double never = std::numeric_limits<double>::infinity();
    struct post {
        int from, to, channel, slot;
        const std::byte* sent;
        std::byte* wanted;
        std::size_t bytes;
    };

    void pass_on() {
        const auto next = std::min_element(wake_.begin(), wake_.end()) - wake_.begin();
        turn_ = static_cast<int>(next);
        turns_[static_cast<std::size_t>(next)].notify_one();
    }
    void wait_for_turn(std::unique_lock<std::mutex>& lock, int rank) {
        turns_[static_cast<std::size_t>(rank)].wait(lock, [&] { return turn_ == rank; });
        imitated_exchange& mine = *ranks_[static_cast<std::size_t>(rank)];
        mine.clock_ = std::max(mine.clock_, wake_[static_cast<std::size_t>(rank)]);
    }
    // The running rank continues at `when`, after all whose time is earlier.
    void sleep_until(int rank, double when) {
        std::unique_lock lock(mutex_);
        wake_[static_cast<std::size_t>(rank)] = when;
        pass_on();
        wait_for_turn(lock, rank);
        if (!reason_.empty()) throw exchange_error(reason_);
    }
    double random_delay() {
        if (link_.jitter == 0) return 0;
        std::uint64_t x = link_.seed * 0x9E3779B97F4A7C15u + ++messages_;
        for (int i = 0; i < 3; ++i) x = (x ^ x >> 31) * 0xD6E8FEB86659FD93u;
        return link_.jitter * static_cast<double>(x >> 11) * 0x1p-53;
    }
    // Only the rank with the turn gets here.
    void meet(const post& mine, bool sends);
    void finish(int rank, int slot, double end);

    imitated_link link_;
    std::mutex mutex_;
    std::unique_ptr<std::condition_variable[]> turns_;
    int turn_ = 0;
    std::uint64_t messages_ = 0;
    std::string reason_;
    std::vector<std::unique_ptr<imitated_exchange>> ranks_;
    std::vector<double> wake_, out_free_, in_free_;
    std::vector<post> sends_, receives_;
};

inline void imitated_exchange::compute(double seconds, double between) {
    const double end = clock_ + seconds;
    while (clock_ < end) {
        network_.sleep_until(rank(), std::min(end, clock_ + between));
        progress();
    }
}
inline void imitated_exchange::poll() { network_.sleep_until(rank(), clock_ + network_.link_.poll_seconds); }
/// Runs f(imitated_exchange&) as `size` ranks of a network. If one throws, the others' exchanges
/// do, too; the first exception is rethrown here.
template <class F>
void run_on_network(int size, imitated_link link, const F& f) {
    imitated_network network(size, link);
    std::exception_ptr first; // one runs at a time
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r)
        threads.emplace_back([&, r] {
            std::string why;
            network.enter(r);
            try {
                f(network.rank(r));
            } catch (const std::exception& e) {
                if (!first) first = std::current_exception();
                why = "exchange: rank " + std::to_string(r) + " ended: " + e.what();
            }
            network.leave(r, why);
        });
    for (std::thread& each : threads) each.join();
    if (first) std::rethrow_exception(first);
}

#if TG_DEFINES(cluster)

TG_DEFINITION imitated_network::imitated_network(int size, imitated_link link) : link_(link) {
    if (size < 1) throw argument_error("imitated_network: " + std::to_string(size) + " ranks; expected at least 1");
    if (!(link.bits_per_second > 0) || !(link.latency >= 0) || !(link.jitter >= 0) || !(link.poll_seconds > 0))
        throw argument_error(
            "imitated_network: bits_per_second and poll_seconds are above 0, latency and jitter not below");
    const auto n = static_cast<std::size_t>(size);
    for (int r = 0; r < size; ++r) ranks_.push_back(std::make_unique<imitated_exchange>(*this, r, size));
    wake_.resize(n, 0);
    out_free_.resize(n, 0);
    in_free_.resize(n, 0);
    turns_ = std::make_unique<std::condition_variable[]>(n);
}

TG_DEFINITION void imitated_network::leave(int rank, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!why.empty() && reason_.empty()) {
        reason_ = why;
        for (double& each : wake_) each = std::min(each, ranks_[static_cast<std::size_t>(rank)]->clock_);
    }
    wake_[static_cast<std::size_t>(rank)] = never;
    pass_on();
}

TG_DEFINITION void imitated_network::meet(const post& mine, bool sends) {
    std::vector<post>& others = sends ? receives_ : sends_;
    for (auto other = others.begin(); other != others.end(); ++other) {
        if (other->from != mine.from || other->to != mine.to || other->channel != mine.channel) continue;
        const post& sent = sends ? mine : *other;
        const post& wanted = sends ? *other : mine;
        if (sent.bytes != wanted.bytes)
            throw exchange_error("exchange: rank " + std::to_string(mine.from) + " sends " +
                                 std::to_string(sent.bytes) + " bytes, rank " + std::to_string(mine.to) + " expects " +
                                 std::to_string(wanted.bytes));
        std::memcpy(wanted.wanted, sent.sent, sent.bytes);
        const auto from = static_cast<std::size_t>(mine.from), to = static_cast<std::size_t>(mine.to);
        const double now = ranks_[sends ? from : to]->clock_;
        const double begin = std::max({now, out_free_[from], in_free_[to]});
        const double end = begin + 8 * static_cast<double>(sent.bytes) / link_.bits_per_second;
        out_free_[from] = in_free_[to] = end;
        finish(mine.from, sent.slot, end);
        finish(mine.to, wanted.slot, end + link_.latency + random_delay());
        others.erase(other);
        return;
    }
    (sends ? sends_ : receives_).push_back(mine);
}

TG_DEFINITION void imitated_network::finish(int rank, int slot, double end) {
    const auto r = static_cast<std::size_t>(rank);
    imitated_exchange::transfer& of = ranks_[r]->transfers_[static_cast<std::size_t>(slot)];
    of.end = std::max(of.end, end);
    // A rank that waits for its last message wakes then.
    if (--of.left == 0 && ranks_[r]->idle_) wake_[r] = std::min(wake_[r], of.end);
}

TG_DEFINITION void imitated_exchange::start_pair(int slot, int peer, std::span<const std::byte> send,
                                                 std::span<std::byte> receive, int channel) {
    if (transfers_.size() <= static_cast<std::size_t>(slot)) transfers_.resize(static_cast<std::size_t>(slot) + 1);
    transfers_[static_cast<std::size_t>(slot)] = {!send.empty() + !receive.empty(), clock_};
    if (!receive.empty()) network_.meet({peer, rank(), channel, slot, nullptr, receive.data(), receive.size()}, false);
    if (!send.empty()) network_.meet({rank(), peer, channel, slot, send.data(), nullptr, send.size()}, true);
}

TG_DEFINITION void imitated_exchange::cancel_pair(int slot) noexcept {
    const auto mine = [&](const imitated_network::post& each, int end) { return end == rank() && each.slot == slot; };
    std::erase_if(network_.sends_, [&](const auto& each) { return mine(each, each.from); });
    std::erase_if(network_.receives_, [&](const auto& each) { return mine(each, each.to); });
}

TG_DEFINITION void imitated_exchange::idle(int, double last) {
    double when = last;
    for (const transfer& each : transfers_)
        if (each.left == 0 && each.end > clock_) when = std::min(when, each.end);
    const double before = clock_;
    idle_ = true;
    try {
        network_.sleep_until(rank(), std::max(when, clock_ + network_.link_.poll_seconds));
    } catch (...) {
        idle_ = false;
        throw;
    }
    idle_ = false;
    waited_ += clock_ - before;
}

#endif

} // namespace tapegraph::distributed
