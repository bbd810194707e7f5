#pragma once

#include "options.hpp"

#include <tapegraph/data/dataset.hpp>

#include <string>

namespace batch_study {

/// Training and validation images: columns "image" (f32, [50, 50, 3], values in [-1, 1]) and "label" (f32, [1], 0 or 1).
struct image_sets {
    tapegraph::data::dataset train, validation;
    std::string description; ///< one line
};

/// Reads the folder of --data, or generates a set. Throws tapegraph::data_error naming folder or file.
image_sets load_images(const options& o);

} // namespace batch_study
