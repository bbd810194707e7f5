#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <utility>
#include <vector>

/// Peak performance of the machine: fused multiply-adds from registers, and a triad over memory.

namespace tapegraph::profiling {

/// Returns seconds since a fixed moment.
using clock_function = double (*)();

namespace detail {

// With two units and a latency of four cycles, eight chains keep the units busy; twelve are more than
// enough, and fit into sixteen registers.
inline constexpr int chains = 12;

template <int Bytes, int... I>
TG_INLINE void multiply_add_chains(float* result, std::int64_t rounds, std::integer_sequence<int, I...>) {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
    using vector = typename cpu::vector<float, Bytes>::type;
    vector c[chains];
    const vector scale = vector{} + result[0], shift = vector{} + result[1];
    ((c[I] = vector{} + static_cast<float>(I)), ...);
    for (std::int64_t i = 0; i < rounds; ++i) ((c[I] = c[I] * scale + shift), ...);
    vector sum{};
    ((sum += c[I]), ...);
    result[2] = sum[0];
}

#define TG_PROFILE_CHAINS(name, bytes, leave, ...)                                                                     \
    TG_FUSED_FUNCTION __VA_ARGS__ inline void name(float* result, std::int64_t rounds) {                               \
        multiply_add_chains<bytes>(result, rounds, std::make_integer_sequence<int, chains>{});                         \
        leave                                                                                                          \
    }
TG_PROFILE_CHAINS(chains_baseline, 16, )
#if defined(__x86_64__)
TG_PROFILE_CHAINS(chains_avx2, 32, TG_LEAVE_VECTORS, __attribute__((target("avx2,fma"))))
TG_PROFILE_CHAINS(chains_avx512, 64, TG_LEAVE_VECTORS, __attribute__((target("avx512f,avx2,fma"))))
#endif
#undef TG_PROFILE_CHAINS

// Runs the chains in the instruction set that kernels use, and returns its lanes.
inline int run_chains(float* result, std::int64_t rounds) {
#if defined(__x86_64__)
    switch (cpu::active_instruction_set()) {
    case cpu::instruction_set::avx512: chains_avx512(result, rounds); return 16;
    case cpu::instruction_set::avx2: chains_avx2(result, rounds); return 8;
    case cpu::instruction_set::baseline: break;
    }
#endif
    chains_baseline(result, rounds);
    return 4;
}

} // namespace detail

/// CPU time of the calling thread in seconds, which excludes time taken by other programs.
inline double thread_seconds() {
    ::timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The best sum over all threads of what each reaches: each calls work(thread, threads), which
/// returns an amount, measured by its own clock, repeatedly for about `seconds`.
template <class Work>
double best_rate(double seconds, clock_function now, const Work& work) {
    const int threads = thread_count();
    std::vector<double> rates(static_cast<std::size_t>(threads));
    double best = 0;
    const double start = tapegraph::detail::steady_seconds();
    do {
        cpu::parallel_team(threads > 1, [&](int thread, int team) {
            const double begun = now();
            const double amount = work(thread, team), took = now() - begun;
            rates[static_cast<std::size_t>(thread)] = took > 0 ? amount / took : 0;
        });
        double sum = 0;
        for (const double r : rates) sum += r;
        best = std::max(best, sum);
    } while (tapegraph::detail::steady_seconds() - start < seconds);
    return best;
}

/// Floating-point operations per second of float multiply-adds on the threads that kernels use,
/// measured for some `seconds`.
inline double fma_peak(double seconds, clock_function now = thread_seconds) {
    return best_rate(seconds, now, [](int, int) {
        float values[3] = {0.999f, 0.001f, 0};
        constexpr std::int64_t rounds = 100000;
        const int lanes = detail::run_chains(values, rounds);
        if (values[2] == 12345.0f) return 0.0; // keeps the result alive
        return 2.0 * lanes * detail::chains * static_cast<double>(rounds);
    });
}

/// Bytes per second of a[i] = b[i] + s c[i] on floats, with three streams counted, for arrays of `bytes`
/// in total, on the threads that kernels use.
inline double triad(std::size_t bytes, double seconds, clock_function now = thread_seconds) {
    const auto count = static_cast<std::int64_t>(bytes / (3 * sizeof(float)));
    std::vector<float> a(static_cast<std::size_t>(count)), b(a), c(a);
    const int passes = static_cast<int>(std::max<std::int64_t>(1, 2000000 / std::max<std::int64_t>(count, 1)));
    return best_rate(seconds, now, [&](int thread, int threads) TG_VECTORISES {
        const std::int64_t part = (count + threads - 1) / threads;
        const std::int64_t first = std::min(count, thread * part), last = std::min(count, first + part);
        float* const to = a.data();
        const float *const x = b.data(), *const y = c.data();
        for (int pass = 0; pass < passes; ++pass) {
            TG_SIMD
            for (std::int64_t i = first; i < last; ++i) to[i] = x[i] + 3.0f * y[i];
#if defined(__GNUC__)
            __asm__ volatile("" ::: "memory");
#endif
        }
        return 12.0 * static_cast<double>(last - first) * passes;
    });
}

/// The peaks from which the bounds of a profile are computed.
struct peaks {
    double flops = 0; ///< per second, for floats; 0: unknown
    /// Bytes per second, by the size of the data: caches are faster than memory.
    struct rate {
        double bytes = 0, per_second = 0;
    };
    std::vector<rate> bandwidth; ///< by increasing size; empty: unknown

    /// Bytes per second over `bytes`: that of the smallest measured size that holds them.
    double bandwidth_of(double bytes) const {
        for (const rate& r : bandwidth)
            if (bytes <= r.bytes) return r.per_second;
        return bandwidth.empty() ? 0 : bandwidth.back().per_second;
    }
    /// Bytes a second from memory, of the largest size that was measured.
    double memory_bandwidth() const { return bandwidth.empty() ? 0 : bandwidth.back().per_second; }

    /// The minimum seconds of a call; 0 if nothing is known. `half_rate`: for doubles.
    double bound(double operations, double bytes, bool half_rate) const {
        const double compute = flops > 0 ? operations / flops * (half_rate ? 2 : 1) : 0;
        const double per_second = bandwidth_of(bytes);
        return std::max(compute, per_second > 0 ? bytes / per_second : 0.0);
    }
};

/// The peaks of this process for the current number of kernel threads: measured the first time, in
/// some 60 ms.
inline const peaks& measured_peaks() {
    static std::vector<std::pair<int, peaks>> known;
    for (const auto& each : known)
        if (each.first == thread_count()) return each.second;
    peaks p;
    p.flops = fma_peak(0.01);
    for (const std::size_t bytes :
         {std::size_t{1} << 16, std::size_t{1} << 19, std::size_t{1} << 22, std::size_t{1} << 26})
        p.bandwidth.push_back({static_cast<double>(bytes), triad(bytes, 0.008)});
    // A larger size is not faster; if it appears to be, the smaller one was disturbed.
    for (std::size_t i = p.bandwidth.size() - 1; i > 0; --i)
        p.bandwidth[i - 1].per_second = std::max(p.bandwidth[i - 1].per_second, p.bandwidth[i].per_second);
    known.emplace_back(thread_count(), std::move(p));
    return known.back().second;
}

} // namespace tapegraph::profiling
