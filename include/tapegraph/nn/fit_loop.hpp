#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/data/class_weights.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/io/progress.hpp>
#include <tapegraph/nn/fit_position.hpp>
#include <tapegraph/nn/interrupt.hpp>
#include <tapegraph/nn/trainer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The loops of fit and evaluate.

namespace tapegraph::detail {

/// Sums over the records of an epoch.
struct measured_sums {
    double loss = 0, accuracy = 0;
    std::int64_t records = 0;

    void add(const step_result& r, std::int64_t count) {
        loss += r.loss * static_cast<double>(count);
        accuracy += r.accuracy * static_cast<double>(count);
        records += count;
    }
    step_result mean() const {
        const auto count = static_cast<double>(std::max<std::int64_t>(records, 1));
        return {loss / count, accuracy / count};
    }
};

/// A call of fit.
struct fit_run {
    const mode_calls& calls;
    const fit_options& options;
    const fit_hooks& hooks;
    data::loader& loader;
    column_match& match;
    data::loader* validation; ///< null: nothing to validate on
    column_match* validation_match;
    training_state& state;
    io::progress_line& progress;

    measured_sums sums{};      ///< of this epoch
    bool inside = false;       ///< between two steps of an epoch
    std::int64_t next_epoch = 0; ///< where the run goes on, at step state.batch if it is inside

