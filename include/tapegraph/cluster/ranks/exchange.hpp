#pragma once

#include <tapegraph/cluster/ranks/sum_kind.hpp>
#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/environment.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <new>
#include <sched.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Communication between ranks. A rank is one participant of a job: a process of MPI, a thread, a
/// GPU. All collective operations are written once, on pairs of messages
/// (cluster/ranks/tree_sum.hpp); a transport only moves pairs of messages.

namespace tapegraph {

/// Ranks that do not agree or do not answer, or a transport that fails; the message names rank,
/// peer, step and the exchanged data.
struct exchange_error : error {
    using error::error;
};

namespace distributed {

/// A pair of messages in flight, until test or wait returns it.
struct request {
    int slot = -1;
    /// Whether it stands for a message that was started.
    bool valid() const { return slot >= 0; }
};

class exchange;

/// An operation of several rounds that exchange::progress advances. It is in flight from
/// exchange::enlist until advance returns true.
class operation {
public:
    operation() = default;
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    virtual ~operation() = default;
    /// Does what is possible without waiting; returns whether the operation is complete.
    virtual bool advance() = 0;
    /// The request that it waits for, for the error at the deadline.
    virtual request pending() const = 0;
};

/// The seconds after which a silent peer is an error: TAPEGRAPH_EXCHANGE_SECONDS, 600 by default.
double deadline_of_environment();

/// The interface between ranks. One thread of a rank calls it. Nothing is allocated once the
/// maximum number of concurrent requests has been reached.
class exchange {
public:
    exchange(int rank, int size);
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    virtual ~exchange() = default;

    /// The number of this participant, from 0.
    int rank() const { return rank_; }
    int size() const { return size_; }
    /// The rank that writes files: checkpoints, logs, events. 0, unless a tg::server selects
    /// another.
    int chief() const { return chief_; }
    /// Whether this rank writes files and logs.
    bool is_chief() const { return rank_ == chief_; }
    /// Says which rank writes files and logs. Throws range_error if there is none.
    void set_chief(int rank) {
        if (rank < 0 || rank >= size_)
            throw range_error("exchange: no rank " + std::to_string(rank) + " among " + std::to_string(size_) +
                              " that could be chief");
        chief_ = rank;
    }

    /// The channel of operations that wait until they are done (barrier, broadcast, ...), one after
    /// the other.
    static constexpr int waiting_channel = 0;
    /// A number carried by all messages of one purpose, by which they are matched: every rank opens
    /// its channels in the same order. Messages of one channel between two ranks arrive in the
    /// order of their start.
    int open_channel() { return channels_++; }

    /// Starts sending these bytes to the peer and receiving as many as the second span holds from
    /// it; either may be empty, and the peer's are reversed. Memory and label must live until the
    /// request is done. Throws range_error for an invalid peer.
    request start(int peer, std::span<const std::byte> send, std::span<std::byte> receive, int channel,
                  std::string_view label);

    /// Advances everything in flight, without waiting. Communication only progresses in this
    /// function: call it regularly.
    void progress();
    /// Makes progress advance an operation until it is done.
    void enlist(operation& which) { operations_.push_back(&which); }
    /// Removes an operation that ends before it is done.
    void dismiss(const operation& which) {
        for (operation*& each : operations_)
            if (each == &which) each = nullptr;
    }

    /// Returns whether a request is done; the request is then empty.
    bool test(request& of) {
        if (!of.valid() || !finished(of.slot)) return !of.valid();
        free_.push_back(std::exchange(of.slot, -1));
        return true;
    }
    /// Waits for a request. Throws exchange_error at the deadline.
    void wait(request& of) {
        wait_until([&] { return test(of); }, [&] { return of; });
    }
    /// Waits for an enlisted operation. `done` is checked after each progress. Throws
    /// exchange_error at the deadline.
    template <class Done>
    void wait(const operation& of, const Done& done) {
        wait_until(done, [&] { return of.pending(); });
    }
    /// Cancels a request whose memory is about to be freed.
    void cancel(request& of) noexcept {
        if (!of.valid()) return;
        cancel_pair(of.slot);
        free_.push_back(std::exchange(of.slot, -1));
    }

    /// Seconds until a silent peer is an error.
    double deadline() const { return deadline_; }
    /// Seconds after which a wait fails. Throws argument_error unless they are positive.
    void set_deadline(double seconds) {
        if (!(seconds > 0))
            throw argument_error("exchange: a deadline of " + number_text(seconds) + " s; expected more than 0");
        deadline_ = seconds;
    }
    /// The step named in errors.
    std::int64_t step() const { return step_; }
    /// The step that messages name when a wait fails.
    void set_step(std::int64_t step) { step_ = step; }
    /// The number of bytes sent so far.
    std::int64_t bytes_sent() const { return bytes_sent_; }

