#include <nn/loss_model.hpp>

namespace losses_binary_test {

using namespace nn_test;

namespace {
const tg::tensor<double> logits{{0.5, -1.25, 3, -2}, {0.125, -0.0625, 7, -9}, {1, -1, 0.75, -0.5}};
const tg::tensor<double> truth{{1, 0, 1, 1}, {0, 1, 0.25, 0}, {1, 1, 0, 0.5}};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
} // namespace

TEST_CASE("sigmoid cross-entropy: value, gradient and accuracy") {
    double value = 0;
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 4; ++k) {
            const double p = sigmoid(logits(i, k)), z = truth(i, k);
            value -= (z * std::log(p) + (1 - z) * std::log(1 - p)) / 12;
        }
    const auto gradient = table([](int i, int k) { return (sigmoid(logits(i, k)) - truth(i, k)) / 12; });
    // Right: x > 0 where z > 0.5. Row 0: 1, 1, 1, 0; row 1: 0, 0, 0, 1; row 2: 1, 0, 0, 1.
    each_mode([&](auto mode) {
        check_loss<decltype(mode), tg::sigmoid_cross_entropy>(logits, truth, value, gradient, 6.0 / 12);
    });
}

TEST_CASE("sigmoid cross-entropy does not overflow, and is smooth at zero") {
    const tg::tensor<double> x{{1000, -1000, 0, 0}, {1000, -1000, 0, 0}, {710, -746, 0, 0}};
    const tg::tensor<double> z{{0, 1, 1, 0}, {1, 0, 0.5, 0.25}, {1, 0, 0, 1}};
    const double value = (1000 + 1000 + 6 * std::log(2)) / 12;
    const auto gradient = table([&](int i, int k) { return (sigmoid(x(i, k)) - z(i, k)) / 12; });
    each_mode([&](auto mode) {
        check_loss<decltype(mode), tg::sigmoid_cross_entropy>(x, z, value, gradient, 8.0 / 12);
    });
}

TEST_CASE("binary cross-entropy of probabilities: value, gradient, clipping and accuracy") {
    const tg::tensor<double> p{{0.5, 0.125, 0.9, 0.2}, {0, 1, 0.75, 0.0625}, {1, 0, 0.3, 0.7}};
    const tg::tensor<double> z{{1, 0, 1, 0}, {1, 0, 0.25, 0}, {1, 0, 1, 1}};
    double value = 0;
    const auto clip = [](double v) { return std::min(std::max(v, 1e-7), 1 - 1e-7); };
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 4; ++k)
            value -= (z(i, k) * std::log(clip(p(i, k))) + (1 - z(i, k)) * std::log(1 - clip(p(i, k)))) / 12;
    // Where the probability is clipped the loss does not change with it.
    const auto gradient = table([&](int i, int k) {
        const double v = p(i, k);
        return v == 0 || v == 1 ? 0.0 : (v - z(i, k)) / (v * (1 - v)) / 12;
    });
    // Wrong: 0.5 for 1; 0 for 1 and 1 for 0; 0.75 for 0.25; 0.3 for 1.
    each_mode([&](auto mode) {
        check_loss<decltype(mode), tg::binary_cross_entropy>(p, z, value, gradient, 7.0 / 12);
    });
}

TEST_CASE("mean squared error: value and gradient") {
    const auto gradient = table([](int i, int k) { return 2 * (logits(i, k) - truth(i, k)) / 12; });
    double value = 0;
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 4; ++k) value += (logits(i, k) - truth(i, k)) * (logits(i, k) - truth(i, k)) / 12;
    each_mode([&](auto mode) {
        check_loss<decltype(mode), tg::mean_squared_error>(logits, truth, value, gradient);
    });
}

} // namespace losses_binary_test
