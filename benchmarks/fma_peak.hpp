#pragma once

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/profile/peaks.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <vector>

/// Measures the machine's peaks in the same run as the code that is judged by them: fused
/// multiply-adds from registers, and a memory triad. Other programs on the machine lower both, so
/// measure them often, between the runs they are compared to.

namespace benchmarks {

/// Whether seconds are processor time of the calling thread instead of wall-clock time:
/// measurements on one thread need this on a machine that others use.
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

/// Runs f() with this many threads for kernels.
template <class F>
double with_threads(int threads, const F& f) {
    const int before = tapegraph::thread_count();
    tapegraph::set_thread_count(threads);
    const double result = f();
    tapegraph::set_thread_count(before);
    return result;
}

/// GFLOP/s of multiply-adds on `threads` threads in the instruction set the kernels use; takes
/// about `seconds`.
inline double fma_peak(int threads, double seconds = 0.02) {
    return with_threads(threads, [&] { return tapegraph::profiling::fma_peak(seconds, seconds_now) / 1e9; });
}

/// GB/s of a[i] = b[i] + s c[i] on floats, three streams counted, over arrays of `bytes` in all.
inline double triad(int threads, std::size_t bytes, double seconds = 0.05) {
    return with_threads(threads, [&] { return tapegraph::profiling::triad(bytes, seconds, seconds_now) / 1e9; });
}

} // namespace benchmarks