    /// Seconds on the clock that measures deadlines and times of exchanges.
    virtual double now() const { return tapegraph::detail::steady_seconds(); }
    /// Allocates memory for received summands: the CPU's, unless a transport moves device memory.
    virtual void* take(std::size_t bytes) { return ::operator new(bytes); }
    /// Returns memory that the exchange has allocated.
    virtual void give_back(void* at) noexcept { ::operator delete(at); }
    /// sum = left + right for `count` elements, on the device that has them.
    virtual void add(const sum_kind& kind, void* sum, const void* left, const void* right, std::size_t count) {
        kind.add(sum, left, right, count);
    }
    /// Waits until a device's stream has completed its work, if the transport has one. Throws
    /// exchange_error for failures in the meantime.
    virtual void finish() {}
    /// The name of the transport: "threads", "Open MPI 4.1.4".
    virtual std::string name() const = 0;

protected:
    static constexpr std::size_t usual_requests = 32;
    virtual void start_pair(int slot, int peer, std::span<const std::byte> send, std::span<std::byte> receive,
                            int channel) = 0;
    /// Whether both messages of a slot are done.
    virtual bool finished(int slot) = 0;
    virtual void poll() = 0;
    virtual void cancel_pair(int slot) noexcept = 0;
    /// Called between two polls while waiting until `last`: yields the processor, soon for longer.
    virtual void idle(int looks, double last) {
        static_cast<void>(last);
        const ::timespec pause{0, looks < 4096 ? 20'000 : 500'000};
        looks < 256 ? static_cast<void>(::sched_yield()) : static_cast<void>(::nanosleep(&pause, nullptr));
    }
    int peer_of(int slot) const { return slots_[static_cast<std::size_t>(slot)].peer; }
    std::string_view label_of(int slot) const { return slots_[static_cast<std::size_t>(slot)].label; }

private:
    struct pair {
        int peer = -1;
        std::string_view label{};
        std::size_t send = 0, receive = 0;
    };

    template <class Done, class Pending>
    void wait_until(const Done& done, const Pending& pending) {
        const double first = now();
        for (int looks = 0;; ++looks) {
            progress();
            if (done()) return;
            if (now() - first >= deadline_) late(pending(), now() - first);
            idle(looks < (1 << 20) ? looks : 1 << 20, first + deadline_);
        }
    }
    [[noreturn]] void late(request of, double seconds) const {
        const pair which = of.valid() ? slots_[static_cast<std::size_t>(of.slot)] : pair{};
        char time[32];
        const auto end = std::to_chars(time, time + sizeof time, seconds, std::chars_format::fixed, 1);
        throw exchange_error("exchange: rank " + std::to_string(rank_) + " waited " + std::string(time, end.ptr) +
                             " s for rank " + std::to_string(which.peer) + " in step " + std::to_string(step_) + ", " +
                             std::string(which.label) + " (" + std::to_string(which.send) + " bytes to send, " +
                             std::to_string(which.receive) + " to receive)");
    }

    int rank_, size_, chief_ = 0, channels_ = 1;
    bool advancing_ = false;
    double deadline_;
    std::int64_t step_ = 0, bytes_sent_ = 0;
    std::vector<pair> slots_;
    std::vector<int> free_;
    std::vector<operation*> operations_;
};

/// A request on memory that ends with a scope. An exception, for example at the deadline, cancels
/// it, so that no message arrives in memory that is reused by then.
class scoped_request {
public:
    scoped_request(exchange& ranks, request of) : ranks_(&ranks), of_(of) {}
    scoped_request(const scoped_request&) = delete;
    scoped_request& operator=(const scoped_request&) = delete;
    ~scoped_request() { ranks_->cancel(of_); }
    /// Waits until the message has arrived.
    void wait() { ranks_->wait(of_); }

private:
    exchange* ranks_;
    request of_;
};

} // namespace distributed

} // namespace tapegraph

namespace tapegraph::distributed {

#if TG_DEFINES(cluster)

TG_DEFINITION double deadline_of_environment() {
    const char* const text = tapegraph::detail::environment("TAPEGRAPH_EXCHANGE_SECONDS");
    if (text == nullptr) return 600;
    const std::string_view whole = text;
    double seconds = 0;
    const auto end = tapegraph::detail::read_number(whole, seconds);
    if (end.ec != std::errc{} || end.ptr != whole.data() + whole.size() || !(seconds > 0) || !std::isfinite(seconds))
        tapegraph::detail::refuse_environment("TAPEGRAPH_EXCHANGE_SECONDS", text, "seconds above 0");
    return seconds;
}

TG_DEFINITION exchange::exchange(int rank, int size) : rank_(rank), size_(size), deadline_(deadline_of_environment()) {
    // The number of concurrent requests depends on timing, so this reserves more than the first
    // steps happen to need.
    slots_.reserve(usual_requests);
    free_.reserve(usual_requests);
    operations_.reserve(usual_requests);
}

TG_DEFINITION request exchange::start(int peer, std::span<const std::byte> send, std::span<std::byte> receive,
                                      int channel, std::string_view label) {
    if (peer < 0 || peer >= size_ || peer == rank_)
        throw range_error("exchange: rank " + std::to_string(rank_) + " has no peer " + std::to_string(peer) +
                          " among " + std::to_string(size_) + " ranks");
    int slot = 0;
    if (free_.empty()) {
        slot = static_cast<int>(slots_.size());
        slots_.emplace_back();
        free_.reserve(slots_.capacity());
    } else {
        slot = free_.back();
        free_.pop_back();
    }
    slots_[static_cast<std::size_t>(slot)] = {peer, label, send.size(), receive.size()};
    bytes_sent_ += static_cast<std::int64_t>(send.size());
    try {
        start_pair(slot, peer, send, receive, channel);
    } catch (...) {
        cancel_pair(slot); // one of the two may have started
        free_.push_back(slot);
        throw;
    }
    return {slot};
}

TG_DEFINITION void exchange::progress() {
    poll();
    if (advancing_) return; // called from an operation that starts another one
    advancing_ = true;
    try {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < operations_.size(); ++i) { // advance may enlist more
            operation* const each = operations_[i];
            if (each != nullptr && !each->advance()) operations_[kept++] = each;
        }
        operations_.resize(kept);
    } catch (...) {
        operations_.clear();
        advancing_ = false;
        throw;
    }
    advancing_ = false;
}

#endif

} // namespace tapegraph::distributed
