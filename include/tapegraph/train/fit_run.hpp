#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/class_weights.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/train/interrupt.hpp>
#include <tapegraph/train/progress.hpp>
#include <tapegraph/train/trainer.hpp>
#include <tapegraph/train/training_state.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A call of fit: its data sets, its state, and its position as files have it.

namespace tapegraph::detail {

/// Joins the names of numbers in one string.
std::vector<std::string> lines_of(std::string_view text);

void archive_logs(state_archive& a, const std::string& name, log_list& logs);

/// One row per epoch: numbers, and the logs that any epoch has; where an epoch lacks one, NaN and 0
/// in `present`.
void archive_history(state_archive& a, history& h);

struct fit_position {
    std::int64_t epoch = 0;              ///< where the run continues
    bool inside = false;                 ///< in the middle of it, after `batch` steps
    std::int64_t batch = 0, records = 0; ///< of this epoch so far
    double loss = 0, accuracy = 0;       ///< their sums
    double batch_loss = 0;
    log_list logs;
    bool stopped = false; ///< by a callback, permanently
    std::string stopped_by;
    double learning_rate = 0;
    bool has_learning_rate = false;
    // Values that must not change within an epoch.
    std::int64_t set_size = 0, batch_size = 0, batches = 0;
    bool shuffle = false;
    std::int64_t shards = 0; ///< number of shards per batch; 0: none, or an older file
    history past;

    void on_state(state_archive& a);
};

/// The key of the state of callback `which`: its type, and its number among those of that type.
std::string callback_prefix(const fit_hooks& hooks, int which);

/// A callback that the run did not have before starts without state.
void visit_callbacks(const fit_hooks& hooks, state_archive& archive);

/// Throws if the state of one of the run's callbacks would be lost.
void refuse_missing_callbacks(const fit_hooks& hooks, const state_entries& entries);

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
void weigh_by_class(fit_sets& sets, const fit_options& o, const mode_calls& calls, dtype type);

fit_sets sets_of(const data::dataset& all, const fit_options& o, const mode_calls& calls, std::uint64_t seed,
                 dtype weights);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
    return lines;
}

TG_DEFINITION void archive_logs(state_archive& a, const std::string& name, log_list& logs) {
    std::string names;
    std::vector<double> values;
    for (const named_value& v : logs) {
        names.append(v.name).append("\n");
        values.push_back(v.value);
    }
    a(name + "_names", names);
    a(name, values);
    if (!a.loading()) return;
    const std::vector<std::string> each = lines_of(names);
    if (each.size() != values.size())
        throw data_error("fit: the state of the run has " + std::to_string(values.size()) + " values of " +
                         std::to_string(each.size()) + " names in '" + name + "'");
    logs.clear();
    for (std::size_t i = 0; i < each.size(); ++i) logs.set(each[i], values[i]);
}

TG_DEFINITION void archive_history(state_archive& a, history& h) {
    constexpr std::size_t fields = 9;
    std::string names;
    for (const std::string& name : h.names()) names.append(name).append("\n");
    std::vector<double> numbers, values, present;
    for (const epoch_result& e : h.epochs) {
        for (const double number :
             {static_cast<double>(e.epoch), e.loss, e.accuracy, e.validation_loss, e.validation_accuracy, e.seconds,
              e.ingestion_seconds, static_cast<double>(e.steps), static_cast<double>(e.records)})
            numbers.push_back(number);
        for (const std::string& name : h.names()) {
            const double* const value = e.logs.find(name);
            values.push_back(value != nullptr ? *value : 0);
            present.push_back(value != nullptr ? 1 : 0);
        }
    }
    a("history/names", names);
    a("history/epochs", numbers);
    a("history/values", values);
    a("history/present", present);
    if (!a.loading()) return;
    const std::vector<std::string> each = lines_of(names);
    const std::size_t epochs = numbers.size() / fields;
    if (values.size() != epochs * each.size() || present.size() != values.size())
        throw data_error("fit: the history in the state of the run has " + std::to_string(values.size()) +
                         " values of " + std::to_string(each.size()) + " names over " + std::to_string(epochs) +
                         " epochs");
    h.epochs.clear();
    for (std::size_t i = 0; i < epochs; ++i) {
        const double* const n = numbers.data() + i * fields;
        epoch_result e;
        e.epoch = static_cast<std::int64_t>(n[0]);
        e.loss = n[1], e.accuracy = n[2], e.validation_loss = n[3], e.validation_accuracy = n[4];
        e.seconds = n[5], e.ingestion_seconds = n[6];
        e.steps = static_cast<std::int64_t>(n[7]);
        e.records = static_cast<std::int64_t>(n[8]);
        for (std::size_t k = 0; k < each.size(); ++k)
            if (present[i * each.size() + k] > 0) e.logs.set(each[k], values[i * each.size() + k]);
        h.epochs.push_back(std::move(e));
    }
}

TG_DEFINITION void fit_position::on_state(state_archive& a) {
    a("epoch", epoch);
    a("inside", inside);
    a("batch", batch);
    a("records", records);
    a("loss", loss);
    a("accuracy", accuracy);
    a("batch_loss", batch_loss);
    archive_logs(a, "logs", logs);
    a("stopped", stopped);
    a("stopped_by", stopped_by);
    a("learning_rate", learning_rate);
    a("has_learning_rate", has_learning_rate);
    a("set_size", set_size);
    a("batch_size", batch_size);
    a("batches", batches);
    a("shuffle", shuffle);
    if (shards > 0 || a.holds("shards")) a("shards", shards);
    archive_history(a, past);
}

TG_DEFINITION std::string callback_prefix(const fit_hooks& hooks, int which) {
    const std::string_view name = hooks.callbacks[which].name;
    int before = 0;
    for (int i = 0; i < which; ++i) before += hooks.callbacks[i].name == name;
    return "callbacks/" + std::string(name) + "/" + std::to_string(before) + "/";
}

TG_DEFINITION void visit_callbacks(const fit_hooks& hooks, state_archive& archive) {
    for (int i = 0; i < hooks.count; ++i) {
        if (hooks.callbacks[i].state == nullptr) continue;
        const std::string prefix = callback_prefix(hooks, i);
        if (!archive.saving() && !archive.holds(prefix)) continue;
        archive.within(prefix);
        hooks.callbacks[i].state(hooks.callbacks[i].object, archive);
    }
}

TG_DEFINITION void refuse_missing_callbacks(const fit_hooks& hooks, const state_entries& entries) {
    for (const auto& e : entries) {
        if (!e.first.starts_with("callbacks/")) continue;
        bool known = false;
        for (int i = 0; i < hooks.count; ++i)
            known = known || (hooks.callbacks[i].state != nullptr && e.first.starts_with(callback_prefix(hooks, i)));
        if (known) continue;
        const std::string name = e.first.substr(10, e.first.find('/', 10) - 10);
        throw argument_error("fit: the resumed run had a callback " + name +
                             " with state; this call has none, or fewer of them");
    }
}

TG_DEFINITION void weigh_by_class(fit_sets& sets, const fit_options& o, const mode_calls& calls, dtype type) {
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

TG_DEFINITION fit_sets sets_of(const data::dataset& all, const fit_options& o, const mode_calls& calls,
                               std::uint64_t seed, dtype weights) {
    const auto refuse = [](const char* name, auto value, const char* why) {
        throw argument_error(std::string("fit: ") + name + " is " + number_text(value) + why);
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
            throw argument_error("fit: validation_split " + number_text(o.validation_split) + " of " +
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

#endif

} // namespace tapegraph::detail
