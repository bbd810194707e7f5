#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/callers.hpp>
#include <tapegraph/cpu/float_environment.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <pthread.h>

/// Teams of threads, on which parallel_for and similar functions run. They are designed for
/// machines that other programs use as well: waiting threads spin for a moment and then sleep, and
/// nobody waits for a thread that has not started. A region is open while the caller works; workers
/// that arrive meanwhile take part, and when no work is left the caller closes the region and waits
/// only for the workers inside. A worker that gets no processor therefore costs only its share of
/// the work.
///
/// A thread that opens a region takes a team from the pool and returns it afterwards; there are as
/// many teams as regions were ever open at once. Where there are as many callers as processors, a
/// region runs on its caller alone (cpu/callers.hpp), because workers would only compete with the
/// callers.

namespace tapegraph::cpu::detail {

/// A worker's number in its team, which stays as it is: 1 or more; 0 of other threads. The `thread` of a
/// region is a seat instead, the order in which workers arrive.
inline constinit thread_local int number_in_team = 0;

/// The work of a team: call(f, thread, threads).
struct team_work {
    void (*call)(const void* f, int thread, int threads);
    const void* f;
};

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/// Limits spinning. A thread that finds a gap in its own time was descheduled: another process
/// wants the processor, and spinning wastes this program's share.
class patience {
public:
    /// Spins until done() holds, for `seconds` at most and only a few microseconds on a crowded
    /// machine; returns false if it still does not hold.
    template <class Done>
    static bool lasts(double seconds, const Done& done) {
        if (done()) return true;
        double last = tapegraph::detail::steady_seconds();
        const double end = last + (last < crowded_until_.load(std::memory_order_relaxed) ? few : seconds);
        for (;;) {
            for (int i = 0; i < 32; ++i) {
                if (done()) return true;
                relax();
            }
            const double now = tapegraph::detail::steady_seconds();
            if (now - last > hole) crowded_until_.store(now + while_crowded, std::memory_order_relaxed);
            if (now > end) return done();
            last = now;
        }
    }

    /// Treats the machine as crowded when there are more threads than processors, since these wait
    /// for each other in any case.
    static void crowd(int threads) {
        if (threads > processors())
            crowded_until_.store(tapegraph::detail::steady_seconds() + while_crowded, std::memory_order_relaxed);
    }

private:
    static constexpr double few = 4e-6, hole = 60e-6, while_crowded = 0.1; // seconds
    inline static std::atomic<double> crowded_until_{0};
};

class thread_team {
public:
    thread_team* next = nullptr; // in the pool

    /// Calls work(0, threads) here and work(thread, threads) on workers: on every one if `all`,
    /// else on those that arrive in time.
    void run(int threads, bool all, const team_work& work) {
        while (static_cast<int>(workers_.size()) < threads - 1 && start()) {}
        const auto seats =
            static_cast<std::uint32_t>(std::min<std::size_t>(static_cast<std::size_t>(threads - 1), workers_.size()));
        patience::crowd(threads);
        work_ = &work;
        environment_ = float_environment();
        seats_ = seats;
        round_.fetch_add(1, std::memory_order_relaxed);
        gate_.store(seats, std::memory_order_release);
        bell_.fetch_add(1);
        if (seats == workers_.size())
            bell_.notify_all();
        else
            for (std::uint32_t i = 0; i < seats; ++i) bell_.notify_one();
        in_team = true;
        work.call(work.f, 0, static_cast<int>(seats) + 1);
        in_team = false;
        if (!all) gate_.fetch_and(~free_mask, std::memory_order_acq_rel);
        const auto done = [this] { return gate_.load(std::memory_order_acquire) == 0; };
        if (patience::lasts(2e-4, done)) return;
        for (std::uint32_t g; (g = gate_.load(std::memory_order_acquire)) != 0;) gate_.wait(g);
    }

    void stop() {
        quit_.store(true, std::memory_order_relaxed);
        bell_.fetch_add(1);
        bell_.notify_all();
        for (const pthread_t worker : workers_) pthread_join(worker, nullptr);
    }

private:
    // gate_ holds the free seats in the lower half and the workers inside in the upper half. 0:
    // closed.
    static constexpr std::uint32_t free_mask = 0xffff, one_inside = 0x10000;

