#include "trained_model.hpp"

#include "../models/resnet50.hpp"

/// ResNet-50 on images of 224 x 224, a thousand classes, momentum.
int main(int argc, char** argv) {
    using namespace compare;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        return training_of<models::resnet50, tg::spec<float, tg::dyn, 224, 224, 3>>(
            r, weights, noise({r.size, 224, 224, 3}, 1), in_turns(r.size, 1000), tg::sparse_softmax_cross_entropy{},
            tg::momentum{.learning_rate = 1e-8});
    });
}
