#pragma once

#include "run.hpp"

#include "../study/memory.hpp"
#include "../study/training.hpp"

#include <algorithm>

/// The training of one run, for any model and mode.

namespace batch_study {

/// The optimizer of all runs.
inline tapegraph::momentum optimizer(const options& o) {
    return {.learning_rate = o.learning_rate, .momentum = o.momentum};
}
inline tapegraph::compile_options compile_options_of(const options& o) {
    study::limit_memory(o);
    return {.seed = o.seed, .check_finite = o.check_finite, .device = o.device};
}

/// Trains some steps before the measurement.
template <class Model>
tapegraph::epoch_result rehearse(Model& model, const training_sets& sets, std::int64_t batch_size, std::int64_t steps) {
    return model.fit(sets.train, {.epochs = 1, .batch_size = batch_size, .steps_per_epoch = steps, .verbose = false})
        .epochs.front();
}

/// Allocates the memory of evaluation and then of a step, which it trains. A compiled model asks
/// for all of each at once, so the error names everything that is missing.
template <class Model>
tapegraph::epoch_result take_memory(Model& model, const training_sets& sets, std::int64_t batch_size) {
    constexpr bool asks_at_once = requires { model.arena_bytes(); };
    try {
        model.evaluate(sets.validation.take(batch_size), batch_size);
    } catch (const tapegraph::out_of_memory& evaluation) {
        if constexpr (!asks_at_once) throw;
        try {
            rehearse(model, sets, batch_size, 1);
        } catch (const tapegraph::out_of_memory& step) {
            throw tapegraph::out_of_memory(step.what(), evaluation.requested_bytes + step.requested_bytes, step.in_use);
        }
        throw;
    }
    return rehearse(model, sets, batch_size, 1);
}

/// Computes epochs, and steps of each, that fill about `seconds` when a step takes `step_seconds`.
inline void plan(double seconds, double step_seconds, const training_sets& sets, std::int64_t batch_size,
                 tapegraph::fit_options& fit) {
    const auto train = static_cast<double>(sets.train.size()), held = static_cast<double>(sets.validation.size());
    const double batches = std::max(1.0, train / static_cast<double>(batch_size));
    // Validation runs only the forward pass: about a third of a step's work per record.
    const double validation = step_seconds * batches / train * held / 3;
    const double epochs = seconds / (step_seconds * batches + validation);
    fit.epochs = std::max<std::int64_t>(1, static_cast<std::int64_t>(epochs));
    fit.steps_per_epoch = 0;
    if (epochs < 1)
        fit.steps_per_epoch =
            std::max<std::int64_t>(1, static_cast<std::int64_t>((seconds - validation) / step_seconds));
}

/// Trains a model that was just made.
template <class Model>
run_result run(Model model, const options& o, std::int64_t batch_size, const training_sets& sets) {
    tapegraph::fit_options fit{.epochs = std::max<std::int64_t>(1, o.epochs),
                               .batch_size = batch_size,
                               .validation_data = sets.validation,
                               .steps_per_epoch = o.steps};
    run_result result;
    result.device = o.device.name();
    result.records = sets.train.size();
    result.batches = (result.records + batch_size - 1) / batch_size;

    // The first step allocates memory and starts threads; it is not measured if time allows.
    tapegraph::epoch_result step = take_memory(model, sets, batch_size);
    // On a GPU a compiled step is captured on its second run and replayed from then on.
    if (o.device.is_cuda()) step = rehearse(model, sets, batch_size, 2);
    const double share = o.share();
    if (o.budgeted() && step.seconds > share / 2) {
        const tapegraph::step_result v = model.evaluate(sets.validation, batch_size);
        step.validation_loss = v.loss;
        step.validation_accuracy = v.accuracy;
        result.epochs = {step};
    } else {
        if (o.budgeted()) {
            if (step.seconds < share / 30) step = rehearse(model, sets, batch_size, 2);
            plan(share, step.seconds / static_cast<double>(step.steps), sets, batch_size, fit);
        }
        result.epochs = model.fit(sets.train, fit).epochs;
    }

    result.library_bytes = study::library_high_water_mark(model, o);
    result.process_bytes = study::process_high_water_mark();
    return result;
}

} // namespace batch_study