    bool start() {
        pthread_t worker{};
        const auto entry = [](void* team) -> void* {
            static_cast<thread_team*>(team)->serve();
            return nullptr;
        };
        if (workers_.size() == free_mask || pthread_create(&worker, nullptr, entry, this) != 0) return false;
        workers_.push_back(worker);
        return true;
    }

    void serve() {
        in_team = true;
        number_in_team = started_.fetch_add(1, std::memory_order_relaxed) + 1;
        for (std::uint32_t last = 0;;) {
            const std::uint32_t rung = bell_.load();
            if (quit_.load(std::memory_order_relaxed)) return;
            if (const std::uint32_t seat = enter(last)) {
                last = round_.load(std::memory_order_relaxed); // does not change while a worker is inside
                if (float_environment() != environment_) set_float_environment(environment_);
                work_->call(work_->f, static_cast<int>(seat), static_cast<int>(seats_) + 1);
                if (gate_.fetch_sub(one_inside, std::memory_order_acq_rel) == one_inside) gate_.notify_one();
            } else if (!patience::lasts(5e-4, [&] { return bell_.load(std::memory_order_relaxed) != rung; })) {
                bell_.wait(rung);
            }
        }
    }

    // Returns the number of a seat in the open region, or 0; a worker enters each region once.
    std::uint32_t enter(std::uint32_t last) {
        std::uint32_t g = gate_.load(std::memory_order_acquire);
        while ((g & free_mask) != 0 && round_.load(std::memory_order_relaxed) != last)
            if (gate_.compare_exchange_weak(g, g - 1 + one_inside, std::memory_order_acq_rel,
                                            std::memory_order_acquire))
                return seats_ - (g & free_mask) + 1;
        return 0;
    }

    alignas(64) std::atomic<std::uint32_t> bell_{0}; // incremented when a region opens; workers wait on it
    std::atomic<std::uint32_t> round_{0};
    std::atomic<bool> quit_{false};
    std::atomic<int> started_{0};
    const team_work* work_ = nullptr;
    std::uint64_t environment_ = 0; // of the caller, in which its workers compute
    std::uint32_t seats_ = 0;
    alignas(64) std::atomic<std::uint32_t> gate_{0};
    alignas(64) std::vector<pthread_t> workers_{};
};

/// The pool of idle teams. When the program ends, or the library that contains this code is
/// unloaded, their threads are joined, and later regions run on the calling thread alone. A child
/// of fork() has none of its parent's threads, and creates teams of its own.
class team_pool {
public:
    static team_pool& instance() {
        static team_pool pool;
        return pool;
    }
    ~team_pool() {
        for (thread_team* team = open_.exchange(false) ? spare_ : nullptr; team != nullptr;) {
            thread_team* const next = team->next;
            team->stop();
            delete team;
            team = next;
        }
    }

    /// Returns null once the program ends.
    static thread_team* take() {
        if (!open_.load(std::memory_order_acquire)) return nullptr;
        team_pool& pool = instance();
        pthread_mutex_lock(&pool.lock_);
        thread_team* const team = pool.spare_;
        if (team != nullptr) pool.spare_ = team->next;
        pthread_mutex_unlock(&pool.lock_);
        return team != nullptr ? team : new thread_team;
    }
    static void put(thread_team* team) {
        team_pool& pool = instance();
        pthread_mutex_lock(&pool.lock_);
        team->next = pool.spare_;
        pool.spare_ = team;
        pthread_mutex_unlock(&pool.lock_);
    }

private:
    team_pool() {
        tapegraph::detail::at_fork([] { pthread_mutex_lock(&instance().lock_); },
                                   [] { pthread_mutex_unlock(&instance().lock_); },
                                   [] {
                                       instance().spare_ = nullptr;
                                       pthread_mutex_unlock(&instance().lock_);
                                   });
    }

    inline static std::atomic<bool> open_{true};
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    thread_team* spare_ = nullptr;
};

/// Opens a region of at most `threads` threads, fewer where other callers need the processors; with
/// `all`, every thread that the system provides takes part.
void run_team(int threads, bool all, const team_work& work);
#if TG_DEFINES(runtime)
TG_DEFINITION void run_team(int threads, bool all, const team_work& work) {
    const at_work here;
    threads = threads_now(threads);
    thread_team* const team = threads > 1 ? team_pool::take() : nullptr;
    if (team == nullptr) return work.call(work.f, 0, 1);
    team->run(threads, all, work);
    team_pool::put(team);
}
#endif

} // namespace tapegraph::cpu::detail
