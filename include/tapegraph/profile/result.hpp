#pragma once

#include <tapegraph/profile/counters.hpp>
#include <tapegraph/profile/peaks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// The result of tg::profile.

namespace tapegraph {

namespace profiling {

/// The parts of a training step.
enum class phase { ingestion, forward, backward, update };
constexpr const char* name_of(phase p) {
    constexpr const char* names[]{"ingestion", "forward", "backward", "update"};
    return names[static_cast<int>(p)];
}

/// One call in one step; times in seconds.
struct sample {
    int step = 0;
    double start = 0, seconds = 0;
};

/// The median; 0 of nothing.
inline double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// The median and the minimum of times in seconds.
struct times {
    double median = 0, least = 0;
};
/// Median and minimum; 0 of nothing.
inline times times_of(const std::vector<double>& seconds) {
    return {median_of(seconds), seconds.empty() ? 0 : *std::min_element(seconds.begin(), seconds.end())};
}

/// A kernel call of a step.
struct call {
    profiling::phase phase = profiling::phase::forward;
    std::string layer;      ///< the path of its scope; empty: none
    std::string line;       ///< "model.hpp:23"; empty if it is unknown
    std::string operation;  ///< "matmul", "add, relu", "sum of square"
    std::string shape;      ///< of operands and results: "f32[32,784] f32[784,10] -> f32[32,10]"
    int number = -1;        ///< of a program's call; -1 in eager mode
    std::int64_t count = 0; ///< calls in all steps
    times seconds;
    double flops = 0, bytes = 0;
    double bound = 0;            ///< minimum seconds by the peaks; 0: unknown
    double reached = 0;          ///< bound / least seconds; 0: unknown
    std::size_t arena_bytes = 0; ///< memory of its results and scratch memory in the program's arena
    std::size_t live_bytes = 0;  ///< live memory in the arena while it runs
    counter_values counted;      ///< per step, on average
    std::vector<sample> samples; ///< in order of time
};

/// The calls of one layer, medians added up.
struct layer {
    std::string path;
    int calls = 0;
    double seconds = 0, forward = 0, backward = 0, update = 0;
    double least = 0; ///< least seconds added up
    double flops = 0, bytes = 0, bound = 0;
};

/// Options of a profile's table.
struct table_options {
    int rows = 20;         ///< calls shown; negative: all
    bool in_order = false; ///< in execution order; otherwise by time
    bool layers = true;    ///< also sums by layer
};

} // namespace profiling

/// The times of some steps, call by call. `text()` and `csv()` return tables; Perfetto opens
/// `chrome_trace()`.
struct profile_result {
    std::vector<profiling::call> calls;   ///< in the order of a step
    std::vector<profiling::layer> layers; ///< in the order of their first calls
    std::vector<profiling::sample> steps;
    profiling::times step;       ///< a whole step
    double calls_share = 0;      ///< the calls' fraction of the steps' time, including waiting for data
    double waited_share = 0;     ///< the fraction spent waiting for data
    std::size_t arena_bytes = 0; ///< of the largest program
    std::size_t kept_bytes = 0;  ///< of packed weights that a prediction keeps between runs
    profiling::peaks peaks;
    int threads = 1;
    std::string device = "cpu";
    bool counted = false;
    std::string missing_counters; ///< "cycles: not available: ..."; a line each

    /// Medians of all calls of a phase, added up.
    double seconds_of(profiling::phase p) const {
        double sum = 0;
        for (const profiling::call& c : calls)
            if (c.phase == p) sum += c.seconds.median;
        return sum;
    }
    /// Floating-point operations of a step.
    double flops() const {
        double sum = 0;
        for (const profiling::call& c : calls) sum += c.flops;
        return sum;
    }

    /// Calls whose fraction of the bound is below `low` or above `high`, for which the cost model
    /// does not predict the time. The slowest come first. Calls without a bound are omitted.
    std::vector<const profiling::call*> off_the_bound(double low = 0.5, double high = 1.2) const {
        std::vector<const profiling::call*> found;
        for (const profiling::call& c : calls)
            if (c.bound > 0 && (c.reached < low || c.reached > high)) found.push_back(&c);
        std::stable_sort(found.begin(), found.end(),
                         [](const auto* a, const auto* b) { return a->seconds.median > b->seconds.median; });
        return found;
    }

    /// A table: the step, its phases, its slowest calls, its layers, and calls that the cost model
    /// does not predict.
    std::string text(const profiling::table_options& options = {}) const;
    /// One line per call, with a header; comma-separated, quoted where needed.
    std::string csv() const;
    /// Every call of every step in the Trace Event Format (JSON).
    std::string chrome_trace() const;
};

} // namespace tapegraph
