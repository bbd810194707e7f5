#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/model/metric_values.hpp>
#include <tapegraph/train/fit_options.hpp>
#include <tapegraph/train/history.hpp>
#include <tapegraph/train/model_base.hpp>
#include <tapegraph/train/training_state.hpp>

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Training and evaluation as loops over steps, for models of any type: type-dependent parts are
/// called through mode_calls. The loops themselves are in train/fit.hpp.

namespace tapegraph {

namespace detail {

/// A step on a device whose results have been sent to the host, but not awaited.
struct launched_step {
    std::int64_t loss = -1, accuracy = -1;
};

/// The requirements on one of a model's inputs: negative `extents` are open. `name`: its column,
/// empty for a single input.
struct input_spec {
    std::string_view name;
    dtype type;
    int rank;
    const std::int64_t* extents;
    std::string (*text)();
};

/// The columns of a batch: a model's inputs, followed by its labels.
using batch_columns = const buffer_view*;

struct fit_sets;

/// The mode's functions for one batch. A call that is not needed may be null, and is then not
/// compiled.
struct mode_calls {
    std::span<const input_spec> inputs;
    std::span<const std::string_view> labels; ///< names of the label columns; empty: the next unnamed one
    step_result (*step)(model_base&, batch_columns) = nullptr;
    step_result (*measure)(model_base&, batch_columns) = nullptr;
    launched_step (*launch)(model_base&, batch_columns) = nullptr; ///< for modes that run ahead
    step_result (*result_of)(model_base&, const launched_step&) = nullptr;
    /// For models whose batches are sharded.
    int (*use_shards)(model_base&, std::int64_t batch_size, int shards) = nullptr;
    void (*count_records)(model_base&,
                          const data::loader&) = nullptr; ///< at the end of an epoch, over ranks that read parts
    /// The values of its metrics since they were reset; null if it has none.
    void (*metrics)(const model_base&, std::vector<named_value>&) = nullptr;
    /// For models whose losses take weights: fit_options::class_weight.
    void (*weigh_by_class)(fit_sets&, const fit_options&, const mode_calls&, dtype) = nullptr;
};
void weigh_by_class(fit_sets& sets, const fit_options& o, const mode_calls& calls, dtype type); // train/fit_run.hpp

/// Whether a refused index belongs to this column.
bool holds_index(const buffer_view& column, const index_error& e);

/// Throws range_error that names the column of a refused index, if it is one of these; a column
/// without a name is called `labels(its number)`.
void name_column(const mode_calls& calls, batch_columns columns, std::string_view (*labels)(int), const index_error& e);

/// Matches a data set's columns to a model's, and gives their views in a batch.
class column_match {
public:
    static constexpr std::size_t most = 32;
    /// Names find columns; unnamed ones take the remaining columns, in order. Throws argument_error
    /// for a missing column, and, where the model has names and `more` is false, for an unused one.
    column_match(const mode_calls& calls, const std::vector<data::column_spec>& columns, bool more = false) {
        find(calls, columns, more);
    }
    batch_columns of(const data::batch& b) {
        for (std::size_t i = 0; i < size_; ++i) views_[i] = view(b, places_[i]);
        return views_;
    }
    /// The data set's column for the model's input or, after those, label `i`.
    std::size_t place(std::size_t i) const { return places_[i]; }

private:
    void find(const mode_calls& calls, const std::vector<data::column_spec>& columns, bool more);
    static buffer_view view(const data::batch& b, std::size_t column);
    std::size_t size_ = 0, places_[most]{};
    buffer_view views_[most];
};

/// The state of one metric among a model's variables, as numbers on the CPU.
class stored_metric {
public:
    stored_metric(const variable_list& variables, std::string_view metric) { find(variables, metric); }
    bool found() const { return !entries_.empty(); }
    metric_values values() const { return metric_values(entries_); }

private:
    void find(const variable_list& variables, std::string_view metric);
    std::vector<metric_values::entry> entries_;
};

struct fit_run;

/// The part of models in every mode that depends on no model's type.
class trainer_base : public model_base {
protected:
    using model_base::model_base;

    static void check_batch(std::span<const input_spec> inputs, batch_columns x);

    step_result step_with(const mode_calls& calls, batch_columns columns);
    // train/fit.hpp
    history fit_with(const mode_calls& calls, const data::dataset& train, const fit_options& options,
                     const fit_hooks& hooks);
    measured_result evaluate_with(const mode_calls& calls, const data::dataset& set, std::int64_t batch_size);
    /// Resets metrics.
    void reset_metrics();
    /// While it lives, metrics measure something else; afterwards their previous values are
    /// restored.
    class metric_state_guard {
    public:
        explicit metric_state_guard(trainer_base& owner) {
            for (variable& v : owner.variables_)
                if (v.metric_state()) kept_.emplace_back(&v, v.value<double>());
            if (!kept_.empty()) owner.reset_metrics();
        }
        metric_state_guard(const metric_state_guard&) = delete;
        metric_state_guard& operator=(const metric_state_guard&) = delete;
        ~metric_state_guard() {
            for (auto& each : kept_) each.first->assign(each.second);
        }

