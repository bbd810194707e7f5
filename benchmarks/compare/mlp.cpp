#include "trained_model.hpp"

#include "../models/mlp.hpp"

/// A multilayer perceptron on images of 784 numbers, ten classes, Adam.
int main(int argc, char** argv) {
    using namespace compare;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        return training_of<models::mlp, tg::spec<float, tg::dyn, 784>>(
            r, weights, noise({r.size, 784}, 1), in_turns(r.size, 10), tg::sparse_softmax_cross_entropy{},
            tg::adam{.learning_rate = 1e-4});
    });
}
