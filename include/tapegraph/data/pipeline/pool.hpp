#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/eager/storage.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// The threads of a pipeline. Whichever thread has its turn draws rows in order, and makes them
/// while the next one draws; slots are returned in order, or as they become ready. The number of
/// slots limits how far the threads run ahead of the consumer.

namespace tapegraph::data::detail {

/// The work of a pool.
class pool_work {
public:
    /// Prepares slot `slot` to be filled again.
    virtual void open(std::size_t slot) = 0;
    /// Draws the ticket of row `row`; returns false at the end. Called by one thread at a time, in
    /// order.
    virtual bool draw(std::size_t slot, std::int64_t row) = 0;
    /// Makes a drawn row, on any thread.
    virtual void make(std::size_t slot, std::int64_t row) = 0;
    /// Called once, on any thread, when all `count` rows of a slot are made.
    virtual void finish(std::size_t, std::int64_t) {}

protected:
    ~pool_work() = default;
};

struct pool_options {
    int threads = 0;       ///< 0: take() does the work
    std::size_t slots = 1; ///< the consumer keeps one of them
    std::int64_t rows = 1; ///< rows per slot
    bool drop = false;     ///< drop an incomplete last slot
    bool ordered = true;   ///< false: slots as they become ready
};

class worker_pool {
public:
    template <class Mistake = no_such_option_in<pool_options>>
    explicit worker_pool(any_argument, ...) = delete;
    worker_pool(pool_work& work, const pool_options& options)
        : work_(work),
          options_(options),
          chunk_(options.threads < 2 ? options.rows
                                     : std::clamp<std::int64_t>(options.rows / (4 * options.threads), 1, 16)),
          slots_(options.slots) {}
    worker_pool(const worker_pool&) = delete;
    worker_pool& operator=(const worker_pool&) = delete;
    ~worker_pool() { stop(); }

    /// Starts the threads, with nothing drawn. Call stop() first.
    void start();
    /// Stops all threads; rows in progress are finished and dropped.
    void stop() {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        turn_.notify_all();
        for (std::thread& t : threads_) t.join();
        threads_.clear();
    }

    /// Gets the next slot and its number of rows; returns false at the end. The previous slot
    /// becomes free. Throws the exception of a row, the first by number, after the slots before it.
    bool take(std::size_t& which, std::int64_t& count);

private:
    static constexpr std::size_t none = ~std::size_t{0};
    struct slot {
        std::int64_t number = 0, count = 0, pending = 0, failed_row = 0;
        bool used = false, sealed = false, finished = false;
        std::exception_ptr failure;
    };

    void release() {
        if (held_ == none) return;
        slots_[held_] = {};
        held_ = none;
        turn_.notify_one();
    }
    static bool ready(const slot& s) { return s.used && s.sealed && s.pending == 0; }
    // Loses nothing when slots are returned out of order: those with rows come before the empty one
    // at the end, and before failures.
    std::size_t ready_slot() const;
    bool over() const {
        if (!ended_) return false;
        for (const slot& s : slots_)
            if (s.used) return false;
        return true;
    }
    std::size_t free_slot() const {
        if (options_.ordered) {
            const auto next = static_cast<std::size_t>(opened_) % slots_.size();
            return slots_[next].used ? none : next;
        }
        for (std::size_t i = 0; i < slots_.size(); ++i)
            if (!slots_[i].used) return i;
        return none;
    }
    bool may_draw() const { return !ended_ && !drawing_ && (current_ != none || free_slot() != none); }

    void note(slot& s, std::int64_t row, std::exception_ptr failure) {
        if (!s.failure || row < s.failed_row) {
            s.failed_row = row;
            s.failure = std::move(failure);
        }
        ended_ = true; // drawn rows are still made; earlier rows may still fail
        if (!drawing_) seal();
    }
    void seal() {
        if (current_ == none) return;
        slot& s = slots_[current_];
        s.sealed = true;
        s.count = options_.drop && filled_ < options_.rows ? 0 : filled_;
        current_ = none;
        filled_ = 0;
    }

    // The remaining work of a slot after its last row is made, on whichever thread made it.
    void finish(std::unique_lock<std::mutex>& lock, std::size_t at);

    // Draws some rows and makes them.
    void turn(std::unique_lock<std::mutex>& lock);

    void run();

