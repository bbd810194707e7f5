#pragma once

#include <tapegraph/core/config.hpp>

#include <algorithm>
#include <atomic>

#include <pthread.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

/// How many threads of the program are at work in the library, and how many each may then have for its regions. A thread that has no
/// processor for a worker waits for one that another caller's work keeps from running: milliseconds for a prediction of microseconds.

namespace tapegraph::cpu {

namespace detail {

/// Whether this thread is inside a region: what it opens there runs on it alone.
inline constinit thread_local bool in_team = false;
/// Whether it is among those that are counted here.
inline constinit thread_local bool counted_as_caller = false;

struct alignas(64) caller_counter {
    std::atomic<int> callers{0};
};

/// Counters that threads share out among each other, so that many who come and go every microsecond do not wait for one line of memory.
template <class = void>
class caller_count {
public:
    static std::atomic<int>& own() {
        if (counter_of_thread == nullptr) choose();
        return *counter_of_thread;
    }
    /// The number of callers; beyond `enough` it may be less.
    static int at_least(int enough) {
        int sum = 0;
        for (int i = 0; i < shares && sum < enough; ++i) sum += counters[i].callers.load(std::memory_order_relaxed);
        return sum;
    }

private:
    [[gnu::noinline]] static void choose() {
        // A child of fork() has the counts of its parent's threads, and none but one of these.
        [[maybe_unused]] static const int told = pthread_atfork(nullptr, nullptr, [] {
            for (caller_counter& c : counters) c.callers.store(0, std::memory_order_relaxed);
            if (counted_as_caller) own().store(1, std::memory_order_relaxed);
        });
        counter_of_thread = &counters[next.fetch_add(1, std::memory_order_relaxed) % shares].callers;
    }

    static constexpr int shares = 16;
    inline static caller_counter counters[shares]{};
    inline static std::atomic<unsigned> next{0};
    inline static constinit thread_local std::atomic<int>* counter_of_thread = nullptr;
};

/// 0: those that the system says.
inline std::atomic<int> assumed_processors{0};
template <class = void>
int processors() {
    if (const int assumed = assumed_processors.load(std::memory_order_relaxed); assumed > 0) return assumed;
#if defined(_OPENMP)
    static const int found = omp_get_num_procs();
    return found;
#else
    return 1;
#endif
}

} // namespace detail

/// While one lives, its thread counts as at work in the library: while it runs a program, a model's step or prediction, or a region. What
/// is inside another one, or on a worker of a region, counts no more.
class at_work {
public:
    explicit at_work(bool counts = true) : counts_(counts && !detail::counted_as_caller && !detail::in_team) {
        if (!counts_) return;
        detail::counted_as_caller = true;
        detail::caller_count<>::own().fetch_add(1, std::memory_order_relaxed);
    }
    at_work(const at_work&) = delete;
    at_work& operator=(const at_work&) = delete;
    ~at_work() {
        if (!counts_) return;
        detail::caller_count<>::own().fetch_sub(1, std::memory_order_relaxed);
        detail::counted_as_caller = false;
    }

private:
    bool counts_;
};

/// The threads that a region may have which asks for `wanted`: all of them for a caller that is alone, for one of several those that leave
/// each other caller a processor, and none beside its own where callers are as many as processors or more.
constexpr int threads_beside(int wanted, int callers, int processors) {
    return callers <= 1 ? wanted : std::clamp(processors - callers + 1, 1, wanted);
}

/// The same now, of a thread that is at_work.
template <class = void>
int threads_now(int wanted) {
    const int processors = detail::processors();
    return threads_beside(wanted, detail::caller_count<>::at_least(processors + 1), processors);
}

} // namespace tapegraph::cpu
