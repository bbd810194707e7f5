// A function that returns no tensor.
// expect: the loss is a function without arguments that returns a scalar
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    tg::tensor<float> w = tg::ones<float>({2});
    tg::applied optimizer(tg::sgd{}, w);
    optimizer.minimize([&] { return 1.0; });
}
