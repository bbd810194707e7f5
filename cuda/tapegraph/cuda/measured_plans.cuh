#pragma once

#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/trial.cuh>
#include <tapegraph/cuda/plan_memory.hpp>
#include <tapegraph/runtime/placement_log.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

/// Chooses among several ways to do a piece of work: by a remembered plan, by trials on the device,
/// or by prediction.

namespace tapegraph::cuda {

/// One way to do a piece of work.
struct plan_candidate {
    std::string name;          ///< the name it is remembered by, unique within the work
    std::size_t workspace = 0; ///< bytes
};

/// A piece of work with the candidates for it.
struct planned_work {
    std::string name; ///< operation, types, math_mode and shape
    std::vector<plan_candidate> candidates;
    int predicted = 0;             ///< index of the candidate chosen without trials
    int reference = 0;             ///< index of the candidate whose results are trusted
    std::int64_t results = 0;      ///< elements
    double largest_difference = 0; ///< from the reference's results that rounding can explain
};

namespace detail {
/// The number of blocks of 256 threads, with a few elements per thread.
inline unsigned trial_blocks(std::int64_t count, std::int64_t most) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(count / 2048, 1, most));
}
} // namespace detail

/// Device memory for a trial.
template <class T>
class trial_memory {
public:
    trial_memory(context& on, std::int64_t count)
        : on_(on),
          count_(count),
          at_(static_cast<T*>(on.memory().allocate(static_cast<std::size_t>(count) * sizeof(T), "trials of plans"))) {}
    trial_memory(const trial_memory&) = delete;
    trial_memory& operator=(const trial_memory&) = delete;
    ~trial_memory() {
        try {
            on_.memory().release(at_);
        } catch (...) { // called by destructors; the error shows at the next call
        }
    }
    T* data() const { return at_; }
    void fill_with_noise(std::uint32_t seed) {
        driver::launch(on_.stream(), "operands of trials", {detail::trial_blocks(count_, 1024), 256u},
                       kernels::noise<T>, at_, count_, seed);
    }
    /// Sets every byte to 0xFF, which is NaN.
    void poison() { driver::fill(at_, 0xFF, static_cast<std::size_t>(count_) * sizeof(T), on_.stream()); }

private:
    context& on_;
    std::int64_t count_;
    T* at_;
};

namespace detail {

/// Times candidates and compares their results, which are elements of type T.
template <class T>
class plan_trials {
public:
    plan_trials(context& on, const planned_work& work)
        : on_(on),
          work_(work),
          expected_(on, work.results),
          found_(on, work.results),
          workspace_(on, most_scratch(work)),
          differences_(on, 256 * most_comparing) {
        for (driver::event& e : events_) e = driver::make_timed_event();
    }
    plan_trials(const plan_trials&) = delete;
    plan_trials& operator=(const plan_trials&) = delete;
    ~plan_trials() {
        for (const driver::event e : events_) driver::destroy_event(e);
    }

    /// Times the candidates; run(candidate, results, workspace) enqueues one. Returns microseconds
    /// for each, and nothing for a candidate whose results differ or that the device refuses; a
    /// line on stderr tells why.
    template <class Run>
    std::vector<std::optional<double>> operator()(const Run& run) {
        const auto once = [&](int candidate, trial_memory<T>& to) {
            to.poison();
            workspace_.poison();
            run(candidate, to.data(), workspace_.data());
        };
        once(work_.reference, expected_);
        std::vector<std::optional<double>> times(work_.candidates.size());
        for (int c = 0; c < static_cast<int>(times.size()); ++c) {
            try {
                once(c, found_); // loads modules; a library searches for algorithms
                if (const double apart = distance(); apart <= work_.largest_difference)
                    times[static_cast<std::size_t>(c)] = median([&] { run(c, found_.data(), workspace_.data()); });
                else
                    report(c, "its results differ by " + text(apart) + " from those of " + name(work_.reference) +
                                  ", of which rounding explains " + text(work_.largest_difference));
            } catch (const device_error& e) {
                report(c, e.what());
            }
        }
        return times;
    }

private:
    static constexpr int repetitions = 5, most_comparing = 64; // blocks

