#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/io/progress.hpp>
#include <tapegraph/nn/history.hpp>
#include <tapegraph/nn/metric_values.hpp>
#include <tapegraph/nn/model_base.hpp>

#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Training and evaluation as loops over steps, for models of any type: what depends on it is called through mode_calls.

namespace tapegraph {

/// Options of fit.
struct fit_options {
    std::int64_t epochs = 1;
    std::int64_t initial_epoch = 0; ///< the first of them, where a later call goes on
    std::int64_t batch_size = 32;
    std::optional<data::dataset>
        validation_data{};                     ///< evaluated after every epoch, columns as those of the training set
    std::int64_t steps_per_epoch = 0;          ///< stop an epoch early; 0: the whole data set
    bool shuffle = true;                       ///< in an order that depends on the model's seed and the epoch
    bool verbose = true;                       ///< progress on stderr
    std::int64_t prefetch = 2;                 ///< batches assembled ahead
};

namespace detail {

/// A step on a device whose results have been sent to the host, but not waited for.
struct launched_step {
    std::int64_t loss = -1, accuracy = -1;
};

/// What one of a model's inputs must be: `extents` below 0 are open. `name`: its column, empty where there is one input.
struct input_spec {
    std::string_view name;
    dtype type;
    int rank;
    const std::int64_t* extents;
    std::string (*text)();
};

/// The columns of a batch: a model's inputs, and behind them its labels.
using batch_columns = const buffer_view*;

/// What a model does with one batch, in its mode. A call that is not needed may be null, and is not compiled then.
struct mode_calls {
    std::span<const input_spec> inputs;
    std::span<const std::string_view> labels; ///< names of the label columns; empty: the next one behind
    step_result (*step)(model_base&, batch_columns) = nullptr;
    step_result (*measure)(model_base&, batch_columns) = nullptr;
    launched_step (*launch)(model_base&, batch_columns) = nullptr; ///< of modes that run ahead
    step_result (*result_of)(model_base&, const launched_step&) = nullptr;
    /// What its metrics have measured since they were reset; null where it has none.
    void (*metrics)(const model_base&, std::vector<named_value>&) = nullptr;
};

/// Which columns of a data set are a model's, and their views in a batch.
class column_match {
public:
    static constexpr std::size_t most = 32;
    /// Names find columns; what has no name takes the columns that are left, in order. Throws argument_error for a column that is
    /// missing, and, where the model has names, for one that is nobody's.
    column_match(const mode_calls& calls, const std::vector<data::column_spec>& columns) { find(calls, columns); }
    batch_columns of(const data::batch& b) {
        for (std::size_t i = 0; i < size_; ++i) views_[i] = view(b, places_[i]);
        return views_;
    }

private:
    template <class = void>
    void find(const mode_calls& calls, const std::vector<data::column_spec>& columns);
    static buffer_view view(const data::batch& b, std::size_t column) {
        const data::column_spec& spec = b.columns()[column];
        buffer_view v;
        v.data = const_cast<std::byte*>(b.data(column)); // kernels read inputs only
        v.type = spec.type;
        v.extents[v.rank++] = b.count();
        for (const std::int64_t extent : spec.shape) v.extents[v.rank++] = extent;
        return v;
    }
    std::size_t size_ = 0, places_[most]{};
    buffer_view views_[most];
};

/// The state of one metric among a model's variables, as numbers of the CPU.
class stored_metric {
public:
    stored_metric(const variable_list& variables, std::string_view metric) { find(variables, metric); }
    bool found() const { return !entries_.empty(); }
    metric_values values() const { return metric_values(entries_); }

private:
    template <class = void>
    void find(const variable_list& variables, std::string_view metric);
    std::vector<metric_values::entry> entries_;
};
template <class>
void stored_metric::find(const variable_list& variables, std::string_view metric) {
    const std::string before = "__metrics__/" + std::string(metric) + '/';
    for (const variable& v : variables)
        if (v.path().starts_with(before))
            entries_.push_back({std::string_view(v.path()).substr(before.size()),
                                {static_cast<const double*>(v.data().read()), static_cast<std::size_t>(v.size())}});
}

/// Compiled once, by programs that have a model.
template <class = void>
class basic_trainer : public model_base {
protected:
    using model_base::model_base;

