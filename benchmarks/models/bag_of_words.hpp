#pragma once

#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// A classifier of texts by the mean of their words' rows (Joulin et al. 2016): 64 words of 50,000,
/// rows of 128 numbers, a dense layer of 128 with relu, ten scores.
template <bool Sparse>
struct bag_of_words {
    static constexpr std::int64_t time = 64, vocabulary = 50000, width = 128, classes = 10;

    constexpr auto operator()(auto scope, auto words) const {
        namespace tg = tapegraph;
        const auto rows =
            tg::embedding(scope / "embedding", words, {.input_dim = vocabulary, .output_dim = width, .sparse = Sparse});
        const auto hidden = relu(tg::dense(scope / "hidden", mean(rows, 1), {.units = width}));
        return tg::dense(scope / "score", hidden, {.units = classes});
    }
};

} // namespace models
