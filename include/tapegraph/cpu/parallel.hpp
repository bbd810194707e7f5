#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/team.hpp>

#include <atomic>
#include <cstdint>

/// Threads. All parallel code goes through here; without OpenMP it runs on one thread. OpenMP
/// determines the number of threads and whether the caller is in one of its own teams; waiting is
/// implemented here (cpu/team.hpp).

#if defined(_OPENMP)
#include <omp.h>
TG_OBJECTS_AGREE(OpenMP, on)
#else
TG_OBJECTS_AGREE(OpenMP, off)
#endif

namespace tapegraph {

namespace cpu::detail {
inline int& thread_setting() {
    static int threads = 0; // 0: OpenMP's default
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

/// Limits the threads of every kernel of the process; 0 restores OpenMP's choice.
inline void set_thread_count(int threads) { cpu::detail::thread_setting() = threads; }

namespace cpu {

namespace detail {

/// A callback between the tasks of a thread, for example an exchange that would stall while a
/// kernel runs.
struct task_listener {
    void (*call)(void* of) noexcept = nullptr;
    void* of = nullptr;
};
inline std::atomic<int> task_listeners{0}; // in all threads
inline constinit thread_local task_listener listener_of_thread{};

[[gnu::noinline]] inline void tell_listener() {
    if (listener_of_thread.call != nullptr) listener_of_thread.call(listener_of_thread.of);
}
/// Without listeners, this costs one load.
inline void task_done() {
    if (task_listeners.load(std::memory_order_relaxed) != 0) [[unlikely]]
        tell_listener();
}

#if defined(_OPENMP)
inline bool may_divide() { return !in_team && !omp_in_parallel(); }

template <class F>
team_work work_of(const F& f) {
    // An exception that leaves a thread ends the program.
    return {[](const void* g, int thread, int threads) noexcept { (*static_cast<const F*>(g))(thread, threads); }, &f};
}
#endif

} // namespace detail

/// While it lives, call(of) runs on this thread between its tasks of parallel_for and similar
/// functions.
class listen_between_tasks {
public:
    listen_between_tasks(void (*call)(void*) noexcept, void* of) : before_(detail::listener_of_thread) {
        detail::listener_of_thread = {call, of};
        detail::task_listeners.fetch_add(1, std::memory_order_relaxed);
    }
    listen_between_tasks(const listen_between_tasks&) = delete;
    listen_between_tasks& operator=(const listen_between_tasks&) = delete;
    ~listen_between_tasks() {
        detail::task_listeners.fetch_sub(1, std::memory_order_relaxed);
        detail::listener_of_thread = before_;
    }

private:
    detail::task_listener before_;
};

/// Calls f(task, thread) for every task in [0, tasks), on several threads when `parallel` holds;
/// `thread`, below thread_count(), selects scratch memory. A thread takes the next task when it has
/// finished one, and a thread without a processor takes none. Which thread runs a task is
/// unspecified, so a task's result must depend only on its number.
template <class F>
void for_tasks(std::int64_t tasks, [[maybe_unused]] bool parallel, const F& f) {
#if defined(_OPENMP)
    if (parallel && tasks > 1 && detail::may_divide()) {
        const int most = thread_count();
        if (most > 1) {
            std::atomic<std::int64_t> next{0};
            const auto take = [&](int thread, int) {
                for (std::int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
                    f(task, thread);
                    detail::task_done();
                }
            };
            detail::run_team(tasks < most ? static_cast<int>(tasks) : most, false, detail::work_of(take));
            return;
        }
    }
#endif
    for (std::int64_t task = 0; task < tasks; ++task) {
        f(task, 0);
        detail::task_done();
    }
}

/// The same for tasks without scratch: f(task).
template <class F>
void parallel_for(std::int64_t tasks, bool parallel, const F& f) {
    for_tasks(tasks, parallel, [&](std::int64_t task, int) { f(task); });
}

/// Calls f(thread, threads) once on each of `threads` threads (one when `parallel` does not hold);
/// they may wait for each other.
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
