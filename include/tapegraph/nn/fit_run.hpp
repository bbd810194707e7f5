#pragma once

#include <tapegraph/data/class_weights.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/io/progress.hpp>
#include <tapegraph/nn/interrupt.hpp>
#include <tapegraph/nn/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

/// The state of a call of fit.

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
    data::loader* validation; ///< null: no validation
    column_match* validation_match;
    training_state& state;
    io::progress_line& progress;

    int shards = 0;              ///< shards per batch; 0: not sharded
    measured_sums sums{};        ///< those of this epoch
    bool endless = false;        ///< whether the set is infinite
    bool ended = false;          ///< whether the set has no further batch in this epoch
    bool inside = false;         ///< whether the run is between two steps of an epoch
    std::int64_t next_epoch = 0; ///< where the run continues, at step state.batch if it is inside

    void call(hook callback_hooks::*which) const {
        for (int i = 0; i < hooks.count; ++i)
            if (const hook f = hooks.callbacks[i].*which) f(hooks.callbacks[i].object, state);
    }
    /// Logs measured values under their names.
    void log(const step_result& means, const std::vector<named_value>* metrics, bool validation_values) const {
        state.logs.set(validation_values ? "val_loss" : "loss", means.loss);
        state.logs.set(validation_values ? "val_accuracy" : "accuracy", means.accuracy);
        if (metrics == nullptr) return;
        for (const named_value& v : *metrics) state.logs.set(validation_values ? "val_" + v.name : v.name, v.value);
    }
    /// Records a step whose results have arrived.
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
    bool has_steps(std::int64_t done) const { return !ended && (state.batches == 0 || done < state.batches); }
    bool wants_checkpoint() const { return state.checkpoint_requested() || state.history.interrupted; }
};

/// The records to train on and to validate on.
struct fit_sets {
    data::dataset train;
    std::optional<data::dataset> validation;
};

// Adds a column of weights by class, for models that take weights; validation records keep their
// weights.
template <class>
void weigh_by_class(fit_sets& sets, const fit_options& o, const mode_calls& calls, dtype type) {
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
fit_sets sets_of(const data::dataset& all, const fit_options& o, const mode_calls& calls, std::uint64_t seed,
                 dtype weights) {
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
    if (all.batches() && o.validation_split > 0)
        throw argument_error("fit: validation_split of a pipeline, whose order is its own; give set.take(n) as "
                             "validation_data and train on set.skip(n)");
    if (o.validation_split > 0) {
        if (o.validation_data)
            throw argument_error(
                "fit: both validation_data and validation_split are given; one of them says on what to validate");
        const auto kept =
            static_cast<std::int64_t>(std::floor(static_cast<double>(all.size()) * (1 - o.validation_split)));
        if (kept < 1 || kept >= all.size())
            throw argument_error("fit: validation_split " + std::to_string(o.validation_split) + " of " +
                                 std::to_string(all.size()) + " records leaves none to " +
                                 (kept < 1 ? "train" : "validate") + " on");
        std::vector<std::int64_t> records(static_cast<std::size_t>(all.size()));
        for (std::size_t i = 0; i < records.size(); ++i) records[i] = static_cast<std::int64_t>(i);
        const std::span<const std::int64_t> numbers(records);
        sets.train = all.subset(numbers.first(static_cast<std::size_t>(kept)));
        sets.validation = all.subset(numbers.subspan(static_cast<std::size_t>(kept)));
    }
    if (!o.class_weight.empty()) {
        if (calls.weigh_by_class == nullptr)
            throw argument_error("fit: class_weight is given, and the model's loss takes no weights; compile it with "
                                 "tg::weighted{loss}");
        calls.weigh_by_class(sets, o, calls, weights);
    }
    if (sets.train.parts() != all.parts()) sets.train = sets.train.shard(all.part(), all.parts());
    sets.train = sets.train.batch(o.batch_size).prefetch(o.prefetch);
    if (o.shuffle && !all.batches()) sets.train = sets.train.shuffle(seed);
    if (sets.validation && sets.validation->parts() > 1) sets.validation = sets.validation->shard(0, 1);
    if (sets.validation)
        sets.validation = sets.validation->batch(o.validation_batch_size > 0 ? o.validation_batch_size : o.batch_size)
                              .prefetch(o.prefetch);
    return sets;
}

TG_COMPILED(nn, void weigh_by_class<void>(fit_sets&, const fit_options&, const mode_calls&, dtype))

} // namespace tapegraph::detail
