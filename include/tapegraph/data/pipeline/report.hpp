#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/component.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

/// Measurements of a pipeline's stages.

namespace tapegraph::data {

/// One stage, from the source on; the last row is the consumer: a training step, or a loop.
struct stage_report {
    std::string name;
    std::int64_t elements = 0; ///< elements made so far
    double busy_seconds = 0;   ///< this stage's own work, summed over all threads
    double wait_seconds = 0;   ///< waiting for elements that were not ready
    /// Elements per second of a single thread that does nothing else; 0 if nothing was measured.
    double rate() const { return busy_seconds > 0 ? static_cast<double>(elements) / busy_seconds : 0; }
};

namespace detail {

struct stage_counters {
    std::atomic<const char*> name{nullptr};
    std::atomic<std::int64_t> elements{0}, busy{0}, waiting{0}; // nanoseconds

    void add(double seconds, std::int64_t count = 1) {
        busy.fetch_add(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
        elements.fetch_add(count, std::memory_order_relaxed);
    }
    void add_waiting(double seconds) {
        waiting.fetch_add(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
    }
};

/// Storage for a number of stages, kept by the set and by all walks through it.
struct report_store {
    explicit report_store(int count)
        : size(count), stages(std::make_unique<stage_counters[]>(static_cast<std::size_t>(count))) {}
    int size;
    std::unique_ptr<stage_counters[]> stages;
};

/// Counts one element and the time until the end of the scope.
class busy_scope {
public:
    explicit busy_scope(stage_counters* to) : to_(to), start_(to != nullptr ? steady_seconds() : 0) {}
    busy_scope(const busy_scope&) = delete;
    busy_scope& operator=(const busy_scope&) = delete;
    ~busy_scope() {
        if (to_ != nullptr) to_->add(steady_seconds() - start_);
    }

private:
    static double steady_seconds() { return tapegraph::detail::steady_seconds(); }
    stage_counters* to_;
    double start_;
};

std::vector<stage_report> report_of(const report_store& store);

} // namespace detail

/// Measurements of a pipeline's stages since the set was created.
struct pipeline_report {
    std::vector<stage_report> stages;

    /// The busiest stage; "step" if that is the consumer, so that more threads would not help.
    std::string bottleneck() const;
    /// The fraction of its time that the consumer has waited for elements.
    double wait_share() const {
        if (stages.empty()) return 0;
        const stage_report& last = stages.back();
        const double all = last.wait_seconds + last.busy_seconds;
        return all > 0 ? last.wait_seconds / all : 0;
    }
    /// A table with a line per stage, and a conclusion.
    std::string text() const;
};

#if TG_DEFINES(data)

namespace detail {

TG_DEFINITION std::vector<stage_report> report_of(const report_store& store) {
    std::vector<stage_report> rows;
    for (int i = 0; i < store.size; ++i) {
        const stage_counters& c = store.stages[static_cast<std::size_t>(i)];
        if (const char* const name = c.name.load())
            rows.push_back({name, c.elements.load(), 1e-9 * static_cast<double>(c.busy.load()),
                            1e-9 * static_cast<double>(c.waiting.load())});
    }
    return rows;
}

} // namespace detail

TG_DEFINITION std::string pipeline_report::bottleneck() const {
    if (stages.empty()) return {};
    const stage_report& last = stages.back();
    if (last.wait_seconds <= 0.02 * (last.wait_seconds + last.busy_seconds)) return last.name;
    const stage_report* most = stages.data();
    for (const stage_report& s : stages)
        if (&s != &last && s.busy_seconds > most->busy_seconds) most = &s;
    return most->name;
}

TG_DEFINITION std::string pipeline_report::text() const {
    std::string table = "stage                elements      busy s   elements/s      wait s\n";
    char line[160];
    for (const stage_report& s : stages) {
        std::snprintf(line, sizeof line, "%-18s %10lld %11.3f %12.0f %11.3f\n", s.name.c_str(),
                      static_cast<long long>(s.elements), s.busy_seconds, s.rate(), s.wait_seconds);
        table += line;
    }
    if (stages.empty()) return table;
    std::snprintf(line, sizeof line, "bottleneck: %s; %s waited %.1f%% of its time\n", bottleneck().c_str(),
                  stages.back().name.c_str(), 100 * wait_share());
    return table += line;
}

#endif

} // namespace tapegraph::data
