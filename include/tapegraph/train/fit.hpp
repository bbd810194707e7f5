#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/train/trainer.hpp>

/// The loops of fit and evaluate, and how a run is saved and resumed. Programs that link the
/// component do not compile them.

#if TG_DEFINES_FOR_HOST(nn)
#include <tapegraph/core/clock.hpp>
#include <tapegraph/train/fit_run.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph::detail {

// Called after all hooks of a step or an epoch: a checkpoint saved now resumes from here.
TG_DEFINITION void trainer_base::checkpoint(fit_run& run) {
    note_position(run);
    fitting_ = false;
    run.call(&callback_hooks::checkpoint);
    fitting_ = true;
    run.state.checkpoint_done();
}

TG_DEFINITION void trainer_base::note_position(const fit_run& run) {
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
    if (p.has_learning_rate) p.learning_rate = s.stored_rate();
    p.set_size = run.loader.data().size();
    p.batch_size = run.options.batch_size;
    p.batches = s.batches;
    p.shuffle = run.options.shuffle;
    p.shards = run.shards;
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

TG_DEFINITION void trainer_base::restore_position(fit_run& run) {
    const device_scope on(nullptr);
    training_state& s = run.state;
    using task = state_archive::task;
    fit_position p;
    for (const task what : {task::check, task::load}) {
        state_archive archive(run_, what, "fit");
        p.on_state(archive);
    }
    // To continue an epoch, its steps so far must be the ones it would have now.
    const auto same = [&](const char* name, std::int64_t then, std::int64_t now) {
        if (p.inside && then != now)
            throw argument_error(std::string("fit: the run stopped in the middle of epoch ") +
                                 std::to_string(p.epoch + 1) + " with " + name + " " + std::to_string(then) +
                                 ", and cannot continue there with " + std::to_string(now));
    };
    same("batch_size", p.batch_size, run.options.batch_size);
    same("a number of records of", p.set_size, run.loader.data().size());
    same("steps per epoch", p.batches, s.batches);
    same("shuffle", p.shuffle ? 1 : 0, run.options.shuffle ? 1 : 0);
    if (p.inside && (p.batch < 1 || (p.batch > p.batches && p.batches > 0)))
        throw data_error("fit: the state of the run says batch " + std::to_string(p.batch) + " of " +
                         std::to_string(p.batches));
    // One shard is the whole batch.
    if (p.shards > 0 && p.shards != std::max(run.shards, 1) && run.options.shards == 0)
        throw argument_error("fit: the run cut its batches into " + std::to_string(p.shards) +
                             " shards, and another number gives other bits; this model cuts them into " +
                             std::to_string(std::max(run.shards, 1)) + " (set fit_options::shards if you mean it)");
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
            if (const double* const value = e.logs.find("val_" + v.name))
                e.validation_metrics.push_back({v.name, *value});
        }
    run.next_epoch = p.epoch;
    run.inside = p.inside;
    run.sums = {p.loss, p.accuracy, p.records};
    s.batch = p.batch;
    s.batch_loss = p.batch_loss;
    s.logs = p.logs;
    if (p.has_learning_rate && s.has_learning_rate()) s.restore_rate(p.learning_rate);
    s.history.epochs = std::move(p.past.epochs);
    if (p.stopped) s.stop(p.stopped_by);
}

TG_DEFINITION history trainer_base::fit_with(const mode_calls& calls, const data::dataset& train,
                                             const fit_options& options, const fit_hooks& hooks) {
    int shards = 0;
    if (calls.use_shards != nullptr)
        shards = calls.use_shards(*this, options.batch_size, options.shards);
    else if (options.shards != 0)
        throw argument_error("fit: shards is " + std::to_string(options.shards) +
                             ", and this model is not compiled for shards: tg::compile<Mode>(..., tg::sharded{}) of "
                             "tapegraph/distributed.hpp");
    if (options_.tasks != nullptr) // waits for the chief's files before others look for them
        options_.tasks->barrier("begin of fit");
    if (train.parts() > 1 && (train.part() != rank_ || train.parts() != rank_count_))
        throw argument_error("fit: the data set is what rank " + std::to_string(train.part()) + " of " +
                             std::to_string(train.parts()) + " reads; this model is rank " + std::to_string(rank_) +
                             " of " + std::to_string(rank_count_));
    reads_part_ = train.parts() > 1;
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
    io::progress_line progress(std::cerr, styles[writes_files_ ? options.verbose : 0]);
    training_state state(*this, hooks.rate, calls.metrics);
    fit_run run{calls,
                options,
                hooks,
                loader,
                match,
                validation ? &*validation : nullptr,
                validation ? &*validation_match : nullptr,
                state,
                progress};
    run.shards = shards;
    state.epoch = run.next_epoch = options.initial_epoch;
    state.epochs = options.epochs;
    state.step = step_;
    state.batches = std::max<std::int64_t>(loader.batches_per_epoch(), 0); // 0: unknown until the end
    if (options.steps_per_epoch > 0)
        state.batches = state.batches > 0 ? std::min(state.batches, options.steps_per_epoch) : options.steps_per_epoch;
    run.endless = loader.batches_per_epoch() == data::endless;
    if (run.endless && state.batches == 0)
        throw argument_error("fit: the data set has no end; say how many steps_per_epoch it has");
    state.validates = run.validation != nullptr;
    if (options.stop_on_interrupt) state.stop_on_interrupt();
    run.call(&callback_hooks::train_begin);
    std::optional<interrupt_guard> guard;
    if (state.interrupts_watched()) guard.emplace();
    if ((options.resume || state.resume_requested()) && !run_.empty()) restore_position(run);
    run_.clear(); // a run that ends by an exception cannot be resumed
    state.step = step_;

    struct fitting {
        bool& flag;
        ~fitting() { flag = false; }
    } const in_flight{fitting_ = true};
    while (run.next_epoch < options.epochs && !state.history.interrupted && (run.inside || !state.stopped()))
        run_epoch(run);
    note_position(run);
    fitting_ = false;
    run.call(&callback_hooks::train_end);
    return std::move(state.history);
}

