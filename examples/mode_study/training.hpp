#pragma once

#include "measure.hpp"

#include "../study/memory.hpp"
#include "../study/training.hpp"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

/// The training of one cell, for any model and mode.

namespace mode_study {

namespace tg = tapegraph;

template <class F>
double seconds_of(const F& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Batches as tensors, made in advance.
inline std::vector<std::pair<tg::tensor<float>, tg::tensor<float>>> batches_of(const series& data, std::int64_t size) {
    std::vector<std::pair<tg::tensor<float>, tg::tensor<float>>> batches;
    for (std::int64_t first = 0; first + size <= data.count; first += size)
        batches.emplace_back(tg::from_range<float>(data.values_of(first, size), {size, data.length, data.channels}),
                             tg::from_range<float>(data.labels_of(first, size), {size, 1}));
    return batches;
}

template <class Model>
double train_on_arrays(Model& model, const auto& batches, std::int64_t iterations, double& loss) {
    return seconds_of([&] {
        for (std::int64_t i = 0; i < iterations; ++i) {
            const auto& [x, y] = batches[static_cast<std::size_t>(i) % batches.size()];
            loss = model.train_on_batch(x, y).loss;
        }
    });
}

template <class Model>
double train_on_batches(Model& model, const series& data, std::int64_t size, std::int64_t iterations, double& loss) {
    tg::data::loader loader(data.as_dataset(iterations * size).batch(size).prefetch(2));
    return seconds_of([&] {
        loader.begin_epoch(0);
        while (const tg::data::batch* b = loader.next()) loss = model.train_on_batch(*b).loss;
    });
}

/// `ahead` is the number of batches that a thread assembles ahead; with 0 each is copied from the
/// arrays on demand.
template <class Model>
double fit(Model& model, const series& data, std::int64_t size, std::int64_t ahead, std::int64_t iterations,
           double& loss) {
    const tg::history h =
        model.fit(data.as_dataset(iterations * size), {.batch_size = size, .verbose = false, .prefetch = ahead});
    loss = h.epochs.front().loss;
    return h.epochs.front().seconds;
}

/// Compiles a model for records of Spec, and measures it.
template <class Mode, class Spec, class Model>
measurement run(const Model& network, const cell& c, const options& o, const series& data) {
    study::limit_memory(o);
    auto model = tg::compile<Mode>(network, Spec{}, tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4},
                                   {.seed = o.seed, .device = o.device});
    const bool in_memory = c.source == "arrays", one_by_one = c.training == "train_on_batch";
    const auto batches = in_memory && one_by_one ? batches_of(data, o.batch_size)
                                                 : std::vector<std::pair<tg::tensor<float>, tg::tensor<float>>>();
    double loss = 0;
    measurement m = measure(
        [&](std::int64_t iterations) {
            if (!one_by_one) return fit(model, data, o.batch_size, in_memory ? 0 : 2, iterations, loss);
            return in_memory ? train_on_arrays(model, batches, iterations, loss)
                             : train_on_batches(model, data, o.batch_size, iterations, loss);
        },
        o);
    m.loss = loss;
    m.library_bytes = study::library_high_water_mark(model, o);
    m.process_bytes = study::process_high_water_mark();
    return m;
}

} // namespace mode_study
