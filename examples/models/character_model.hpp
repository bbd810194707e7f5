#pragma once

#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

namespace tg = tapegraph;

/// A language model of characters: maps their indices [batch, time], of any time, to the logits of
/// each one's successor [batch, time, vocabulary].
template <std::int64_t Vocabulary>
struct character_model {
    constexpr auto operator()(auto scope, auto characters) const {
        const auto rows = tg::embedding(scope / "embedding", characters, {.input_dim = Vocabulary, .output_dim = 64});
        const auto steps = tg::lstm(scope / "lstm", rows, {.units = 256, .return_sequences = true});
        return tg::dense(scope / "next", steps, {.units = Vocabulary});
    }
};

} // namespace models
