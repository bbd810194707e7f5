#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/team.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

/// Threads. All parallel code goes through here, onto teams of threads of our own (cpu/team.hpp).

namespace tapegraph {

namespace cpu::detail {
inline int& thread_setting() {
    static int threads = 0; // 0: the environment's
    return threads;
}
} // namespace cpu::detail

/// Threads that kernels may use.
inline int thread_count() {
    if (cpu::detail::thread_setting() > 0) return cpu::detail::thread_setting();
    return cpu::detail::default_threads();
}

/// Sets the threads of every kernel of the process; 0 restores the choice of the environment
/// (TAPEGRAPH_NUM_THREADS, OMP_NUM_THREADS), which is a thread for each processor if it says nothing.
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

inline bool may_divide() { return !in_team && !in_region_of_program(); }

/// The tasks of a region in a share for each thread. A thread takes its own share first: the rows
/// that it computed in the kernel before are in its caches. Then it takes what is left of the others'.
class task_shares {
public:
    task_shares(std::int64_t tasks, int threads) : count_(std::min(threads, most)) {
        for (int i = 0; i < count_; ++i) {
            shares_[i].next.store(tasks * i / count_, std::memory_order_relaxed);
            shares_[i].end = tasks * (i + 1) / count_;
        }
    }
    /// Calls f(task) until no task is left.
    template <class F>
    void take(int thread, const F& f) {
        int at = thread % count_;
        for (int left = count_; left > 0; --left, at = at + 1 < count_ ? at + 1 : 0)
            for (std::int64_t task;
                 (task = shares_[at].next.fetch_add(1, std::memory_order_relaxed)) < shares_[at].end;)
                f(task);
    }

private:
    struct alignas(64) share {
        std::atomic<std::int64_t> next{0};
        std::int64_t end;
    };
    static constexpr int most = 16;
    int count_;
    share shares_[most];
};

template <class F>
team_work work_of(const F& f) {
    // An exception that leaves a thread ends the program.
    return {[](const void* g, int thread, int threads) noexcept { (*static_cast<const F*>(g))(thread, threads); }, &f};
}

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
/// `thread`, below thread_count(), selects scratch memory. Each thread has an equal share of
/// consecutive tasks, and takes others' tasks when it has finished its own; a thread without a
/// processor takes none. Which thread runs a task is unspecified, so a task's result must depend
/// only on its number.
template <class F>
void for_tasks(std::int64_t tasks, bool parallel, const F& f) {
    if (parallel && tasks > 1 && detail::may_divide()) {
        const int most = thread_count();
        if (most > 1) {
            detail::task_shares shares(tasks, tasks < most ? static_cast<int>(tasks) : most);
            const auto take = [&](int thread, int) {
                shares.take(detail::number_in_team < most ? detail::number_in_team : thread, [&](std::int64_t task) {
                    f(task, thread);
                    detail::task_done();
                });
            };
            detail::run_team(tasks < most ? static_cast<int>(tasks) : most, false, detail::work_of(take));
            return;
        }
    }
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
void parallel_team(bool parallel, const F& f) {
    if (parallel && detail::may_divide()) {
        const int threads = thread_count();
        if (threads > 1) {
            detail::run_team(threads, true, detail::work_of(f));
            return;
        }
    }
    f(0, 1);
}

} // namespace cpu
} // namespace tapegraph
