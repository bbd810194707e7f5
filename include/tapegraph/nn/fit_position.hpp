#pragma once

#include <tapegraph/nn/training_state.hpp>

#include <string>
#include <string_view>
#include <vector>

/// The position of a run of fit, as stored in files.

namespace tapegraph::detail {

/// Joins the names of numbers in one string.
template <class = void>
std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
    return lines;
}

template <class = void>
void archive_logs(state_archive& a, const std::string& name, log_list& logs) {
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

/// One row per epoch: numbers, and the logs that any epoch has; where an epoch lacks one, NaN and 0
/// in `present`.
template <class = void>
void archive_history(state_archive& a, history& h) {
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

    template <class = void>
    void on_state(state_archive& a) {
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
};

/// The key of the state of callback `which`: its type, and its number among those of that type.
template <class = void>
std::string callback_prefix(const fit_hooks& hooks, int which) {
    const std::string_view name = hooks.callbacks[which].name;
    int before = 0;
    for (int i = 0; i < which; ++i) before += hooks.callbacks[i].name == name;
    return "callbacks/" + std::string(name) + "/" + std::to_string(before) + "/";
}

/// A callback that the run did not have before starts without state.
template <class = void>
void visit_callbacks(const fit_hooks& hooks, state_archive& archive) {
    for (int i = 0; i < hooks.count; ++i) {
        if (hooks.callbacks[i].state == nullptr) continue;
        const std::string prefix = callback_prefix(hooks, i);
        if (!archive.saving() && !archive.holds(prefix)) continue;
        archive.within(prefix);
        hooks.callbacks[i].state(hooks.callbacks[i].object, archive);
    }
}

/// Throws if the state of one of the run's callbacks would be lost.
template <class = void>
void refuse_missing_callbacks(const fit_hooks& hooks, const state_entries& entries) {
    for (const auto& e : entries) {
        if (!e.first.starts_with("callbacks/")) continue;
        bool known = false;
        for (int i = 0; i < hooks.count; ++i)
            known = known || (hooks.callbacks[i].state != nullptr && e.first.starts_with(callback_prefix(hooks, i)));
        if (known) continue;
        const std::string name = e.first.substr(10, e.first.find('/', 10) - 10);
        throw argument_error("fit: the run that is to go on had a callback " + name +
                             " that remembers what it has seen; this call has none, or fewer of them");
    }
}

} // namespace tapegraph::detail
