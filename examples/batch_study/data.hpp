#pragma once

#include "options.hpp"

#include <tapegraph/data/dataset.hpp>

#include <string>

namespace batch_study {

/// The training set and the held-out set of a model.
///
///     cnn   columns "image" (f32, [50, 50, 3], values in [-1, 1]) and "label" (f32, [1], 0 or 1)
///     rnn   columns "tokens" (f32, [40], indices of words) and "label" (i32, 0 to 2)
struct training_sets {
    tapegraph::data::dataset train, validation;
    std::string description; ///< one line
};

/// Read the sets from --data, or generate them. Throw tapegraph::data_error naming folder, file or
/// row.
training_sets load_images(const options& o);
training_sets load_texts(const options& o);
inline training_sets load(const options& o) { return o.model == "cnn" ? load_images(o) : load_texts(o); }

/// The number of rows of the RNN's embedding.
inline constexpr std::int64_t model_vocabulary = 40691;

} // namespace batch_study
