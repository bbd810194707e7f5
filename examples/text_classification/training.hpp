#pragma once

#include "options.hpp"

#include <tapegraph/data/dataset.hpp>
#include <tapegraph/nn/history.hpp>

#include <cstdint>
#include <string>

namespace text_classification {

/// Rows of the model's embedding.
inline constexpr std::int64_t model_vocabulary = 40691;

/// Columns "tokens" (f32, [length]) and "label" (i32, 0 to 2).
struct text_sets {
    tapegraph::data::dataset train, validation;
};

/// The two modes are compiled in two sources, side by side.
tapegraph::history train_graph(const options& o, const text_sets& sets);
tapegraph::history train_eager(const options& o, const text_sets& sets);
/// The layer table and the numbers of parameters.
std::string layer_table();

} // namespace text_classification
