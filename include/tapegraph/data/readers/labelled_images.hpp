#pragma once

#include <tapegraph/data/dataset.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph::data {

/// The result of every image reader.
struct labelled_images {
    std::vector<float> images; ///< [count, height, width, channels], values in [0, 1]
    std::int64_t count = 0, height = 0, width = 0, channels = 0;
    std::vector<std::int32_t> labels;     ///< [count], in [0, class_names.size())
    std::vector<std::string> class_names; ///< name of each label
};

/// A data set with the columns "image" (f32, [height, width, channels]) and "label" (Label, `label_shape`: [] or [1]).
template <class Label = std::int32_t>
dataset make_dataset(labelled_images images, std::vector<std::int64_t> label_shape = {}) {
    dataset result;
    result.add("image", std::move(images.images), {images.height, images.width, images.channels});
    result.add("label", std::vector<Label>(images.labels.begin(), images.labels.end()), std::move(label_shape));
    return result;
}

} // namespace tapegraph::data
