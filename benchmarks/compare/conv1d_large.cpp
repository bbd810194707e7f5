#include "trained_model.hpp"

#include "../../examples/models/conv1d_large.hpp"

/// The large convolution of the mode study: series of 30 channels, one logit, Adam.
int main(int argc, char** argv) {
    using namespace compare;
    return serve(argc, argv, [](const row& r, bool for_check, const std::string& weights) {
        return study<models::conv1d_large, tg::spec<float, tg::dyn, tg::dyn, 30>>(
            r, for_check, weights, noise({r.size, r.length, 30}, 1), two_classes(r.size), tg::sigmoid_cross_entropy{},
            tg::adam{.learning_rate = 1e-4});
    });
}
