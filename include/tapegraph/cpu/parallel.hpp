#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>

/// Threads. Everything parallel goes through here; without OpenMP it all runs on one thread.

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

/// Calls f(task) for every task in [0, tasks), on several threads when `parallel` holds. Which thread runs a task is
/// open, so a task's result must depend on its number alone.
template <class F>
void parallel_for(std::int64_t tasks, [[maybe_unused]] bool parallel, const F& f) {
#if defined(_OPENMP)
    const int threads = thread_count();
    if (parallel && threads > 1 && tasks > 1 && !omp_in_parallel()) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
        for (std::int64_t task = 0; task < tasks; ++task) f(task);
        return;
    }
#endif
    for (std::int64_t task = 0; task < tasks; ++task) f(task);
}

/// Calls f(thread, threads) once on each of `threads` threads (one when `parallel` does not hold).
template <class F>
void parallel_team([[maybe_unused]] bool parallel, const F& f) {
#if defined(_OPENMP)
    const int threads = thread_count();
    if (parallel && threads > 1 && !omp_in_parallel()) {
#pragma omp parallel num_threads(threads)
        f(omp_get_thread_num(), omp_get_num_threads());
        return;
    }
#endif
    f(0, 1);
}

} // namespace cpu
} // namespace tapegraph
