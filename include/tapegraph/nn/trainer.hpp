#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/io/progress.hpp>
#include <tapegraph/nn/history.hpp>
#include <tapegraph/nn/model_base.hpp>

#include <cmath>
#include <deque>
#include <optional>
#include <string>

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

/// What a model's input must be: `extents` below 0 are open.
struct input_spec {
    dtype type;
    int rank;
    const std::int64_t* extents;
    std::string (*text)();
};

/// What a model does with one batch, in its mode. A call that is not needed may be null, and is not compiled then.
struct mode_calls {
    input_spec input;
    step_result (*step)(model_base&, const buffer_view& x, const buffer_view& y) = nullptr;
    step_result (*measure)(model_base&, const buffer_view& x, const buffer_view& y) = nullptr;
    launched_step (*launch)(model_base&, const buffer_view& x, const buffer_view& y) = nullptr; ///< of modes that run ahead
    step_result (*result_of)(model_base&, const launched_step&) = nullptr;
};

/// Compiled once, by programs that have a model.
template <class = void>
class basic_trainer : public model_base {
protected:
    using model_base::model_base;

    static void check_batch(const input_spec& input, const buffer_view& x);
    static void check_columns(const std::vector<data::column_spec>& columns);
    static buffer_view batch_view(const data::batch& b, std::size_t column);

    step_result step_with(const mode_calls& calls, const buffer_view& x, const buffer_view& y);
    history fit_with(const mode_calls& calls, const data::dataset& train, const fit_options& options);
    step_result evaluate_with(const mode_calls& calls, const data::dataset& set, std::int64_t batch_size);

private:
    template <class Add>
    void run_ahead(const mode_calls& calls, data::loader& loader, std::int64_t steps, const Add& add);
    epoch_result run_epoch(const mode_calls& calls, data::loader& loader, std::int64_t epoch, const fit_options& options,
                           io::progress_line& progress);
};

template <class X>
void basic_trainer<X>::check_batch(const input_spec& input, const buffer_view& x) {
    if (x.type != input.type)
        throw dtype_error(std::string("input is ") + name_of(x.type) + ", the model takes " +
                          name_of(input.type));
    if (x.rank != input.rank)
        throw shape_error("input has rank " + std::to_string(x.rank) + ", the model takes rank " +
                          std::to_string(input.rank));
    for (int axis = 0; axis < input.rank; ++axis)
        if (input.extents[axis] >= 0 && x.extents[axis] != input.extents[axis])
            throw shape_error("input has shape " + to_string(shape(x.rank, x.extents)) + ", the model takes " +
                              input.text());
    if (x.rank > 0 && x.extents[0] == 0) throw shape_error("input: the batch is empty");
}

template <class X>
void basic_trainer<X>::check_columns(const std::vector<data::column_spec>& columns) {
    if (columns.size() < 2)
        throw argument_error("data set: an input column and a label column are needed, there are " +
                             std::to_string(columns.size()));
}

template <class X>
buffer_view basic_trainer<X>::batch_view(const data::batch& b, std::size_t column) {
    const data::column_spec& spec = b.columns()[column];
    buffer_view v;
    v.data = const_cast<std::byte*>(b.data(column)); // kernels read inputs only
    v.type = spec.type;
    v.extents[v.rank++] = b.count();
    for (const std::int64_t extent : spec.shape) v.extents[v.rank++] = extent;
    return v;
}

template <class X>
step_result basic_trainer<X>::step_with(const mode_calls& calls, const buffer_view& x, const buffer_view& y) {
    const device_scope on(device_);
    check_batch(calls.input, x);
    ++step_;
    step_result result;
    try {
        result = calls.step(*this, x, y);
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
    check_columns(train.columns());
    data::dataset set = train.batch(options.batch_size).prefetch(options.prefetch);
    if (options.shuffle) set = set.shuffle(options_.seed);
    data::loader loader(set);
    io::progress_line progress(std::cerr,
                               options.verbose ? io::progress_style::automatic : io::progress_style::quiet);
    history result;
    for (std::int64_t epoch = options.initial_epoch; epoch < options.epochs; ++epoch)
        result.epochs.push_back(run_epoch(calls, loader, epoch, options, progress));
    return result;
}

template <class X>
step_result basic_trainer<X>::evaluate_with(const mode_calls& calls, const data::dataset& set, std::int64_t batch_size) {
    const device_scope on(device_);
    check_columns(set.columns());
    data::loader loader(set.batch(batch_size).prefetch(2));
    step_result sum;
    std::int64_t records = 0;
    loader.begin_epoch(0);
    while (const data::batch* b = loader.next()) {
        const step_result r = calls.measure(*this, batch_view(*b, 0), batch_view(*b, 1));
        sum.loss += r.loss * static_cast<double>(b->count());
        sum.accuracy += r.accuracy * static_cast<double>(b->count());
        records += b->count();
    }
    return {sum.loss / static_cast<double>(records), sum.accuracy / static_cast<double>(records)};
}

// On a device the host does not wait for a step's loss before it sends the next batch: it reads the losses of steps that lie
// behind, and all that are left at the end.
template <class X>
template <class Add>
void basic_trainer<X>::run_ahead(const mode_calls& calls, data::loader& loader, std::int64_t steps, const Add& add) {
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
        const buffer_view x = batch_view(*b, 0);
        check_batch(calls.input, x);
        ++step_;
        under_way.emplace_back(calls.launch(*this, x, batch_view(*b, 1)), b->count());
        if (static_cast<std::int64_t>(under_way.size()) > most_ahead) finish_one();
    }
    device_->wait(); // what kernels found wrong is thrown here
    while (!under_way.empty()) finish_one();
}

template <class X>
epoch_result basic_trainer<X>::run_epoch(const mode_calls& calls, data::loader& loader, std::int64_t epoch, const fit_options& options,
                       io::progress_line& progress) {
    const double start = steady_seconds();
    std::int64_t steps = loader.batches_per_epoch();
    if (options.steps_per_epoch > 0) steps = std::min(steps, options.steps_per_epoch);
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
        run_ahead(calls, loader, steps, add);
        steps = 0;
    }
    while (r.steps < steps) {
        const data::batch* b = loader.next();
        if (b == nullptr) break;
        add(step_with(calls, batch_view(*b, 0), batch_view(*b, 1)), b->count());
    }
    const auto seen = static_cast<double>(std::max<std::int64_t>(r.records, 1));
    r.loss /= seen;
    r.accuracy /= seen;
    r.seconds = steady_seconds() - start;
    r.ingestion_seconds = loader.wait_seconds();
    if (options.validation_data) {
        const step_result v = evaluate_with(calls, *options.validation_data, options.batch_size);
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

TG_COMPILED(nn, class basic_trainer<void>)

} // namespace detail
} // namespace tapegraph
