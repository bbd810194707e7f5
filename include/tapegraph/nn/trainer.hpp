#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/nn/fit_options.hpp>
#include <tapegraph/nn/history.hpp>
#include <tapegraph/nn/model_base.hpp>
#include <tapegraph/nn/training_state.hpp>

#include <cmath>
#include <string>

/// Training and evaluation as loops over steps, for models of any type: what depends on it is called through mode_calls.

namespace tapegraph {

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

struct fit_run;

/// Compiled once, by programs that have a model.
template <class = void>
class basic_trainer : public model_base {
protected:
    using model_base::model_base;

    static void check_batch(const input_spec& input, const buffer_view& x);
    static void check_columns(const std::vector<data::column_spec>& columns);
    static buffer_view batch_view(const data::batch& b, std::size_t column);

    step_result step_with(const mode_calls& calls, const buffer_view& x, const buffer_view& y);
    // nn/fit_loop.hpp
    history fit_with(const mode_calls& calls, const data::dataset& train, const fit_options& options,
                     const fit_hooks& hooks);
    step_result evaluate_with(const mode_calls& calls, const data::dataset& set, std::int64_t batch_size);

private:
    step_result measure_batches(const mode_calls& calls, data::loader& loader, std::int64_t most);
    void run_ahead(fit_run& run);
    void run_steps(fit_run& run);
    void run_epoch(fit_run& run);
    void checkpoint(fit_run& run);
    void note_position(const fit_run& run);
    void restore_position(fit_run& run);
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

} // namespace detail
} // namespace tapegraph

#include <tapegraph/nn/fit_loop.hpp>

namespace tapegraph::detail {

TG_COMPILED(nn, class basic_trainer<void>)

} // namespace tapegraph::detail
