#include "../examples/models/cats_and_dogs.hpp"

#include <tapegraph/cuda/driver.cuh>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

/// Training steps of a CNN (float, SGD) on a GPU, on request: gpu_table.py asks, and measures PyTorch in between, so that both
/// take turns. A request is a line on stdin, its answer a line on stdout:
///
///     <graph|eager> <fp32|tf32> <batch> <batch|fit> <steps>      microseconds a step, or "error: " and why
///
/// Times are wall clock, until the device has nothing left to do. `batch`: train_on_batch on tensors that are on the device,
/// which reads the loss of every step. `fit`: fit on records in the host's memory, its loader included. The first request of a
/// model takes longer: it is compiled, run, captured and replayed before anything is timed.

namespace {

namespace tg = tapegraph;

constexpr std::int64_t side = 50, colours = 3, pixels = side * side * colours;

/// A model in one mode and precision, with data for steps of one batch size.
class trained {
public:
    virtual ~trained() = default;
    /// Microseconds a step.
    virtual double by_batches(std::int64_t steps) = 0;
    virtual double by_fit(std::int64_t steps) = 0;
};

template <class Mode>
auto make_model() {
    return tg::compile<Mode>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, side, side, colours>{},
                             tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 1e-5},
                             {.seed = 1, .device = tg::device::cuda(0)});
}

template <class Mode>
class trained_in final : public trained {
public:
    explicit trained_in(std::int64_t batch)
        : model_(make_model<Mode>()),
          batch_(batch),
          set_steps_(std::clamp<std::int64_t>(2048 / batch, 4, 512)), // 123 MB for 1024
          x_(static_cast<std::size_t>(set_steps_ * batch * pixels)),
          y_(static_cast<std::size_t>(set_steps_ * batch)) {
        for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i * 7919 % 1013) / 1013;
        for (std::size_t i = 0; i < y_.size(); i += 2) y_[i] = 1;
        set_.add_view("image", std::span<const float>(x_), {side, side, colours})
            .add_view("label", std::span<const float>(y_), {1});
        const auto numbers = static_cast<std::size_t>(batch * pixels), labels = static_cast<std::size_t>(batch);
        image_ = tg::from_range<float>(std::span(x_).first(numbers), {batch, side, side, colours});
        label_ = tg::from_range<float>(std::span(y_).first(labels), {batch, 1});
        by_batches(4); // launched, captured, replayed
    }

    double by_batches(std::int64_t steps) override {
        return timed(steps, [&] {
            for (std::int64_t i = 0; i < steps; ++i) model_.train_on_batch(image_, label_);
        });
    }
    double by_fit(std::int64_t steps) override {
        const std::int64_t each = std::min(steps, set_steps_), epochs = (steps + each - 1) / each;
        const tg::fit_options options{
            .epochs = epochs, .batch_size = batch_, .steps_per_epoch = each, .verbose = false};
        return timed(epochs * each, [&] { model_.fit(set_, options); });
    }

private:
    template <class F>
    static double timed(std::int64_t steps, const F& f) {
        using clock = std::chrono::steady_clock;
        tg::runtime::device_runtime& device = tg::runtime::runtime_of(tg::device::cuda(0));
        device.wait();
        const auto start = clock::now();
        f();
        device.wait();
        return std::chrono::duration<double, std::micro>(clock::now() - start).count() / static_cast<double>(steps);
    }

    decltype(make_model<Mode>()) model_;
    std::int64_t batch_, set_steps_;
    std::vector<float> x_, y_;
    tg::data::dataset set_;
    tg::tensor<float> image_, label_;
};

/// The models of the batch size that is asked for at present: together those of all sizes might not fit.
class models_in_use {
public:
    trained& find(bool graph, bool tf32, std::int64_t batch) {
        if (batch != batch_) {
            for (auto& m : models_) m.reset();
            tg::cuda::memory_pool::of(0).trim(); // PyTorch wants some, too
            batch_ = batch;
        }
        // A captured step keeps its mode, other steps take the one of the moment.
        tg::set_math_mode(tf32 ? tg::math_mode::tf32 : tg::math_mode::fp32);
        std::unique_ptr<trained>& m = models_[2 * graph + tf32];
        if (m == nullptr) {
            if (graph)
                m = std::make_unique<trained_in<tg::graph>>(batch);
            else
                m = std::make_unique<trained_in<tg::eager>>(batch);
        }
        return *m;
    }

private:
    std::int64_t batch_ = 0;
    std::unique_ptr<trained> models_[4];
};

double answer(models_in_use& models, const std::string& request) {
    std::istringstream words(request);
    std::string mode, precision, way;
    std::int64_t batch = 0, steps = 0;
    words >> mode >> precision >> batch >> way >> steps;
    if ((mode != "graph" && mode != "eager") || (precision != "fp32" && precision != "tf32") ||
        (way != "batch" && way != "fit") || batch < 1 || steps < 1)
        throw tg::argument_error("'" + request + "' is not <graph|eager> <fp32|tf32> <batch> <batch|fit> <steps>");
    trained& model = models.find(mode == "graph", precision == "tf32", batch);
    return way == "fit" ? model.by_fit(steps) : model.by_batches(steps);
}

} // namespace

int main() {
    if (tg::cuda::driver::device_count() == 0) {
        std::puts("no GPU: nothing was run");
        return 0;
    }
    models_in_use models;
    for (std::string request; std::getline(std::cin, request);) {
        try {
            std::printf("%.2f\n", answer(models, request));
        } catch (const tg::error& e) {
            std::printf("error: %s\n", e.what());
        }
        std::fflush(stdout);
    }
}
