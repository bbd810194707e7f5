#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <atomic>

/// The latency of a message from one thread of a team to another and back. Between cores that share
/// a cache it is a tenth of a microsecond, between others half a microsecond or more, and the cores
/// that run the threads may change at any moment. It decides whether threads that synchronise at
/// every step are faster than one alone.

namespace tapegraph::cpu {

class round_trip {
public:
    /// The last measurement, in seconds.
    static double seconds() { return seconds_.load(std::memory_order_relaxed); }
    /// Overrides the measurement until the next one: for tests.
    static void assume(double seconds) {
        seconds_.store(seconds, std::memory_order_relaxed);
        measured_.store(now(), std::memory_order_relaxed);
    }
    /// The same, and the next recurrence measures.
    static void assume_outdated(double seconds) {
        assume(seconds);
        measured_.store(never, std::memory_order_relaxed);
    }
    /// Whether the last measurement is out of date. Called outside of the team, so that all its
    /// threads decide alike.
    static bool is_due() { return now() - measured_.load(std::memory_order_relaxed) > interval; }

    /// Measures between the first and the last thread of a team; both call it. A team of one does
    /// nothing.
    void measure(int thread, int threads) {
        if (threads < 2 || (thread != 0 && thread != threads - 1)) return;
        double least = most, before = now();
        for (int i = 1; i <= rounds; ++i) {
            if (thread == 0) {
                word_.store(i, std::memory_order_release);
                if (!hears(answer_, i)) break;
                const double heard = now();
                least = std::min(least, heard - before);
                before = heard;
            } else {
                if (!hears(word_, i)) break;
                answer_.store(i, std::memory_order_release);
            }
        }
        if (thread == 0) assume(least);
    }

private:
    static constexpr int rounds = 8;
    static constexpr double interval = 0.05, most = 1e-4; // seconds
    static constexpr double never = -1;                   // of the clock, which begins at 0
    static double now() { return tapegraph::detail::steady_seconds(); }

    // Polls without a pause instruction, which would be half of the latency. Gives up when the
    // other thread does not run.
    static bool hears(const std::atomic<int>& from, int what) {
        double end = 0;
        for (int looks = 1; from.load(std::memory_order_acquire) < what; ++looks)
            if (looks % 4096 == 0) {
                if (end == 0) end = now() + most;
                if (now() > end) return false;
            }
        return true;
    }

    inline static std::atomic<double> seconds_{1e-7}, measured_{never};
    alignas(128) std::atomic<int> word_{0};
    alignas(128) std::atomic<int> answer_{0};
};

} // namespace tapegraph::cpu
