#pragma once

#include "options.hpp"

#include <tapegraph/data/dataset.hpp>
#include <tapegraph/data/text/vocabulary.hpp>
#include <tapegraph/train/history.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace character_model {

/// The number of characters that the model distinguishes, including padding and the unknown one.
inline constexpr std::int64_t model_vocabulary = 128;

/// Windows with the columns "tokens" (f32, [length]) and "next" (i32, [length]).
struct window_sets {
    tapegraph::data::dataset train, validation;
};

struct written_character {
    std::string text;
    double chance = 1; ///< that the model gave it at this place; 1 for the prompt's
};

struct result {
    tapegraph::history epochs;
    std::vector<written_character> written;
};

/// Trains, and continues the prompt. Each mode has a source of its own, so that they compile in
/// parallel.
result train_graph(const options& o, const window_sets& sets, const tapegraph::data::vocabulary& characters,
                   const std::vector<std::int32_t>& prompt);
result train_eager(const options& o, const window_sets& sets, const tapegraph::data::vocabulary& characters,
                   const std::vector<std::int32_t>& prompt);
/// The layer table and the numbers of parameters.
std::string layer_table();

} // namespace character_model
