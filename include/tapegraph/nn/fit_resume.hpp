#pragma once

#include <tapegraph/nn/fit_position.hpp>
#include <tapegraph/nn/fit_run.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

/// Saves and resumes a run of fit.

namespace tapegraph::detail {

// Called after all hooks of a step or an epoch: a checkpoint saved now resumes from here.
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
    // To continue an epoch, its steps so far must be the ones it would have now.
    const auto same = [&](const char* name, std::int64_t then, std::int64_t now) {
        if (p.inside && then != now)
            throw argument_error(std::string("fit: the run stopped in the middle of epoch ") +
                                 std::to_string(p.epoch + 1) + " with " + name + " " + std::to_string(then) +
                                 ", and cannot go on there with " + std::to_string(now));
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
                             std::to_string(std::max(run.shards, 1)) + " (fit_options::shards says that it is meant)");
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

} // namespace tapegraph::detail
