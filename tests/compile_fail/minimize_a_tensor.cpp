// A tensor where an optimizer in a loop of one's own takes a function.
// expect: the loss is a function without arguments that returns a scalar: optimizer.minimize([&] { return mean(square(y)); })
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    tg::tensor<float> w = tg::ones<float>({2});
    tg::applied optimizer(tg::sgd{}, w);
    optimizer.minimize(sum(square(w)));
}
