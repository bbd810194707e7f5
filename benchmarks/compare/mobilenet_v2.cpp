#include "trained_model.hpp"

#include "../models/mobilenet_v2.hpp"

/// MobileNetV2 on images of 32 x 32, ten classes, momentum.
int main(int argc, char** argv) {
    using namespace compare;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        return training_of<models::mobilenet_v2, tg::spec<float, tg::dyn, 32, 32, 3>>(
            r, weights, noise({r.size, 32, 32, 3}, 1), in_turns(r.size, 10), tg::sparse_softmax_cross_entropy{},
            tg::momentum{.learning_rate = 1e-6});
    });
}
