// Ten operations on tensors, and the gradient of the result.
#include <tapegraph/tapegraph.hpp>

#include <cstdio>

namespace tg = tapegraph;

int main() {
    const auto x = tg::random::normal<float>({32, 8}, {.seed = 1});
    auto w = tg::random::normal<float>({8, 4}, {.seed = 2});

    tg::gradient_tape tape;
    tape.watch(w);
    const tg::tensor<float> h = matmul(x, w);
    const tg::tensor<float> scaled = h - mean(h, 0);
    const tg::tensor<float> active = relu(scaled) + 0.1f * tanh(scaled);
    const tg::tensor<float> turned = transpose(active);
    const tg::tensor<float> top = max(turned, 1);
    const tg::tensor<float> loss = sum(exp(-top)) + mean(square(turned));
    std::printf("%g %g\n", loss.item(), sum(tape.gradient(loss, w)).item());
}
