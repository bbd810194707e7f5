#include "trained_model.hpp"

#include "../../examples/models/cats_and_dogs.hpp"

/// The CNN of the batch-size study: images 50 x 50, one logit, SGD.
int main(int argc, char** argv) {
    using namespace compare;
    return serve(argc, argv, [](const row& r, bool for_check, const std::string& weights) {
        return study<models::cats_and_dogs, tg::spec<float, tg::dyn, 50, 50, 3>>(
            r, for_check, weights, noise({r.size, 50, 50, 3}, 1), two_classes(r.size), tg::sigmoid_cross_entropy{},
            tg::sgd{.learning_rate = 1e-4});
    });
}