TG_DEFINITION void trainer_base::run_epoch(fit_run& run) {
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
    if (run.endless) // one stream, cut into epochs
        run.loader.begin_epoch(0, s.epoch * s.batches + s.batch);
    else
        run.loader.begin_epoch(static_cast<std::uint64_t>(s.epoch), s.batch);
    run.ended = false;
    if (!run.inside) run.call(&callback_hooks::epoch_begin);
    run_steps(run);
    if (s.history.interrupted || s.batch == 0) {
        if (s.batch > 0) run.progress.end_epoch(s.batch, s.logs);
        return;
    }
    if (reads_part_ && !s.ends()) run.calls.count_records(*this, run.loader);
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
        measured_result v =
            measure_batches(run.calls, *run.validation_match, *run.validation, run.options.validation_steps);
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

// Runs the remaining steps of the epoch, unless something ends training earlier.
TG_DEFINITION void trainer_base::run_steps(fit_run& run) {
    training_state& s = run.state;
    const bool ahead = run.calls.launch != nullptr && device_ != nullptr && !options_.check_finite;
    while (run.has_steps(s.batch) && !s.ends()) {
        if (ahead) {
            run_ahead(run);
        } else {
            const data::batch* b = run.loader.next();
            run.ended = b == nullptr;
            if (run.ended) break;
            s.next_step = step_ + 1;
            run.call(&callback_hooks::batch_begin);
            run.finish_step(step_with(run.calls, run.match.of(*b)), b->count());
        }
        if (run.wants_checkpoint()) checkpoint(run);
    }
    if (run.ended && s.batch == 0)
        throw argument_error("fit: the data set has no records in epoch " + std::to_string(s.epoch + 1));
}

// On a device the host does not wait for a step's loss before it sends the next batch: it reads the
// losses of earlier steps, and all remaining ones when training is to stop.
TG_DEFINITION void trainer_base::run_ahead(fit_run& run) {
    constexpr std::size_t most_ahead = 16;
    struct sent {
        launched_step step;
        std::int64_t records = 0;
    };
    std::array<sent, most_ahead + 1> in_flight{}; // a ring
    std::size_t first = 0, count = 0;
    const computing here(*this);
    training_state& s = run.state;
    const auto finish_one = [&] {
        const sent& oldest = in_flight[first];
        first = (first + 1) % in_flight.size();
        --count;
        run.finish_step(run.calls.result_of(*this, oldest.step), oldest.records);
    };
    for (std::int64_t sent_steps = s.batch; run.has_steps(sent_steps) && !s.ends() && !s.checkpoint_requested();
         ++sent_steps) {
        const data::batch* b = run.loader.next();
        run.ended = b == nullptr;
        if (run.ended) break;
        s.next_step = step_ + 1;
        run.call(&callback_hooks::batch_begin);
        const batch_columns columns = run.match.of(*b);
        check_batch(run.calls.inputs, columns);
        ++step_;
        in_flight[(first + count++) % in_flight.size()] = {run.calls.launch(*this, columns), b->count()};
        if (count > most_ahead) finish_one();
    }
    device_->wait(); // throws the errors of kernels
    while (count > 0) finish_one();
}

TG_DEFINITION measured_result trainer_base::measure_batches(const mode_calls& calls, column_match& match,
                                                            data::loader& loader, std::int64_t most) {
    const computing here(*this, false);
    const metric_state_guard kept(*this); // those of the current epoch
    measured_sums sums;
    if (most == 0 && loader.batches_per_epoch() == data::endless)
        throw argument_error("evaluate: the data set has no end; take(n) of it, or say validation_steps");
    loader.begin_epoch(0);
    for (std::int64_t i = 0; most == 0 || i < most; ++i) {
        const data::batch* b = loader.next();
        if (b == nullptr) break;
        sums.add(calls.measure(*this, match.of(*b)), b->count());
    }
    measured_result result{sums.mean(), {}};
    if (calls.metrics == nullptr) return result;
    calls.metrics(*this, result.metrics);
    for (const variable& v : variables_) {
        if (!v.metric_state() || v.shape().rank() == 0) continue;
        const std::string_view path = std::string_view(v.path()).substr(std::string_view("__metrics__/").size());
        const std::size_t slash = path.rfind('/');
        metric_numbers& to = result.arrays.emplace_back();
        to.metric = path.substr(0, slash), to.state = path.substr(slash + 1);
        for (int i = 0; i < v.shape().rank(); ++i) to.extents.push_back(v.shape()[i].value);
        const auto* const from = static_cast<const double*>(v.data().read());
        to.values.assign(from, from + v.size());
    }
    return result;
}

TG_DEFINITION measured_result trainer_base::evaluate_with(const mode_calls& calls, const data::dataset& set,
                                                          std::int64_t batch_size) {
    column_match match(calls, set.columns());
    data::loader loader((set.parts() > 1 ? set.shard(0, 1) : set).batch(batch_size).prefetch(2));
    return measure_batches(calls, match, loader, 0);
}

} // namespace tapegraph::detail

#endif
