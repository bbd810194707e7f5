#include "trained_model.hpp"

#include "../models/recurrent.hpp"

/// Two layers of LSTMs in both directions, 256 units each over 64 steps of 256 features, ten classes, Adam.
int main(int argc, char** argv) {
    using namespace compare;
    using model = models::two_lstms_both_ways;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        return training_of<model, tg::spec<float, tg::dyn, model::time, model::features>>(
            r, weights, noise({r.size, model::time, model::features}, 1), in_turns(r.size, model::classes),
            tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 1e-3});
    });
}