    pool_work& work_;
    pool_options options_;
    std::int64_t chunk_;
    std::vector<slot> slots_;
    std::mutex mutex_;
    std::condition_variable ready_, turn_;
    std::int64_t opened_ = 0, taken_ = 0, filled_ = 0;
    std::size_t current_ = none, held_ = none; ///< the slot being filled, and the consumer's
    bool ended_ = false, drawing_ = false;
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

#if TG_DEFINES(data)

TG_DEFINITION void worker_pool::start() {
    for (slot& s : slots_) s = {};
    opened_ = taken_ = 0;
    current_ = held_ = none;
    filled_ = 0;
    ended_ = drawing_ = false;
    stop_ = false;
    try {
        for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { run(); });
    } catch (...) {
        stop();
        throw;
    }
}

TG_DEFINITION bool worker_pool::take(std::size_t& which, std::int64_t& count) {
    std::unique_lock lock(mutex_);
    release();
    std::size_t found = none;
    const auto settled = [&] { return (found = ready_slot()) != none || over(); };
    if (options_.threads == 0) {
        while (!settled()) turn(lock);
    } else {
        if (!settled()) ready_.wait(lock, settled);
    }
    if (found == none) return false;
    slot& s = slots_[found];
    if (s.failure) std::rethrow_exception(s.failure);
    if (s.count == 0) return false;
    finish(lock, found); // if a failure elsewhere ended it early
    if (s.failure) std::rethrow_exception(s.failure);
    held_ = which = found;
    count = s.count;
    ++taken_;
    return true;
}

TG_DEFINITION std::size_t worker_pool::ready_slot() const {
    if (options_.ordered) {
        const auto next = static_cast<std::size_t>(taken_) % slots_.size();
        return ready(slots_[next]) && slots_[next].number == taken_ ? next : none;
    }
    std::size_t best = none;
    bool waiting = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const slot& s = slots_[i];
        if (!s.used || i == held_) continue;
        if (!ready(s)) {
            waiting = true;
            continue;
        }
        const auto order = [](const slot& x) { return x.failure ? 1 : x.count == 0 ? 2 : 0; };
        if (best == none || order(s) < order(slots_[best]) ||
            (order(s) == order(slots_[best]) && slots_[best].number > s.number))
            best = i;
    }
    if (best != none && waiting && (slots_[best].failure || slots_[best].count == 0)) return none;
    return best;
}

TG_DEFINITION void worker_pool::finish(std::unique_lock<std::mutex>& lock, std::size_t at) {
    slot& s = slots_[at];
    if (!ready(s) || s.finished || s.failure || s.count == 0 || stop_) return;
    s.finished = true;
    s.pending = 1;
    const std::int64_t count = s.count;
    lock.unlock();
    std::exception_ptr failure;
    try {
        work_.finish(at, count);
    } catch (...) {
        failure = std::current_exception();
    }
    lock.lock();
    s.pending = 0;
    if (failure) note(s, count, std::move(failure));
}

TG_DEFINITION void worker_pool::turn(std::unique_lock<std::mutex>& lock) {
    const bool fresh = current_ == none;
    if (fresh) {
        current_ = free_slot();
        slots_[current_] = {};
        slots_[current_].used = true;
        slots_[current_].number = opened_++;
    }
    const std::size_t at = current_;
    slot& s = slots_[at];
    const std::int64_t first = filled_, most = std::min(chunk_, options_.rows - filled_);
    drawing_ = true;
    lock.unlock();
    std::int64_t drawn = 0;
    std::exception_ptr failure;
    try {
        if (fresh) work_.open(at);
        while (drawn < most && !stop_.load(std::memory_order_relaxed) && work_.draw(at, first + drawn)) ++drawn;
    } catch (...) {
        failure = std::current_exception();
    }
    lock.lock();
    filled_ += drawn;
    s.pending += drawn;
    if (failure) note(s, first + drawn, std::move(failure));
    drawing_ = false;
    if (drawn < most) ended_ = true;
    if (ended_ || filled_ == options_.rows) seal();
    if (ended_)
        turn_.notify_all();
    else
        turn_.notify_one();
    lock.unlock();
    for (std::int64_t i = 0; i < drawn && !stop_.load(std::memory_order_relaxed); ++i) {
        try {
            work_.make(at, first + i);
        } catch (...) {
            failure = std::current_exception();
            lock.lock();
            note(s, first + i, std::move(failure));
            lock.unlock();
            break; // later rows no longer matter
        }
    }
    lock.lock();
    s.pending -= drawn;
    finish(lock, at);
    if (s.sealed && s.pending == 0) ready_.notify_one();
}

TG_DEFINITION void worker_pool::run() {
    std::unique_lock lock(mutex_);
    for (int turns = 0;; ++turns) {
        turn_.wait(lock, [this] { return stop_ || ended_ || may_draw(); });
        if (stop_ || ended_) return;
        turn(lock);
        // Elements made by one thread and freed by another would accumulate in the other's
        // cache of buffers.
        if (turns % 32 == 31) {
            lock.unlock();
            trim_memory();
            lock.lock();
        }
    }
}

#endif

} // namespace tapegraph::data::detail
