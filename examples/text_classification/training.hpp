#pragma once

#include "options.hpp"

#include <tapegraph/data/dataset.hpp>
#include <tapegraph/train/history.hpp>

#include <cstdint>
#include <string>

namespace text_classification {

/// The number of rows of the model's embedding.
inline constexpr std::int64_t model_vocabulary = 40691;

/// Columns "tokens" (f32, [length]) and "label" (i32, 0 to 2).
struct text_sets {
    tapegraph::data::dataset train, validation;
};

/// Each mode has a source of its own, so that they compile in parallel.
tapegraph::history train_graph(const options& o, const text_sets& sets);
tapegraph::history train_eager(const options& o, const text_sets& sets);
/// The layer table and the numbers of parameters.
std::string layer_table();

} // namespace text_classification
