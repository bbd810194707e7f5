#pragma once

#include "options.hpp"

#include <tapegraph/data/dataset.hpp>

#include <string>

namespace batch_study {

/// What a model is trained on and what is held out.
///
///     cnn   columns "image" (f32, [50, 50, 3], values in [-1, 1]) and "label" (f32, [1], 0 or 1)
///     rnn   columns "tokens" (f32, [40], numbers of words) and "label" (i32, 0 to 2)
struct training_sets {
    tapegraph::data::dataset train, validation;
    std::string description; ///< one line
};

/// Read from --data, or generated. Throw tapegraph::data_error naming folder, file or row.
training_sets load_images(const options& o);
training_sets load_texts(const options& o);
inline training_sets load(const options& o) { return o.model == "cnn" ? load_images(o) : load_texts(o); }

/// Rows of the RNN's embedding.
inline constexpr std::int64_t model_vocabulary = 40691;

} // namespace batch_study
