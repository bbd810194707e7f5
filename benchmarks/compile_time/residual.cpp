// Large: 60 residual blocks, some 7,000 nodes. Needs the limits that the CMake target passes on.
#include "../models/residual.hpp"

namespace tg = tapegraph;

int main() {
    auto model = tg::compile<tg::graph, models::residual{.blocks = 60}>(
        tg::spec<float, tg::dyn, 32, 32, 3>{}, tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 0.01});
    const auto x = tg::zeros<float>({1, 32, 32, 3}), y = tg::zeros<float>({1, 1});
    return model.train_on_batch(x, y).loss < 0;
}
