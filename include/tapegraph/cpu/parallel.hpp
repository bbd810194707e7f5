#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/team.hpp>

#include <atomic>
#include <cstdint>

/// Threads. Everything parallel goes through here; without OpenMP it all runs on one thread. OpenMP says how many threads there
/// should be and whether the caller is one of its own teams; who waits how is ours (cpu/team.hpp).

#if defined(_OPENMP)
#include <omp.h>
TG_OBJECTS_AGREE(OpenMP, on)
#else
TG_OBJECTS_AGREE(OpenMP, off)
#endif

namespace tapegraph {

namespace cpu::detail {
inline int& thread_setting() {
    static int threads = 0; // 0: what OpenMP would take
    return threads;
}
} // namespace cpu::detail

/// Threads that kernels may use.
inline int thread_count() {
    if (cpu::detail::thread_setting() > 0) return cpu::detail::thread_setting();
#if defined(_OPENMP)
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/// Limits the threads of every kernel of the process; 0 restores OpenMP's own choice.
inline void set_thread_count(int threads) { cpu::detail::thread_setting() = threads; }

namespace cpu {

namespace detail {

#if defined(_OPENMP)
inline bool may_divide() { return !in_team && !omp_in_parallel(); }

template <class F>
team_work work_of(const F& f) {
    // An exception that leaves a thread ends the program.
    return {[](const void* g, int thread, int threads) noexcept { (*static_cast<const F*>(g))(thread, threads); }, &f};
}
#endif

} // namespace detail

/// Calls f(task, thread) for every task in [0, tasks), on several threads when `parallel` holds; `thread`, below thread_count(), picks
/// scratch. Threads take the next task when they are done with one, and who gets no processor takes none: which thread runs a task
/// is open, so a task's result must depend on its number alone.
template <class F>
void for_tasks(std::int64_t tasks, [[maybe_unused]] bool parallel, const F& f) {
#if defined(_OPENMP)
    if (parallel && tasks > 1 && detail::may_divide()) {
        const int most = thread_count();
        if (most > 1) {
            std::atomic<std::int64_t> next{0};
            const auto take = [&](int thread, int) {
                for (std::int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) f(task, thread);
            };
            detail::run_team(tasks < most ? static_cast<int>(tasks) : most, false, detail::work_of(take));
            return;
        }
    }
#endif
    for (std::int64_t task = 0; task < tasks; ++task) f(task, 0);
}

/// The same for tasks without scratch: f(task).
template <class F>
void parallel_for(std::int64_t tasks, bool parallel, const F& f) {
    for_tasks(tasks, parallel, [&](std::int64_t task, int) { f(task); });
}

/// Calls f(thread, threads) once on each of `threads` threads (one when `parallel` does not hold), which may wait for each other.
template <class F>
void parallel_team([[maybe_unused]] bool parallel, const F& f) {
#if defined(_OPENMP)
    if (parallel && detail::may_divide()) {
        const int threads = thread_count();
        if (threads > 1) {
            detail::run_team(threads, true, detail::work_of(f));
            return;
        }
    }
#endif
    f(0, 1);
}

} // namespace cpu
} // namespace tapegraph
