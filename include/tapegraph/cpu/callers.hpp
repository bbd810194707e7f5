#pragma once

#include <tapegraph/core/system.hpp>
#include <tapegraph/cpu/processors.hpp>

#include <algorithm>
#include <atomic>

/// Counts the threads of the program that are running the library, and limits the threads that each
/// may use for its regions. With more workers than processors, a thread would wait for a worker
/// that another caller's work keeps from running: milliseconds for a prediction of microseconds.

namespace tapegraph::cpu {

namespace detail {

/// Whether this thread is inside a region; regions that it opens there run on it alone.
inline constinit thread_local bool in_team = false;
/// Whether this thread is counted as a caller.
inline constinit thread_local bool counted_as_caller = false;

struct alignas(64) caller_counter {
    std::atomic<int> callers{0};
};

/// Counters distributed over threads, so that many short calls do not contend for one cache line.
class caller_count {
public:
    static std::atomic<int>& own() {
        if (counter_of_thread == nullptr) choose();
        return *counter_of_thread;
    }
    /// The number of callers; counting may stop at `enough`.
    static int at_least(int enough) {
        int sum = 0;
        for (int i = 0; i < shares && sum < enough; ++i) sum += counters[i].callers.load(std::memory_order_relaxed);
        return sum;
    }

private:
    [[gnu::noinline]] static void choose() {
        // A child of fork() inherits the counts of its parent's threads, but only one of the
        // threads.
        [[maybe_unused]] static const bool registered = [] {
            tapegraph::detail::at_fork(nullptr, nullptr, [] {
                for (caller_counter& c : counters) c.callers.store(0, std::memory_order_relaxed);
                if (counted_as_caller) own().store(1, std::memory_order_relaxed);
            });
            return true;
        }();
        counter_of_thread = &counters[next.fetch_add(1, std::memory_order_relaxed) % shares].callers;
    }

    static constexpr int shares = 16;
    inline static caller_counter counters[shares]{};
    inline static std::atomic<unsigned> next{0};
    inline static constinit thread_local std::atomic<int>* counter_of_thread = nullptr;
};

/// 0: as many as the system reports.
inline std::atomic<int> assumed_processors{0};
inline int processors() {
    if (const int assumed = assumed_processors.load(std::memory_order_relaxed); assumed > 0) return assumed;
    static const int found = system_processors();
    return found;
}

} // namespace detail

/// While one lives, its thread counts as running the library: a program, a model's step or
/// prediction, or a region. Nested ones, and those on a worker of a region, do not count again.
class at_work {
public:
    explicit at_work(bool counts = true) : counts_(counts && !detail::counted_as_caller && !detail::in_team) {
        if (!counts_) return;
        detail::counted_as_caller = true;
        detail::caller_count::own().fetch_add(1, std::memory_order_relaxed);
    }
    at_work(const at_work&) = delete;
    at_work& operator=(const at_work&) = delete;
    ~at_work() {
        if (!counts_) return;
        detail::caller_count::own().fetch_sub(1, std::memory_order_relaxed);
        detail::counted_as_caller = false;
    }

private:
    bool counts_;
};

/// The number of threads for a region that asks for `wanted`: all of them for a single caller; for
/// one of several, as many as leave each other caller a processor; only the caller's own where
/// callers are as many as processors or more.
constexpr int threads_beside(int wanted, int callers, int processors) {
    return callers <= 1 ? wanted : std::clamp(processors - callers + 1, 1, wanted);
}

/// The same for the current number of callers, for a thread that is at_work.
inline int threads_now(int wanted) {
    const int processors = detail::processors();
    return threads_beside(wanted, detail::caller_count::at_least(processors + 1), processors);
}

} // namespace tapegraph::cpu
