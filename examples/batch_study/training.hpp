#pragma once

#include "run.hpp"

#include "../models/cats_and_dogs.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/resource.h>

/// What one run does, whatever the mode. Included by one source per mode.

namespace batch_study {

/// The most memory this process has held, in bytes.
inline std::int64_t process_high_water_mark() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6) * 1024;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

/// The most memory that models have held: of the CPU's what tensors, variables among them, and a compiled graph's arena took;
/// of a GPU's all that was in use at once.
template <class Model>
std::int64_t library_high_water_mark(const Model& model, [[maybe_unused]] const options& o) {
#ifdef TG_CUDA
    if (o.device.is_cuda())
        return static_cast<std::int64_t>(tapegraph::cuda::memory_pool::of(o.device.index()).statistics().peak);
#endif
    std::int64_t bytes = tapegraph::eager_memory().peak;
    if constexpr (requires { model.arena_bytes(); }) bytes += static_cast<std::int64_t>(model.arena_bytes());
    return bytes;
}

template <class Mode>
auto make_model(const options& o) {
    namespace tg = tapegraph;
    return tg::compile<Mode>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                             tg::sigmoid_cross_entropy{},
                             tg::momentum{.learning_rate = o.learning_rate, .momentum = o.momentum},
                             {.seed = o.seed, .check_finite = o.check_finite, .device = o.device});
}

/// Trains for some steps ahead of what is measured.
template <class Model>
tapegraph::epoch_result rehearse(Model& model, const image_sets& images, std::int64_t batch_size, std::int64_t steps) {
    return model.fit(images.train, {.epochs = 1, .batch_size = batch_size, .steps_per_epoch = steps, .verbose = false})
        .epochs.front();
}

/// Epochs, and steps of each, that fill about `seconds`, where a step takes `step_seconds`.
inline void plan(double seconds, double step_seconds, const image_sets& images, std::int64_t batch_size,
                 tapegraph::fit_options& fit) {
    const auto train = static_cast<double>(images.train.size()), held = static_cast<double>(images.validation.size());
    const double batches = std::max(1.0, train / static_cast<double>(batch_size));
    // Validation goes forward only: about a third of a step's work per image.
    const double validation = step_seconds * batches / train * held / 3;
    const double epochs = seconds / (step_seconds * batches + validation);
    fit.epochs = std::max<std::int64_t>(1, static_cast<std::int64_t>(epochs));
    fit.steps_per_epoch = 0;
    if (epochs < 1)
        fit.steps_per_epoch =
            std::max<std::int64_t>(1, static_cast<std::int64_t>((seconds - validation) / step_seconds));
}

template <class Mode>
run_result run(const char* mode, const options& o, std::int64_t batch_size, const image_sets& images) {
    auto model = make_model<Mode>(o);
    tapegraph::fit_options fit{.epochs = std::max<std::int64_t>(1, o.epochs),
                               .batch_size = batch_size,
                               .validation = images.validation,
                               .steps_per_epoch = o.steps};
    run_result result;
    result.key = {mode, batch_size};
    result.device = o.device.name();
    result.images = images.train.size();
    result.batches = (result.images + batch_size - 1) / batch_size;

    // The first step takes memory and wakes threads; it is left out of what is measured, if time allows.
    tapegraph::epoch_result step = rehearse(model, images, batch_size, 1);
    // On a GPU a compiled step is captured the second time it runs, and replayed from then on.
    if (o.device.is_cuda()) step = rehearse(model, images, batch_size, 2);
    const double share = budget_seconds / static_cast<double>(o.runs().size());
    if (o.budgeted() && step.seconds > share / 2) {
        const tapegraph::step_result v = model.evaluate(images.validation, batch_size);
        step.validation_loss = v.loss;
        step.validation_accuracy = v.accuracy;
        result.epochs = {step};
    } else {
        if (o.budgeted()) {
            if (step.seconds < share / 30) step = rehearse(model, images, batch_size, 2);
            plan(share, step.seconds / static_cast<double>(step.steps), images, batch_size, fit);
        }
        result.epochs = model.fit(images.train, fit).epochs;
    }

    result.library_bytes = library_high_water_mark(model, o);
    result.process_bytes = process_high_water_mark();
    return result;
}

} // namespace batch_study