    static void check_batch(std::span<const input_spec> inputs, batch_columns x);

    step_result step_with(const mode_calls& calls, batch_columns columns);
    history fit_with(const mode_calls& calls, const data::dataset& train, const fit_options& options);
    measured_result evaluate_with(const mode_calls& calls, const data::dataset& set, std::int64_t batch_size);
    /// Metrics start anew.
    void reset_metrics();
    /// While it lives metrics measure something else; what they had is theirs again afterwards.
    class metric_state_guard {
    public:
        explicit metric_state_guard(basic_trainer& owner) : owner_(owner) {
            for (variable& v : owner.variables_)
                if (v.metric_state()) kept_.emplace_back(&v, v.template value<double>());
            if (!kept_.empty()) owner.reset_metrics();
        }
        metric_state_guard(const metric_state_guard&) = delete;
        metric_state_guard& operator=(const metric_state_guard&) = delete;
        ~metric_state_guard() {
            for (auto& each : kept_) each.first->assign(each.second);
        }

    private:
        basic_trainer& owner_;
        std::vector<std::pair<variable*, tensor<double>>> kept_;
    };

private:
    template <class Add>
    void run_ahead(const mode_calls& calls, column_match& match, data::loader& loader, std::int64_t steps,
                   const Add& add);
    epoch_result run_epoch(const mode_calls& calls, column_match& match, data::loader& loader, std::int64_t epoch,
                           const fit_options& options, io::progress_line& progress);
};

template <class X>
void basic_trainer<X>::check_batch(std::span<const input_spec> inputs, batch_columns columns) {
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

template <class>
void column_match::find(const mode_calls& calls, const std::vector<data::column_spec>& columns) {
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
    for (std::size_t i = 0; named && i < columns.size(); ++i)
        if (!used[i])
            throw argument_error("data set: column '" + columns[i].name + "' is no input of the model and no label");
}

template <class X>
step_result basic_trainer<X>::step_with(const mode_calls& calls, batch_columns columns) {
    const device_scope on(device_);
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
        throw numeric_error("step " + std::to_string(step_) + ": the loss is " + std::to_string(result.loss));
    return result;
}

template <class X>
history basic_trainer<X>::fit_with(const mode_calls& calls, const data::dataset& train, const fit_options& options) {
    if (options.epochs < 0) throw argument_error("fit: epochs is " + std::to_string(options.epochs));
    if (options.initial_epoch < 0)
        throw argument_error("fit: initial_epoch is " + std::to_string(options.initial_epoch));
    column_match match(calls, train.columns());
    data::dataset set = train.batch(options.batch_size).prefetch(options.prefetch);
    if (options.shuffle) set = set.shuffle(options_.seed);
    data::loader loader(set);
    io::progress_line progress(std::cerr,
                               options.verbose ? io::progress_style::automatic : io::progress_style::quiet);
    history result;
    for (std::int64_t epoch = options.initial_epoch; epoch < options.epochs; ++epoch)
        result.epochs.push_back(run_epoch(calls, match, loader, epoch, options, progress));
    return result;
}

template <class X>
measured_result basic_trainer<X>::evaluate_with(const mode_calls& calls, const data::dataset& set,
                                                std::int64_t batch_size) {
    const device_scope on(device_);
    column_match match(calls, set.columns());
    const metric_state_guard kept(*this); // of an epoch under way
    data::loader loader(set.batch(batch_size).prefetch(2));
    step_result sum;
    std::int64_t records = 0;
    loader.begin_epoch(0);
    while (const data::batch* b = loader.next()) {
        const step_result r = calls.measure(*this, match.of(*b));
        sum.loss += r.loss * static_cast<double>(b->count());
        sum.accuracy += r.accuracy * static_cast<double>(b->count());
        records += b->count();
    }
    measured_result result{{sum.loss / static_cast<double>(records), sum.accuracy / static_cast<double>(records)}, {}};
    if (calls.metrics != nullptr) calls.metrics(*this, result.metrics);
    return result;
}

// On a device the host does not wait for a step's loss before it sends the next batch: it reads the losses of steps that lie
// behind, and all that are left at the end.
template <class X>
template <class Add>
void basic_trainer<X>::run_ahead(const mode_calls& calls, column_match& match, data::loader& loader, std::int64_t steps,
                                 const Add& add) {
    constexpr std::int64_t most_ahead = 16;
    const device_scope on(device_);
    std::deque<std::pair<launched_step, std::int64_t>> under_way;
    const auto finish_one = [&] {
        add(calls.result_of(*this, under_way.front().first), under_way.front().second);
        under_way.pop_front();
    };
    for (std::int64_t s = 0; s < steps; ++s) {
        const data::batch* b = loader.next();
        if (b == nullptr) break;
        const batch_columns columns = match.of(*b);
        check_batch(calls.inputs, columns);
        ++step_;
        under_way.emplace_back(calls.launch(*this, columns), b->count());
        if (static_cast<std::int64_t>(under_way.size()) > most_ahead) finish_one();
    }
    device_->wait(); // what kernels found wrong is thrown here
    while (!under_way.empty()) finish_one();
}

template <class X>
epoch_result basic_trainer<X>::run_epoch(const mode_calls& calls, column_match& match, data::loader& loader,
                                         std::int64_t epoch, const fit_options& options, io::progress_line& progress) {
    const double start = steady_seconds();
    std::int64_t steps = loader.batches_per_epoch();
    if (options.steps_per_epoch > 0) steps = std::min(steps, options.steps_per_epoch);
    reset_metrics();
    progress.begin_epoch(epoch + 1, options.epochs, steps);
    loader.begin_epoch(static_cast<std::uint64_t>(epoch));
    epoch_result r;
    const auto add = [&](const step_result& s, std::int64_t records) {
        const auto count = static_cast<double>(records);
        r.loss += s.loss * count;
        r.accuracy += s.accuracy * count;
        r.records += records;
        ++r.steps;
        const auto seen = static_cast<double>(r.records);
        progress.update(r.steps, {{"loss", r.loss / seen}, {"accuracy", r.accuracy / seen}});
    };
    if (calls.launch != nullptr && device_ != nullptr && !options_.check_finite) {
        run_ahead(calls, match, loader, steps, add);
        steps = 0;
    }
    while (r.steps < steps) {
        const data::batch* b = loader.next();
        if (b == nullptr) break;
        add(step_with(calls, match.of(*b)), b->count());
    }
    const auto seen = static_cast<double>(std::max<std::int64_t>(r.records, 1));
    r.loss /= seen;
    r.accuracy /= seen;
    if (calls.metrics != nullptr) calls.metrics(*this, r.metrics);
    r.seconds = steady_seconds() - start;
    r.ingestion_seconds = loader.wait_seconds();
    if (options.validation_data) {
        measured_result v = evaluate_with(calls, *options.validation_data, options.batch_size);
        r.validation_metrics = std::move(v.metrics);
        r.validation_loss = v.loss;
        r.validation_accuracy = v.accuracy;
        progress.end_epoch(
            r.steps,
            {{"loss", r.loss}, {"accuracy", r.accuracy}, {"val_loss", v.loss}, {"val_accuracy", v.accuracy}});
    } else {
        progress.end_epoch(r.steps, {{"loss", r.loss}, {"accuracy", r.accuracy}});
    }
    return r;
}

template <class X>
void basic_trainer<X>::reset_metrics() {
    for (variable& v : variables_)
        if (v.metric_state()) std::memset(v.own_data(), 0, v.data().outline_view().bytes());
}

TG_COMPILED(nn, class basic_trainer<void>)
TG_COMPILED(nn, void stored_metric::find<void>(const variable_list&, std::string_view))
TG_COMPILED(nn, void column_match::find<void>(const mode_calls&, const std::vector<data::column_spec>&))

} // namespace detail
} // namespace tapegraph
