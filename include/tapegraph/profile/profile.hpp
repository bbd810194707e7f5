#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/profile/kept_state.hpp>
#include <tapegraph/profile/recorder.hpp>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// tg::profile: measures where the time of steps goes.

namespace tapegraph {

/// Options of profile.
struct profile_options {
    int steps = 10;  ///< measured
    int warm_up = 2; ///< unmeasured steps before: the first ones plan, and allocate memory
    /// Peaks for the bounds: floating-point operations (of floats) and bytes per second; 0:
    /// measured once per process.
    double peak_flops = 0;
    double bandwidth = 0;
    bool counters =
        false; ///< also read counters of the processor and the kernel, if available; a few microseconds for each call
    bool restore =
        true; ///< restore a model's variables, its optimizer's state and its step count after the measurement
    profiling::clock_function clock = detail::steady_seconds;
};

namespace profiling {

/// The device's peaks: those of the options, or measured.
inline peaks peaks_for(const profile_options& options, const std::string& device) {
    peaks p;
    const bool known = options.peak_flops > 0 && options.bandwidth > 0;
    if (device == "cpu" && !known) p = measured_peaks(); // GPUs are not measured
    if (options.peak_flops > 0) p.flops = options.peak_flops;
    if (options.bandwidth > 0) p.bandwidth = {{0, options.bandwidth}};
    return p;
}

/// Adds a call to the sums of its layer.
inline void add_to_layer(std::vector<layer>& layers, const call& c) {
    auto at = std::find_if(layers.begin(), layers.end(), [&](const layer& l) { return l.path == c.layer; });
    if (at == layers.end()) at = layers.insert(at, layer{c.layer});
    ++at->calls;
    at->seconds += c.seconds.median;
    at->least += c.seconds.least;
    (c.phase == phase::forward    ? at->forward
     : c.phase == phase::backward ? at->backward
                                  : at->update) += c.seconds.median;
    at->flops += c.flops;
    at->bytes += c.bytes;
    at->bound += c.bound;
}

/// The tables' numbers from what was recorded.
inline profile_result result_of(const recorder& r, const profile_options& options) {
    profile_result result;
    result.steps = r.steps();
    result.device = r.device();
    result.threads = thread_count();
    result.peaks = peaks_for(options, r.device());
    result.arena_bytes = r.arena_bytes();
    result.kept_bytes = r.kept_bytes();
    std::vector<double> all;
    double total = 0, called = 0, waited = 0;
    for (const sample& s : result.steps) {
        all.push_back(s.seconds);
        total += s.seconds;
    }
    result.step = times_of(all);
    for (const recorder::row& row : r.rows()) {
        if (row.facts.samples.empty()) continue; // only in the first steps
        call c = row.facts;
        all.clear();
        for (const sample& s : c.samples) {
            all.push_back(s.seconds);
            called += s.seconds;
            if (c.phase == phase::ingestion) waited += s.seconds;
        }
        c.count = static_cast<std::int64_t>(all.size());
        c.seconds = times_of(all);
        c.bound = result.peaks.bound(c.flops, c.bytes, row.half_rate);
        c.reached = c.seconds.least > 0 ? c.bound / c.seconds.least : 0;
        for (double& n : c.counted.at) n /= static_cast<double>(std::max<std::size_t>(result.steps.size(), 1));
        result.calls.push_back(std::move(c));
    }
    // In the order of time, even if a step had calls that others did not.
    std::stable_sort(result.calls.begin(), result.calls.end(), [&](const call& a, const call& b) {
        const auto at = [&](const call& c) {
            return c.samples.front().start - result.steps[static_cast<std::size_t>(c.samples.front().step)].start;
        };
        return at(a) < at(b);
    });
    for (const call& c : result.calls)
        if (c.phase != phase::ingestion) add_to_layer(result.layers, c);
    result.calls_share = total > 0 ? called / total : 0;
    result.waited_share = total > 0 ? waited / total : 0;
    result.counted = r.counted() != nullptr;
    for (int i = 0; result.counted && i < counter_count; ++i) {
        const auto which = static_cast<counter>(i);
        if (const std::string why = r.counted()->missing(which); !why.empty())
            result.missing_counters += std::string(name_of(which)) + ": " + why + "\n";
    }
    return result;
}

/// Calls step(recorder) repeatedly and records it.
template <class Step>
profile_result profiled(const profile_options& options, const Step& step) {
    if (options.steps < 1)
        throw argument_error("profile: steps must be at least 1, given " + std::to_string(options.steps));
    if (options.warm_up < 0)
        throw argument_error("profile: warm_up must not be negative, given " + std::to_string(options.warm_up));
    recorder r(options.clock, options.counters);
    const scoped_layer_names layer_names;
    const runtime::observer_scope watched(r);
    for (int s = -options.warm_up; s < options.steps; ++s) {
        r.begin_step(s >= 0);
        step(r);
        r.end_step();
    }
    return result_of(r, options);
}

/// While it lives, a model may be trained; afterwards its state is restored.
template <class Model>
class restored {
public:
    restored(Model& m, bool on) : model_(on ? &m : nullptr) {
        if constexpr (has_state)
            if (on) m.save(state_);
    }
    restored(const restored&) = delete;
    restored& operator=(const restored&) = delete;
    ~restored() {
        if constexpr (has_state)
            if (model_ != nullptr) model_->load(state_);
    }

private:
    static constexpr bool has_state = std::is_base_of_v<tapegraph::detail::model_base, Model>;
    Model* model_;
    kept_state state_;
};

/// Runs the steps and records them. The model is afterwards what it was, if `restore` says so.
template <class Model, class... Columns>
profile_result profile_steps(const profile_options& options, Model& model, const Columns&... columns) {
    const restored<Model> afterwards(model, options.restore);
    // nvcc finds no train_on_batch in a requirement.
    constexpr bool trains = std::is_base_of_v<tapegraph::detail::model_base, Model> || requires {
        model.train_on_batch(columns...);
    };
    return profiled(options, [&](recorder&) {
        if constexpr (trains)
            (void)model.train_on_batch(columns...);
        else
            (void)model(columns...);
    });
}

} // namespace profiling

// clang-format off
template <class = void> no_such_option_in<profile_options> profile(any_argument, ...) TG_MISTAKE;
template <class = void> no_such_option_in<profile_options> profile(any_argument, any_argument, ...) TG_MISTAKE;
// clang-format on

/// Measures `step()`, which may do anything: eager statements, steps of models, compiled functions. Its
/// changes are kept. Only kernel calls of the calling thread are seen. Throws argument_error for less
/// than one step.
template <class Step>
    requires std::is_invocable_v<Step&> profile_result profile(Step&& step, const profile_options& options = {}) {
        return profiling::profiled(options, [&](profiling::recorder&) { (void)step(); });
    }

/// The times of training steps on a batch: of a compiled model on inputs followed by labels, in
/// either mode; of a compiled step, or of a compiled function, on its arguments. The state of a
/// model is restored afterwards (profile_options::restore), including metrics. On a GPU every call
/// is awaited, so a step takes longer than the captured one. Throws like train_on_batch.
///
///     std::puts(tg::profile(model, x, y, {.steps = 20}).text().c_str());
template <class Model, class A>
    requires(!std::is_same_v<A, data::dataset> && !std::is_same_v<A, profile_options>)
profile_result profile(Model& model, const A& a, const profile_options& options = {}) {
    return profiling::profile_steps(options, model, a);
}
template <class Model, class A, class B>
    requires(!std::is_same_v<B, profile_options>)
profile_result profile(Model& model, const A& a, const B& b, const profile_options& options = {}) {
    return profiling::profile_steps(options, model, a, b);
}
template <class Model, class A, class B, class C>
    requires(!std::is_same_v<C, profile_options>)
profile_result profile(Model& model, const A& a, const B& b, const C& c, const profile_options& options = {}) {
    return profiling::profile_steps(options, model, a, b, c);
}
template <class Model, class A, class B, class C, class D>
    requires(!std::is_same_v<D, profile_options>)
profile_result profile(Model& model, const A& a, const B& b, const C& c, const D& d,
                       const profile_options& options = {}) {
    return profiling::profile_steps(options, model, a, b, c, d);
}

/// The times of training steps over a data set (one that shuffles and prefetches as in `fit`),
/// which restarts after its last batch: the wait of a step for its batch is a separate call, and
/// `profile_result::waited_share` its fraction of the total.
template <class Model>
profile_result profile(Model& model, const data::dataset& set, const profile_options& options = {}) {
    const profiling::restored<Model> afterwards(model, options.restore);
    data::loader loader(set);
    std::uint64_t epoch = 0;
    loader.begin_epoch(epoch);
    return profiling::profiled(options, [&](profiling::recorder& r) {
        const data::batch* const b = r.waiting([&] {
            if (const data::batch* const next = loader.next(); next != nullptr) return next;
            loader.begin_epoch(++epoch);
            return loader.next();
        });
        (void)model.train_on_batch(*b);
    });
}

/// The times of predictions.
template <class Model, class... Inputs>
profile_result profile_prediction(const Model& model, const profile_options& options, const Inputs&... x) {
    return profiling::profiled(options, [&](profiling::recorder&) { (void)model.predict(x...); });
}
template <class Model, class X>
profile_result profile_prediction(const Model& model, const X& x, const profile_options& options = {}) {
    return profile_prediction(model, options, x);
}

} // namespace tapegraph
