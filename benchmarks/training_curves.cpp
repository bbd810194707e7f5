#include "../examples/models/cats_and_dogs.hpp"
#include "../examples/models/conv1d_medium.hpp"

#include <tapegraph/data/readers/image_folder.hpp>
#include <tapegraph/fast_convolution.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string_view>

/// Prints the losses of two models of the studies, step by step, for one algorithm of convolutions:
/// run it once with each, and compare. Both learn to distinguish waves under noise, 16 batches
/// again and again, with dropout and Adam at 1e-4, on one thread, from one seed. `nudged` gives the
/// scale of a difference: direct sums of inputs that are the next larger or smaller numbers. With a
/// folder of images, 50 by 50 in two class folders, only the CNN runs and learns from those.
/// Usage: training_curves direct|fast|nudged [steps [folder]]

namespace {

namespace tg = tapegraph;

constexpr int sets = 16; ///< batches, in rotation

/// Every third record is of the first class.
tg::tensor<float> labels(std::int64_t batch, int set) {
    tg::tensor<float> y = tg::zeros<float>({batch, 1});
    for (std::int64_t i = 0; i < batch; ++i) y.set((i * 7 + set) % 3 == 0, i, 0);
    return y;
}

/// Images whose waves run down in the first class and across in the other.
tg::tensor<float> images(const tg::tensor<float>& y, int set) {
    const std::int64_t batch = y.size();
    tg::tensor<float> x = tg::eval(
        0.5f + 0.1f * tg::random::normal<float>({batch, 50, 50, 3}, {.seed = static_cast<std::uint64_t>(100 + set)}));
    float* pixel = x.mutable_data();
    for (std::int64_t i = 0; i < batch; ++i)
        for (int row = 0; row < 50; ++row)
            for (int column = 0; column < 50; ++column)
                for (int channel = 0; channel < 3; ++channel)
                    *pixel++ += 0.05f * std::sin(0.4f * static_cast<float>(y(i, 0) > 0 ? row : column));
    return x;
}

/// Series whose waves are longer in the first class.
tg::tensor<float> series(const tg::tensor<float>& y, int set) {
    const std::int64_t batch = y.size();
    tg::tensor<float> x = tg::random::normal<float>({batch, 140, 30}, {.seed = static_cast<std::uint64_t>(500 + set)});
    float* value = x.mutable_data();
    for (std::int64_t i = 0; i < batch; ++i)
        for (int t = 0; t < 140; ++t)
            for (int channel = 0; channel < 30; ++channel)
                *value++ += 0.5f * std::sin((y(i, 0) > 0 ? 0.2f : 0.5f) * static_cast<float>(t));
    return x;
}

/// Replaces each number by the next one in a direction that follows from its index.
void nudge(tg::tensor<float>& x) {
    float* const values = x.mutable_data();
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const float far = std::numeric_limits<float>::max();
        values[i] = std::nextafter(values[i], i * 2654435761 >> 7 & 1 ? far : -far);
    }
}

void print_losses(const char* name, auto& model, std::int64_t batch, int steps, bool nudged, const auto& make) {
    for (int step = 0; step < steps; ++step) {
        tg::tensor<float> y = labels(batch, step % sets);
        tg::tensor<float> x = make(y, step);
        if (nudged) nudge(x);
        std::printf("%s %d %.7f\n", name, step, static_cast<double>(model.train_on_batch(x, y).loss));
        std::fflush(stdout);
    }
}

auto make_cnn() {
    return tg::compile<tg::graph>(models::cats_and_dogs<>{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                  tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4}, {.seed = 1});
}

void learn_waves(int steps, bool nudged) {
    auto cnn = make_cnn();
    print_losses("cnn", cnn, 16, steps, nudged, [](const auto& y, int step) { return images(y, step % sets); });
    auto conv1d = tg::compile<tg::graph>(models::conv1d_medium<>{}, tg::spec<float, tg::dyn, 140, 30>{},
                                         tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4}, {.seed = 1});
    print_losses("conv1d_medium", conv1d, 32, steps, nudged,
                 [](const auto& y, int step) { return series(y, step % sets); });
}

void learn_photographs(const char* folder, int steps, bool nudged) {
    const auto photographs = tg::data::read_image_folder(folder, {.height = 50, .width = 50});
    auto cnn = make_cnn();
    std::int64_t drawn = 0;
    print_losses("photographs", cnn, 16, steps, nudged, [&](tg::tensor<float>& y, int) {
        constexpr std::int64_t pixels = 50 * 50 * 3,
                               stride = 7919; // a prime: classes mix, and every image occurs
        auto x = tg::tensor<float>::uninitialized({y.size(), 50, 50, 3});
        for (std::int64_t i = 0; i < y.size(); ++i) {
            const std::int64_t record = drawn++ * stride % photographs.count;
            std::transform(photographs.images.data() + record * pixels,
                           photographs.images.data() + (record + 1) * pixels, x.mutable_data() + i * pixels,
                           [](float v) { return 2 * v - 1; });
            y.set(static_cast<float>(photographs.labels[static_cast<std::size_t>(record)]), i, 0);
        }
        return x;
    });
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view algorithm = argc > 1 ? argv[1] : "";
    const int steps = argc > 2 ? std::atoi(argv[2]) : 120;
    if (algorithm != "direct" && algorithm != "fast" && algorithm != "nudged") {
        std::fprintf(stderr, "usage: training_curves direct|fast|nudged [steps [folder]]\n");
        return 2;
    }
    try {
        tg::set_thread_count(1);
        tg::set_convolution_algorithm(algorithm == "fast" ? tg::convolution_algorithm::automatic
                                                          : tg::convolution_algorithm::direct);
        if (argc > 3)
            learn_photographs(argv[3], steps, algorithm == "nudged");
        else
            learn_waves(steps, algorithm == "nudged");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "training_curves: %s\n", e.what());
        return 1;
    }
}
