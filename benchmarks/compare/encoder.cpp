#include "trained_model.hpp"

#include "../models/encoder.hpp"

/// A transformer's encoder that classifies texts of 128 tokens, Adam.
int main(int argc, char** argv) {
    using namespace compare;
    using models::encoder;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        return training_of<encoder, tg::spec<std::int32_t, tg::dyn, encoder::time>>(
            r, weights, characters(r.size, encoder::time, encoder::vocabulary), in_turns(r.size, encoder::classes),
            tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 1e-4});
    });
}
