#include <models/cats_and_dogs.hpp>
#include <models/conv1d_medium.hpp>

#include <tapegraph/fast_convolution.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// The losses of two models of the studies, step by step, by one algorithm of convolutions: run it once with each, and compare. Both
/// learn to tell waves apart under noise, 16 batches again and again, with dropout and Adam at 1e-4, on one thread, from one seed.
/// Usage: training_curves direct|fast [steps]

namespace {

namespace tg = tapegraph;

constexpr int sets = 16; ///< batches, in turns

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

void print_losses(const char* name, auto& model, std::int64_t batch, int steps, const auto& make) {
    for (int step = 0; step < steps; ++step) {
        const tg::tensor<float> y = labels(batch, step % sets);
        std::printf("%s %d %.7f\n", name, step,
                    static_cast<double>(model.train_on_batch(make(y, step % sets), y).loss));
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view algorithm = argc > 1 ? argv[1] : "";
    const int steps = argc > 2 ? std::atoi(argv[2]) : 120;
    if (algorithm != "direct" && algorithm != "fast") {
        std::fprintf(stderr, "usage: training_curves direct|fast [steps]\n");
        return 2;
    }
    tg::set_thread_count(1);
    tg::set_convolution_algorithm(algorithm == "fast" ? tg::convolution_algorithm::fast
                                                      : tg::convolution_algorithm::direct);
    const tg::adam optimizer{.learning_rate = 1e-4};
    auto cnn = tg::compile<tg::graph>(models::cats_and_dogs<>{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                      tg::sigmoid_cross_entropy{}, optimizer, {.seed = 1});
    print_losses("cnn", cnn, 16, steps, images);
    auto conv1d = tg::compile<tg::graph>(models::conv1d_medium<>{}, tg::spec<float, tg::dyn, 140, 30>{},
                                         tg::sigmoid_cross_entropy{}, optimizer, {.seed = 1});
    print_losses("conv1d_medium", conv1d, 32, steps, series);
}