    private:
        std::vector<std::pair<variable*, tensor<double>>> kept_;
    };

private:
    measured_result measure_batches(const mode_calls& calls, column_match& match, data::loader& loader,
                                    std::int64_t most);
    void run_ahead(fit_run& run);
    void run_steps(fit_run& run);
    void run_epoch(fit_run& run);
    void checkpoint(fit_run& run);
    void note_position(const fit_run& run);
    void restore_position(fit_run& run);
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION bool holds_index(const buffer_view& column, const index_error& e) {
    if (column.memory != 0 || (column.type != dtype::i32 && column.type != dtype::i64)) return false;
    if (e.position >= static_cast<std::int64_t>(column.bytes() / size_of(column.type))) return false;
    return e.index == (column.type == dtype::i32 ? static_cast<const std::int32_t*>(column.data)[e.position]
                                                 : static_cast<const std::int64_t*>(column.data)[e.position]);
}

TG_DEFINITION void name_column(const mode_calls& calls, batch_columns columns, std::string_view (*labels)(int),
                               const index_error& e) {
    const std::size_t inputs = calls.inputs.size();
    for (std::size_t k = 0; k < inputs + calls.labels.size(); ++k) {
        if (!holds_index(columns[k], e)) continue;
        std::string called(k < inputs ? calls.inputs[k].name : calls.labels[k - inputs]);
        if (!called.empty())
            called = (k < inputs ? "input '" : "labels '") + called + "'";
        else
            called = k < inputs ? "input" : labels(static_cast<int>(k - inputs));
        throw range_error(called + ": " + e.what());
    }
}

TG_DEFINITION void stored_metric::find(const variable_list& variables, std::string_view metric) {
    const std::string before = "__metrics__/" + std::string(metric) + '/';
    for (const variable& v : variables)
        if (v.path().starts_with(before))
            entries_.push_back({std::string_view(v.path()).substr(before.size()),
                                {static_cast<const double*>(v.data().read()), static_cast<std::size_t>(v.size())}});
}

TG_DEFINITION void trainer_base::check_batch(std::span<const input_spec> inputs, batch_columns columns) {
    for (const input_spec& input : inputs) {
        const buffer_view& x = *columns++;
        const std::string called = input.name.empty() ? "input" : "input '" + std::string(input.name) + "'";
        if (x.type != input.type)
            throw dtype_error(called + " is " + name_of(x.type) + ", the model takes " + name_of(input.type));
        if (x.rank != input.rank)
            throw shape_error(called + " has rank " + std::to_string(x.rank) + ", the model takes rank " +
                              std::to_string(input.rank));
        for (int axis = 0; axis < input.rank; ++axis)
            if (input.extents[axis] >= 0 && x.extents[axis] != input.extents[axis])
                throw shape_error(called + " has shape " + to_string(shape(x.rank, x.extents)) + ", the model takes " +
                                  input.text());
        if (x.rank > 0 && x.extents[0] == 0) throw shape_error(called + ": the batch is empty");
    }
}

TG_DEFINITION void column_match::find(const mode_calls& calls, const std::vector<data::column_spec>& columns,
                                      bool more) {
    const std::size_t inputs = calls.inputs.size();
    size_ = inputs + calls.labels.size();
    if (size_ > most) throw argument_error("a model has at most 32 inputs and labels");
    std::vector<bool> used(columns.size());
    bool named = false;
    const auto name_at = [&](std::size_t i) { return i < inputs ? calls.inputs[i].name : calls.labels[i - inputs]; };
    for (std::size_t i = 0; i < size_; ++i) {
        const std::string_view name = name_at(i);
        if (name.empty()) continue;
        named = true;
        std::size_t at = 0;
        while (at < columns.size() && columns[at].name != name) ++at;
        if (at == columns.size()) {
            std::string text = "data set: no column '" + std::string(name) + "', there are";
            for (const data::column_spec& c : columns)
                text.append(&c == columns.data() ? " '" : ", '").append(c.name).append("'");
            throw argument_error(text);
        }
        places_[i] = at;
        used[at] = true;
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        if (!name_at(i).empty()) continue;
        while (next < columns.size() && used[next]) ++next;
        if (next == columns.size())
            throw argument_error("data set: an input column and a label column are needed, there are " +
                                 std::to_string(columns.size()));
        places_[i] = next;
        used[next] = true;
    }
    for (std::size_t i = 0; named && !more && i < columns.size(); ++i)
        if (!used[i])
            throw argument_error("data set: column '" + columns[i].name +
                                 "' is neither an input of the model nor a label");
}

TG_DEFINITION step_result trainer_base::step_with(const mode_calls& calls, batch_columns columns) {
    const computing here(*this);
    check_batch(calls.inputs, columns);
    ++step_;
    step_result result;
    try {
        result = calls.step(*this, columns);
    } catch (const numeric_error& e) {
        throw numeric_error("step " + std::to_string(step_--) + ": " + e.what());
    } catch (...) {
        --step_; // a step that did not happen does not count
        throw;
    }
    if (options_.check_finite && !std::isfinite(result.loss))
        throw numeric_error("step " + std::to_string(step_) + ": the loss is " + number_text(result.loss));
    return result;
}

TG_DEFINITION void trainer_base::reset_metrics() {
    for (variable& v : variables_)
        if (v.metric_state()) std::memset(v.overwrite(), 0, v.data().outline_view().bytes());
}

#endif

} // namespace detail

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION buffer_view detail::column_match::view(const data::batch& b, std::size_t column) {
    const data::column_spec& spec = b.columns()[column];
    buffer_view v;
    v.data = const_cast<std::byte*>(b.data(column)); // kernels only read inputs
    v.type = spec.type;
    v.extents[v.rank++] = b.count();
    for (const std::int64_t extent : spec.shape) v.extents[v.rank++] = extent;
    return v;
}

#endif

} // namespace tapegraph
