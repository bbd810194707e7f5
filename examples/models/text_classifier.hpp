#pragma once

#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

namespace tg = tapegraph;

/// The recurrent network of the text study: maps word indices [batch, time], of any time, to the
/// logits of three classes [batch, 3]. Word 0 is padding, which the LSTM skips. A step updates only
/// the rows of the words that it has seen, not the whole table. 5,353,235 parameters with the
/// study's vocabulary.
template <std::int64_t Vocabulary = 40691>
struct text_classifier {
    constexpr auto operator()(auto scope, auto words) const {
        const auto rows = tg::embedding(scope / "embedding", words,
                                        {.input_dim = Vocabulary, .output_dim = 128, .sparse = true});
        const auto last = tg::lstm(scope / "lstm", rows, {.units = 128}, tg::embedding_mask(words));
        const auto hidden = relu(tg::dense(scope / "dense", last, {.units = 100}));
        return tg::dense(scope / "classes", hidden, {.units = 3});
    }
};

} // namespace models