    void call(hook callback_hooks::*which) const {
        for (int i = 0; i < hooks.count; ++i)
            if (const hook f = hooks.callbacks[i].*which) f(hooks.callbacks[i].object, state);
    }
    /// What is logged by name of what was measured.
    void log(const step_result& means, const std::vector<named_value>* metrics, bool validation_values) const {
        state.logs.set(validation_values ? "val_loss" : "loss", means.loss);
        state.logs.set(validation_values ? "val_accuracy" : "accuracy", means.accuracy);
        if (metrics == nullptr) return;
        for (const named_value& v : *metrics) state.logs.set(validation_values ? "val_" + v.name : v.name, v.value);
    }
    /// A step whose results are there.
    void finish_step(const step_result& r, std::int64_t records) {
        sums.add(r, records);
        ++state.batch;
        ++state.step;
        state.batch_loss = r.loss;
        inside = true;
        log(sums.mean(), nullptr, false);
        progress.update(state.batch, state.logs);
        call(&callback_hooks::batch_end);
        look_for_interrupt();
    }
    void look_for_interrupt() {
        if (state.interrupts_watched() && interrupt_guard::pending()) state.interrupt("Ctrl-C");
    }
    bool wants_checkpoint() const { return state.checkpoint_requested() || state.history.interrupted; }
};

/// The records to train on and to validate on.
struct fit_sets {
    data::dataset train;
    std::optional<data::dataset> validation;
};

// A column of weights by class, for models that take weights; what is validated on counts as it did.
template <class = void>
void weigh_by_class(fit_sets& sets, const fit_options& o, const mode_calls& calls, dtype type) {
    if (o.class_weight.empty()) return;
    bool weighted = false;
    for (const std::string_view name : calls.labels) weighted = weighted || name == "sample_weight";
    if (!weighted) throw argument_error("fit: class_weight is given, and the model's loss takes no weights; compile it with tg::weighted{loss}");
    if (calls.labels.size() != 2) throw argument_error("fit: class_weight is of models with one output");
    const auto with_weights = [&](const data::dataset& set, const std::vector<double>& weights) {
        std::vector<data::column_spec> columns = set.columns();
        bool there = false;
        for (const data::column_spec& c : columns) there = there || c.name == "sample_weight";
        if (!there) columns.push_back({"sample_weight", type, {}});
        return data::with_class_weights(set, weights, column_match(calls, columns).place(calls.inputs.size()), type);
    };
    sets.train = with_weights(sets.train, o.class_weight);
    if (sets.validation) sets.validation = with_weights(*sets.validation, {});
}

template <class = void>
fit_sets sets_of(const data::dataset& all, const fit_options& o, const mode_calls& calls, std::uint64_t seed, dtype weights) {
    const auto refuse = [](const char* name, auto value, const char* why) {
        throw argument_error(std::string("fit: ") + name + " is " + std::to_string(value) + why);
    };
    if (o.epochs < 0) refuse("epochs", o.epochs, "");
    if (o.initial_epoch < 0) refuse("initial_epoch", o.initial_epoch, "");
    if (o.steps_per_epoch < 0) refuse("steps_per_epoch", o.steps_per_epoch, "");
    if (o.validation_steps < 0) refuse("validation_steps", o.validation_steps, "");
    if (o.validation_freq < 1) refuse("validation_freq", o.validation_freq, ", not at least 1");
    if (o.validation_batch_size < 0) refuse("validation_batch_size", o.validation_batch_size, "");
    if (o.verbose < 0 || o.verbose > 2) refuse("verbose", o.verbose, ", not 0, 1 or 2");
    if (!(o.validation_split >= 0 && o.validation_split < 1))
        refuse("validation_split", o.validation_split, ", not at least 0 and below 1");
    fit_sets sets{all, o.validation_data};
    if (o.validation_split > 0) {
        if (o.validation_data)
            throw argument_error("fit: both validation_data and validation_split are given; one of them says on what to validate");
        const auto kept = static_cast<std::int64_t>(std::floor(static_cast<double>(all.size()) * (1 - o.validation_split)));
        if (kept < 1 || kept >= all.size())
            throw argument_error("fit: validation_split " + std::to_string(o.validation_split) + " of " +
                                 std::to_string(all.size()) + " records leaves none to " + (kept < 1 ? "train" : "validate") + " on");
        std::vector<std::int64_t> records(static_cast<std::size_t>(all.size()));
        for (std::size_t i = 0; i < records.size(); ++i) records[i] = static_cast<std::int64_t>(i);
        const std::span<const std::int64_t> numbers(records);
        sets.train = all.subset(numbers.first(static_cast<std::size_t>(kept)));
        sets.validation = all.subset(numbers.subspan(static_cast<std::size_t>(kept)));
    }
    weigh_by_class(sets, o, calls, weights);
    sets.train = sets.train.batch(o.batch_size).prefetch(o.prefetch);
    if (o.shuffle) sets.train = sets.train.shuffle(seed);
    if (sets.validation)
        sets.validation =
            sets.validation->batch(o.validation_batch_size > 0 ? o.validation_batch_size : o.batch_size).prefetch(o.prefetch);
    return sets;
}

template <class X>
history basic_trainer<X>::fit_with(const mode_calls& calls, const data::dataset& train, const fit_options& options,
                                   const fit_hooks& hooks) {
    const dtype weights = variables_.size() > 0 ? variables_.at(0).type() : dtype::f32;
    const fit_sets sets = sets_of(train, options, calls, options_.seed, weights);
    column_match match(calls, sets.train.columns());
    data::loader loader(sets.train);
    std::optional<data::loader> validation;
    std::optional<column_match> validation_match;
    if (sets.validation) {
        validation_match.emplace(calls, sets.validation->columns());
        validation.emplace(*sets.validation);
    }
    constexpr io::progress_style styles[]{io::progress_style::quiet, io::progress_style::automatic,
                                          io::progress_style::per_epoch};
    io::progress_line progress(std::cerr, styles[options.verbose]);
    training_state state(*this, hooks.rate, calls.metrics);
    fit_run run{calls, options, hooks, loader, match, validation ? &*validation : nullptr, validation ? &*validation_match : nullptr, state,
                progress};
    state.epoch = run.next_epoch = options.initial_epoch;
    state.epochs = options.epochs;
    state.step = step_;
    state.batches = loader.batches_per_epoch();
    if (options.steps_per_epoch > 0) state.batches = std::min(state.batches, options.steps_per_epoch);
    state.validates = run.validation != nullptr;
    if (options.stop_on_interrupt) state.stop_on_interrupt();
    run.call(&callback_hooks::train_begin);
    std::optional<interrupt_guard> guard;
    if (state.interrupts_watched()) guard.emplace();
    if ((options.resume || state.resume_requested()) && !run_.empty()) restore_position(run);
    run_.clear(); // of a run that an exception ends nothing is left to go on from
    state.step = step_;

    struct fitting {
        bool& flag;
        ~fitting() { flag = false; }
    } const under_way{fitting_ = true};
    while (run.next_epoch < options.epochs && !state.history.interrupted && (run.inside || !state.stopped())) run_epoch(run);
    note_position(run);
    fitting_ = false;
    run.call(&callback_hooks::train_end);
    return std::move(state.history);
}

template <class X>
void basic_trainer<X>::run_epoch(fit_run& run) {
    const double start = steady_seconds();
    training_state& s = run.state;
    s.epoch = run.next_epoch;
    if (!run.inside) {
        s.batch = 0;
        s.logs.clear();
        run.sums = {};
        reset_metrics();
    }
    run.progress.begin_epoch(s.epoch + 1, s.epochs, s.batches);
    run.loader.begin_epoch(static_cast<std::uint64_t>(s.epoch), s.batch);
    if (!run.inside) run.call(&callback_hooks::epoch_begin);
    run_steps(run);
    if (s.history.interrupted || s.batch == 0) {
        if (s.batch > 0) run.progress.end_epoch(s.batch, s.logs);
        return;
    }
    const step_result means = run.sums.mean();
    epoch_result r;
    r.loss = means.loss;
    r.accuracy = means.accuracy;
    if (run.calls.metrics != nullptr) run.calls.metrics(*this, r.metrics);
    run.log(means, &r.metrics, false);
    r.seconds = steady_seconds() - start;
    r.ingestion_seconds = run.loader.wait_seconds();
    r.steps = s.batch;
    r.records = run.sums.records;
    r.epoch = s.epoch;
    if (run.validation != nullptr && (s.epoch + 1) % run.options.validation_freq == 0) {
        run.call(&callback_hooks::test_begin);
        measured_result v = measure_batches(run.calls, *run.validation_match, *run.validation, run.options.validation_steps);
        r.validation_loss = v.loss;
        r.validation_accuracy = v.accuracy;
        r.validation_metrics = std::move(v.metrics);
        run.log(v, &r.validation_metrics, true);
        run.call(&callback_hooks::test_end);
    }
    run.progress.end_epoch(s.batch, s.logs);
    run.call(&callback_hooks::epoch_end);
    r.logs = s.logs;
    s.history.epochs.push_back(std::move(r));
    run.inside = false;
    ++run.next_epoch;
    run.look_for_interrupt();
    if (run.wants_checkpoint()) checkpoint(run);
}

// The steps that the epoch still has, or those before training is to end.
template <class X>
void basic_trainer<X>::run_steps(fit_run& run) {
    training_state& s = run.state;
    const bool ahead = run.calls.launch != nullptr && device_ != nullptr && !options_.check_finite;
    while (s.batch < s.batches && !s.ends()) {
        if (ahead) {
            run_ahead(run);
        } else {
            const data::batch* b = run.loader.next();
            if (b == nullptr) return;
            s.next_step = step_ + 1;
            run.call(&callback_hooks::batch_begin);
            run.finish_step(step_with(run.calls, run.match.of(*b)), b->count());
        }
        if (run.wants_checkpoint()) checkpoint(run);
    }
}

// On a device the host does not wait for a step's loss before it sends the next batch: it reads the losses of steps that lie
// behind, and all that are left where somebody wants to stop.
template <class X>
void basic_trainer<X>::run_ahead(fit_run& run) {
    constexpr std::size_t most_ahead = 16;
    struct sent {
        launched_step step;
        std::int64_t records = 0;
    };
    std::array<sent, most_ahead + 1> under_way{}; // a ring
    std::size_t first = 0, count = 0;
    const device_scope on(device_);
    training_state& s = run.state;
    const auto finish_one = [&] {
        const sent& oldest = under_way[first];
        first = (first + 1) % under_way.size();
        --count;
        run.finish_step(run.calls.result_of(*this, oldest.step), oldest.records);
    };
    for (std::int64_t sent_steps = s.batch; sent_steps < s.batches && !s.ends() && !s.checkpoint_requested(); ++sent_steps) {
        const data::batch* b = run.loader.next();
        if (b == nullptr) break;
        s.next_step = step_ + 1;
        run.call(&callback_hooks::batch_begin);
        const batch_columns columns = run.match.of(*b);
        check_batch(run.calls.inputs, columns);
        ++step_;
        under_way[(first + count++) % under_way.size()] = {run.calls.launch(*this, columns), b->count()};
        if (count > most_ahead) finish_one();
    }
    device_->wait(); // what kernels found wrong is thrown here
    while (count > 0) finish_one();
}

template <class X>
measured_result basic_trainer<X>::measure_batches(const mode_calls& calls, column_match& match, data::loader& loader,
                                                  std::int64_t most) {
    const device_scope on(device_);
    const metric_state_guard kept(*this); // of an epoch under way
    measured_sums sums;
    loader.begin_epoch(0);
    for (std::int64_t i = 0; most == 0 || i < most; ++i) {
        const data::batch* b = loader.next();
        if (b == nullptr) break;
        sums.add(calls.measure(*this, match.of(*b)), b->count());
    }
    measured_result result{sums.mean(), {}};
    if (calls.metrics != nullptr) calls.metrics(*this, result.metrics);
    return result;
}

template <class X>
measured_result basic_trainer<X>::evaluate_with(const mode_calls& calls, const data::dataset& set, std::int64_t batch_size) {
    column_match match(calls, set.columns());
    data::loader loader(set.batch(batch_size).prefetch(2));
    return measure_batches(calls, match, loader, 0);
}

// All hooks of a step or an epoch have run: what is saved now goes on from here.
template <class X>
void basic_trainer<X>::checkpoint(fit_run& run) {
    note_position(run);
    fitting_ = false;
    run.call(&callback_hooks::checkpoint);
    fitting_ = true;
    run.state.checkpoint_done();
}

template <class X>
void basic_trainer<X>::note_position(const fit_run& run) {
    const device_scope on(nullptr);
    const training_state& s = run.state;
    fit_position p;
    p.epoch = run.next_epoch;
    p.inside = run.inside;
    if (run.inside) {
        p.batch = s.batch;
        p.records = run.sums.records;
        p.loss = run.sums.loss;
        p.accuracy = run.sums.accuracy;
        p.batch_loss = s.batch_loss;
        p.logs = s.logs;
    }
    p.stopped = s.stopped();
    if (p.stopped) p.stopped_by = s.history.stopped_by;
    p.has_learning_rate = s.has_learning_rate();
    if (p.has_learning_rate) p.learning_rate = s.learning_rate();
    p.set_size = run.loader.data().size();
    p.batch_size = run.options.batch_size;
    p.batches = s.batches;
    p.shuffle = run.options.shuffle;
    p.past = s.history;
    run_.clear();
    state_archive archive(run_, state_archive::task::save, "fit");
    p.on_state(archive);
    for (const variable& v : variables_) {
        if (!v.metric_state() || !run.inside) continue;
        any_tensor value = v.data();
        value.unshare();
        archive(v.path(), value);
    }
    visit_callbacks(run.hooks, archive);
}

template <class X>
void basic_trainer<X>::restore_position(fit_run& run) {
    const device_scope on(nullptr);
    training_state& s = run.state;
    using task = state_archive::task;
    fit_position p;
    for (const task what : {task::check, task::load}) {
        state_archive archive(run_, what, "fit");
        p.on_state(archive);
    }
    // Where an epoch is continued, the steps it has had must be those that it would have now.
    const auto same = [&](const char* name, std::int64_t then, std::int64_t now) {
        if (p.inside && then != now)
            throw argument_error(std::string("fit: the run stopped in the middle of epoch ") + std::to_string(p.epoch + 1) +
                                 " with " + name + " " + std::to_string(then) + ", and cannot go on there with " +
                                 std::to_string(now));
    };
    same("batch_size", p.batch_size, run.options.batch_size);
    same("a number of records of", p.set_size, run.loader.data().size());
    same("steps per epoch", p.batches, s.batches);
    same("shuffle", p.shuffle ? 1 : 0, run.options.shuffle ? 1 : 0);
    if (p.inside && (p.batch < 1 || p.batch > p.batches))
        throw data_error("fit: the state of the run says batch " + std::to_string(p.batch) + " of " + std::to_string(p.batches));
    refuse_missing_callbacks(run.hooks, run_);
    std::vector<std::pair<variable*, any_tensor>> metric_states;
    for (variable& v : variables_) {
        if (!v.metric_state() || !p.inside) continue;
        any_tensor stored;
        state_archive(run_, task::load, "fit")(v.path(), stored);
        if (stored.type() != v.type() || !(stored.shape() == v.shape()))
            throw data_error("fit: the state of the run has '" + v.path() + "' of shape " + to_string(stored.shape()) +
                             ", the model's is " + to_string(v.shape()));
        metric_states.emplace_back(&v, std::move(stored));
    }
    for (const task what : {task::check, task::load}) {
        state_archive archive(run_, what, "fit");
        visit_callbacks(run.hooks, archive);
    }
    for (const auto& each : metric_states) each.first->assign(each.second);
    std::vector<named_value> measured; // their names
    if (run.calls.metrics != nullptr) run.calls.metrics(*this, measured);
    for (epoch_result& e : p.past.epochs)
        for (const named_value& v : measured) {
            if (const double* const value = e.logs.find(v.name)) e.metrics.push_back({v.name, *value});
            if (const double* const value = e.logs.find("val_" + v.name)) e.validation_metrics.push_back({v.name, *value});
        }
    run.next_epoch = p.epoch;
    run.inside = p.inside;
    run.sums = {p.loss, p.accuracy, p.records};
    s.batch = p.batch;
    s.batch_loss = p.batch_loss;
    s.logs = p.logs;
    if (p.has_learning_rate && s.has_learning_rate()) s.set_learning_rate(p.learning_rate);
    s.history.epochs = std::move(p.past.epochs);
    if (p.stopped) s.stop(p.stopped_by);
}

} // namespace tapegraph::detail
