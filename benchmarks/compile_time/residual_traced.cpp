// The 60 residual blocks of residual.cpp, traced when the program runs.
#include <tapegraph/traced.hpp>

#include "../models/residual.hpp"

namespace tg = tapegraph;

int main() {
    auto model = tg::compile<tg::traced>(models::residual{.blocks = 60}, tg::spec<float, tg::dyn, 32, 32, 3>{},
                                         tg::sigmoid_cross_entropy{}, tg::sgd{.learning_rate = 0.01});
    const auto x = tg::zeros<float>({1, 32, 32, 3}), y = tg::zeros<float>({1, 1});
    return model.train_on_batch(x, y).loss < 0;
}
