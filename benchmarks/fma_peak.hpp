#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>
#include <vector>

/// What the machine can do at best, measured beside whatever is judged by it: fused multiply-adds from registers, and a
/// memory triad. Other programs on the machine lower both, so measure them often and between the runs they are compared to.

namespace benchmarks {

/// Whether seconds are those the calling thread ran, not those that passed: what measurements on one thread need on a
/// machine that others use.
inline bool& processor_time() {
    static bool on = false;
    return on;
}

inline double seconds_now() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
    timespec now{};
    if (processor_time() && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0)
        return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
#endif
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

template <class F>
double seconds_of(const F& f) {
    const double start = seconds_now();
    f();
    return seconds_now() - start;
}

inline double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

namespace detail {

// Two units, four cycles of latency: eight chains keep them busy; twelve leave room and fit sixteen registers.
inline constexpr int chains = 12;

template <int Bytes, int... I>
TG_INLINE void multiply_add_chains(float* result, std::int64_t rounds, std::integer_sequence<int, I...>) {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
    using vector = typename tapegraph::cpu::vector<float, Bytes>::type;
    vector c[chains];
    const vector scale = vector{} + result[0], shift = vector{} + result[1];
    ((c[I] = vector{} + static_cast<float>(I)), ...);
    for (std::int64_t i = 0; i < rounds; ++i) ((c[I] = c[I] * scale + shift), ...);
    vector sum{};
    ((sum += c[I]), ...);
    result[2] = sum[0];
}

#define BENCHMARK_CHAINS(name, bytes, ...)                                                                             \
    __VA_ARGS__ inline void name(float* result, std::int64_t rounds) {                                                 \
        multiply_add_chains<bytes>(result, rounds, std::make_integer_sequence<int, chains>{});                         \
    }
BENCHMARK_CHAINS(chains_baseline, 16)
#if defined(__x86_64__)
BENCHMARK_CHAINS(chains_avx2, 32, __attribute__((target("avx2,fma"))))
BENCHMARK_CHAINS(chains_avx512, 64, __attribute__((target("avx512f,avx2,fma"))))
#endif
#undef BENCHMARK_CHAINS

inline int run_chains(float* result, std::int64_t rounds) {
#if defined(__x86_64__)
    switch (tapegraph::cpu::active_instruction_set()) {
    case tapegraph::cpu::instruction_set::avx512: chains_avx512(result, rounds); return 16;
    case tapegraph::cpu::instruction_set::avx2: chains_avx2(result, rounds); return 8;
    case tapegraph::cpu::instruction_set::baseline: break;
    }
#endif
    chains_baseline(result, rounds);
    return 4;
}

} // namespace detail

/// GFLOP/s of multiply-adds on `threads` threads in the instruction set the kernels use; takes `seconds` or so.
inline double fma_peak(int threads, double seconds = 0.02) {
    const int before = tapegraph::thread_count();
    tapegraph::set_thread_count(threads);
    std::int64_t rounds = 100000;
    double best = 0;
    for (double spent = 0; spent < seconds;) {
        int lanes = 0;
        const double time = seconds_of([&] {
            tapegraph::cpu::parallel_team(threads > 1, [&](int thread, int) {
                float values[3] = {0.999f, 0.001f, 0};
                const int wide = detail::run_chains(values, rounds);
                if (thread == 0) lanes = wide;
                if (values[2] == 12345.0f) lanes = 0; // keeps the result alive
            });
        });
        best = std::max(best, 2.0 * threads * lanes * detail::chains * static_cast<double>(rounds) / time / 1e9);
        spent += time;
    }
    tapegraph::set_thread_count(before);
    return best;
}

/// GB/s of a[i] = b[i] + s c[i] on floats, three streams counted, over arrays of `bytes` in all.
inline double triad(int threads, std::size_t bytes, double seconds = 0.05) {
    const auto count = static_cast<std::int64_t>(bytes / (3 * sizeof(float)));
    std::vector<float> a(static_cast<std::size_t>(count)), b(a), c(a);
    const int before = tapegraph::thread_count();
    tapegraph::set_thread_count(threads);
    const std::int64_t part = (count + threads - 1) / threads;
    double best = 0;
    for (double spent = 0; spent < seconds;) {
        const int passes = static_cast<int>(std::max<std::int64_t>(1, 4000000 / std::max<std::int64_t>(count, 1)));
        const double time = seconds_of([&] {
            tapegraph::cpu::parallel_team(threads > 1, [&](int thread, int) {
                const std::int64_t first = thread * part, last = std::min(count, first + part);
                float* const to = a.data();
                const float *const x = b.data(), *const y = c.data();
                for (int pass = 0; pass < passes; ++pass) {
#pragma omp simd
                    for (std::int64_t i = first; i < last; ++i) to[i] = x[i] + 3.0f * y[i];
#if defined(__GNUC__)
                    __asm__ volatile("" ::: "memory");
#endif
                }
            });
        });
        best = std::max(best, static_cast<double>(bytes) * passes / time / 1e9);
        spent += time;
    }
    tapegraph::set_thread_count(before);
    return best;
}

} // namespace benchmarks