    static std::int64_t most_scratch(const planned_work& work) {
        std::size_t most = 1;
        for (const plan_candidate& c : work.candidates) most = std::max(most, c.workspace);
        return static_cast<std::int64_t>(most);
    }
    static std::string text(double number) {
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.3g", number);
        return digits;
    }
    const std::string& name(int candidate) const { return work_.candidates[static_cast<std::size_t>(candidate)].name; }
    void report(int candidate, const std::string& why) const {
        std::fprintf(stderr, "tapegraph: '%s' is not used for %s on %s: %s\n", name(candidate).c_str(),
                     work_.name.c_str(), on_.properties().name.c_str(), why.c_str());
    }
    double distance() {
        const unsigned blocks = trial_blocks(work_.results, most_comparing);
        differences_.poison();
        driver::launch(on_.stream(), "comparison of trials", {blocks, 256u}, kernels::largest_differences<T>,
                       found_.data(), expected_.data(), work_.results, differences_.data());
        std::vector<double> all(std::size_t{256} * blocks);
        driver::copy(all.data(), differences_.data(), all.size() * sizeof(double), on_.stream());
        driver::wait(on_.stream());
        double most = 0;
        for (const double each : all) {
            if (each != each) return each; // there was nothing to compare
            most = std::max(most, each);
        }
        return most;
    }
    template <class F>
    double median(const F& enqueue) {
        for (std::size_t i = 0; i < events_.size(); i += 2) {
            // The results are poisoned between two runs, so that the caches are not as the last run
            // left them and the host runs ahead.
            found_.poison();
            driver::record(events_[i], on_.stream());
            enqueue();
            driver::record(events_[i + 1], on_.stream());
        }
        driver::wait(on_.stream());
        std::array<double, repetitions> times;
        for (std::size_t i = 0; i < times.size(); ++i)
            times[i] = driver::microseconds(events_[2 * i], events_[2 * i + 1]);
        std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
        return times[repetitions / 2];
    }

    context& on_;
    const planned_work& work_;
    trial_memory<T> expected_, found_;
    trial_memory<unsigned char> workspace_;
    trial_memory<double> differences_;
    std::array<driver::event, std::size_t{2} * repetitions> events_{};
};

/// The fastest candidate; the predicted one where others took the same time or where none was
/// admitted.
inline int fastest(const std::vector<std::optional<double>>& times, int predicted) {
    int best = predicted;
    const auto at = [&](int c) { return times[static_cast<std::size_t>(c)]; };
    for (int c = 0; c < static_cast<int>(times.size()); ++c)
        if (at(c) && (!at(best) || *at(c) < *at(best))) best = c;
    return best;
}

/// Whether a candidate other than the predicted one may be chosen. If not, the other candidates
/// need not be listed.
inline bool plans_vary() { return current_plan_policy() == plan_policy::measured || !plan_memory::instance().empty(); }

/// Returns the index of the candidate to use. `prepare()` makes the operands and returns a function
/// of (candidate, results, workspace) that may launch and wait, so nothing is measured while a
/// graph is captured.
template <class T, class Prepare>
int choose_candidate(context& on, const planned_work& work, const Prepare& prepare) {
    const std::string& device = on.properties().name;
    const auto say = [&](const char* how, int c, double microseconds, const std::string& more) {
        if (runtime::placement_is_logged())
            std::fprintf(stderr, "tapegraph: plan %s: %s on %s: %s, %.2f us%s\n", how, work.name.c_str(),
                         device.c_str(), work.candidates[static_cast<std::size_t>(c)].name.c_str(), microseconds,
                         more.c_str());
    };
    if (const auto known = plan_memory::instance().find(device, work.name))
        for (int c = 0; c < static_cast<int>(work.candidates.size()); ++c)
            if (work.candidates[static_cast<std::size_t>(c)].name == known->plan) {
                say("remembered", c, known->microseconds, "");
                return c;
            }
    if (current_plan_policy() == plan_policy::predicted || work.candidates.size() < 2 || work.results == 0)
        return work.predicted;
    const auto open = tapegraph::detail::cuda_backend().open;
    const runtime::device_turn turn(open == nullptr ? nullptr : open(on.device()));
    if (on.memory().is_recording()) return work.predicted;
    std::vector<std::optional<double>> times;
    try {
        plan_trials<T> trials(on, work);
        times = trials(prepare());
    } catch (const out_of_memory& e) {
        std::fprintf(stderr, "tapegraph: the plan for %s is predicted, not measured: %s\n", work.name.c_str(),
                     e.what());
        return work.predicted;
    }
    const int best = fastest(times, work.predicted);
    const auto& least = times[static_cast<std::size_t>(best)];
    if (!least) return work.predicted;
    plan_memory::instance().keep(device, work.name, {work.candidates[static_cast<std::size_t>(best)].name, *least});
    char predicted[32] = "not used";
    if (const auto& other = times[static_cast<std::size_t>(work.predicted)])
        std::snprintf(predicted, sizeof predicted, "%.2f us", *other);
    say("measured", best, *least,
        " of " + std::to_string(work.candidates.size()) + " candidates; predicted: " +
            work.candidates[static_cast<std::size_t>(work.predicted)].name + ", " + predicted);
    return best;
}

} // namespace detail

} // namespace tapegraph::cuda
