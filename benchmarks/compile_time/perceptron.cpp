// A perceptron without a model: a function and its gradient, compiled, and gradient descent by hand.
#include <tapegraph/tapegraph.hpp>

#include <cstdio>

namespace tg = tapegraph;

int main() {
    constexpr auto loss = [](auto x, auto z, auto w1, auto b1, auto w2, auto b2) {
        const auto h = tanh(matmul(x, w1) + b1);
        return mean(square(matmul(h, w2) + b2 - z));
    };
    auto slope = tg::function<tg::graph>(tg::value_and_gradient(loss), tg::spec<float, tg::dyn, 4>{},
                                         tg::spec<float, tg::dyn, 1>{}, tg::spec<float, 4, 16>{}, tg::spec<float, 16>{},
                                         tg::spec<float, 16, 1>{}, tg::spec<float, 1>{});
    const auto x = tg::random::normal<float>({64, 4}, {.seed = 1});
    const tg::tensor<float> z = sum(x * x, 1, {.keepdims = true});
    auto w1 = tg::random::normal<float>({4, 16}, {.seed = 2}), w2 = tg::random::normal<float>({16, 1}, {.seed = 3});
    auto b1 = tg::zeros<float>({16}), b2 = tg::zeros<float>({1});
    for (int step = 0; step < 200; ++step) {
        const auto [error, gradient] = slope(x, z, w1, b1, w2, b2);
        const auto& [dx, dz, dw1, db1, dw2, db2] = gradient;
        w1 = w1 - 0.01f * dw1;
        b1 = b1 - 0.01f * db1;
        w2 = w2 - 0.01f * dw2;
        b2 = b2 - 0.01f * db2;
        if (step % 50 == 0) std::printf("%g\n", error.item());
    }
}
