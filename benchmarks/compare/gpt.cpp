#include "trained_model.hpp"

#include "../models/gpt.hpp"

/// A transformer that predicts one of COMPARE_VOCABULARY characters, Adam.

#ifndef COMPARE_VOCABULARY
#define COMPARE_VOCABULARY 65
#endif

int main(int argc, char** argv) {
    using namespace compare;
    using gpt = models::gpt_of<COMPARE_VOCABULARY>;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        return training_of<gpt, tg::spec<std::int32_t, tg::dyn, gpt::time>>(
            r, weights, characters(r.size, gpt::time, gpt::vocabulary),
            characters(r.size, gpt::time, gpt::vocabulary, 1), tg::sparse_softmax_cross_entropy{},
            tg::adam{.learning_rate = 1e-4});
    });
}
