#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>
#include <tapegraph/core/component.hpp>

#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

/// Threads of one process as ranks: for tests, and for several devices in one process. A message is
/// one copy, made by the side that comes second.

namespace tapegraph::distributed {

/// The ranks of a process. Each rank's exchange is used by one thread at a time.
class thread_group {
public:
    /// Throws argument_error for less than one rank.
    explicit thread_group(int size);

    int size() const { return size_; }
    /// The exchange of a thread, from 0.
    exchange& rank(int which) { return *ranks_.at(static_cast<std::size_t>(which)); }

    /// Ends the job: all later and waiting operations of ranks throw exchange_error with this
    /// reason. The first reason counts.
    void abort(const std::string& why) {
        const std::lock_guard lock(mutex_);
        if (aborted_.load(std::memory_order_relaxed)) return;
        reason_ = why;
        aborted_.store(true, std::memory_order_release);
    }
    /// Whether `abort` has ended the job.
    bool aborted() const { return aborted_.load(std::memory_order_acquire); }

private:
    using counter = std::atomic<int>;
    struct post {
        int channel;
        const std::byte* from;
        std::byte* to;
        std::size_t bytes;
        counter* left;
    };
    struct mailbox {
        mailbox() {
            sends.reserve(8);
            receives.reserve(8);
        }
        std::mutex mutex;
        std::vector<post> sends, receives;
    };

    class thread_exchange final : public exchange {
    public:
        thread_exchange(thread_group& group, int rank) : exchange(rank, group.size_), group_(group) {}
        std::string name() const override { return "threads"; }

    protected:
        void start_pair(int slot, int peer, std::span<const std::byte> send, std::span<std::byte> receive,
                        int channel) override;
        bool finished(int slot) override {
            return left_[static_cast<std::size_t>(slot)].load(std::memory_order_acquire) == 0;
        }
        void poll() override { group_.check(); }
        void cancel_pair(int slot) noexcept override {
            if (left_.size() <= static_cast<std::size_t>(slot)) return;
            counter& left = left_[static_cast<std::size_t>(slot)];
            group_.forget(rank(), peer_of(slot), left);
            left.store(0, std::memory_order_relaxed);
        }

    private:
        thread_group& group_;
        std::deque<counter> left_; // addresses are stable
    };

    mailbox& between(int from, int to) {
        return mailboxes_[static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) +
                          static_cast<std::size_t>(to)];
    }
    void check() {
        if (!aborted()) return;
        const std::lock_guard lock(mutex_);
        throw exchange_error(reason_);
    }
    // A side of a message: copies if the other side waits, otherwise waits for it.
    void meet(int from, int to, bool sends, const post& mine);
    void forget(int rank, int peer, const counter& which) noexcept;

    int size_;
    std::unique_ptr<mailbox[]> mailboxes_;
    std::vector<std::unique_ptr<thread_exchange>> ranks_;
    std::mutex mutex_;
    std::string reason_;
    std::atomic<bool> aborted_{false};
};

/// Runs f(exchange&) as `size` ranks, each on a thread of its own, and waits for all. If one
/// throws, the others' exchanges do, too; the first exception is rethrown here.
template <class F>
void run_ranks(int size, const F& f) {
    thread_group group(size);
    std::mutex mutex;
    std::exception_ptr first;
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r)
        threads.emplace_back([&, r] {
            const auto failed = [&](const char* what) {
                {
                    const std::lock_guard lock(mutex);
                    if (!first) first = std::current_exception();
                }
                group.abort("exchange: rank " + std::to_string(r) + " ended: " + what);
            };
            try {
                f(group.rank(r));
            } catch (const std::exception& e) {
                failed(e.what());
            } catch (...) {
                failed("an exception of an unknown type");
            }
        });
    for (std::thread& each : threads) each.join();
    if (first) std::rethrow_exception(first);
}

#if TG_DEFINES(cluster)

TG_DEFINITION thread_group::thread_group(int size) : size_(size) {
    if (size < 1) throw argument_error("thread_group: " + std::to_string(size) + " ranks; expected at least 1");
    mailboxes_ = std::make_unique<mailbox[]>(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r) ranks_.push_back(std::make_unique<thread_exchange>(*this, r));
}

TG_DEFINITION void thread_group::thread_exchange::start_pair(int slot, int peer, std::span<const std::byte> send,
                                                             std::span<std::byte> receive, int channel) {
    group_.check();
    while (left_.size() <= static_cast<std::size_t>(slot)) left_.emplace_back(0);
    counter& left = left_[static_cast<std::size_t>(slot)];
    left.store(!send.empty() + !receive.empty(), std::memory_order_relaxed);
    if (!receive.empty()) group_.meet(peer, rank(), false, {channel, nullptr, receive.data(), receive.size(), &left});
    if (!send.empty()) group_.meet(rank(), peer, true, {channel, send.data(), nullptr, send.size(), &left});
}

TG_DEFINITION void thread_group::meet(int from, int to, bool sends, const post& mine) {
    mailbox& box = between(from, to);
    const std::lock_guard lock(box.mutex);
    std::vector<post>& others = sends ? box.receives : box.sends;
    for (auto other = others.begin(); other != others.end(); ++other) {
        if (other->channel != mine.channel) continue;
        const post& sent = sends ? mine : *other;
        const post& wanted = sends ? *other : mine;
        if (sent.bytes != wanted.bytes) {
            abort("exchange: rank " + std::to_string(from) + " sends " + std::to_string(sent.bytes) + " bytes, rank " +
                  std::to_string(to) + " expects " + std::to_string(wanted.bytes) + " (channel " +
                  std::to_string(mine.channel) + ")");
            return;
        }
        std::memcpy(wanted.to, sent.from, sent.bytes);
        other->left->fetch_sub(1, std::memory_order_release);
        mine.left->fetch_sub(1, std::memory_order_release);
        others.erase(other);
        return;
    }
    (sends ? box.sends : box.receives).push_back(mine);
}

TG_DEFINITION void thread_group::forget(int rank, int peer, const counter& which) noexcept {
    const auto drop = [&](mailbox& box) {
        const std::lock_guard lock(box.mutex);
        for (std::vector<post>* posts : {&box.sends, &box.receives})
            std::erase_if(*posts, [&](const post& each) { return each.left == &which; });
    };
    drop(between(rank, peer));
    drop(between(peer, rank));
}

#endif

} // namespace tapegraph::distributed
