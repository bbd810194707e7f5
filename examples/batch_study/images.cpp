#include "data.hpp"

#include <tapegraph/data/readers/image_folder.hpp>
#include <tapegraph/data/synthetic.hpp>

#include <algorithm>
#include <filesystem>

namespace batch_study {

namespace {

namespace data = tapegraph::data;

constexpr data::image_folder_options image_size{.height = 50, .width = 50};

// Inputs around zero: the first convolution then starts with features of either sign instead of brightness.
data::dataset make_set(data::labelled_images images) {
    for (float& v : images.images) v = 2 * v - 1;
    return data::make_dataset<float>(std::move(images), {1});
}

data::labelled_images read_two_classes(const std::filesystem::path& folder) {
    data::labelled_images images = data::read_image_folder(folder, image_size);
    if (images.class_names.size() != 2)
        throw tapegraph::data_error("'" + folder.string() + "': " + std::to_string(images.class_names.size()) +
                                    " class folders, the model tells two classes apart");
    return images;
}

std::string in_words(const training_sets& sets, const std::string& names, const std::string& origin) {
    return std::to_string(sets.train.size()) + " training and " + std::to_string(sets.validation.size()) +
           " validation images 50x50x3 of " + names + ", " + origin;
}

training_sets read_folder(const options& o) {
    const std::filesystem::path folder(o.data);
    std::error_code ignored;
    const bool train = std::filesystem::is_directory(folder / "train", ignored);
    const bool test = std::filesystem::is_directory(folder / "test", ignored);
    if (train != test)
        throw tapegraph::data_error("'" + o.data + "': has " + (train ? "train/ but no test/" : "test/ but no train/"));
    training_sets sets;
    std::vector<std::string> classes;
    if (train) {
        auto first = read_two_classes(folder / "train"), second = read_two_classes(folder / "test");
        if (first.class_names != second.class_names)
            throw tapegraph::data_error("'" + o.data + "': train/ and test/ hold folders of different names");
        classes = first.class_names;
        sets.train = make_set(std::move(first));
        sets.validation = make_set(std::move(second));
    } else {
        auto all = read_two_classes(folder);
        classes = all.class_names;
        auto parts = data::train_validation_split(make_set(std::move(all)), o.seed, 0.2);
        sets.train = std::move(parts.train);
        sets.validation = std::move(parts.validation);
    }
    sets.description = in_words(sets, classes[0] + " and " + classes[1], "from " + o.data);
    return sets;
}

training_sets generate(const options& o) {
    // As many as the largest batch needs, and few enough for several epochs within the time budget.
    const std::int64_t largest = *std::max_element(o.batch_sizes.begin(), o.batch_sizes.end());
    const std::int64_t count = std::max<std::int64_t>(640, largest);
    training_sets sets;
    sets.train = make_set(data::textured_blobs(count, o.seed));
    sets.validation = make_set(data::textured_blobs(160, o.seed + 0x9E3779B97F4A7C15u));
    sets.description = in_words(sets, "two classes of texture", "generated");
    return sets;
}

} // namespace

training_sets load_images(const options& o) { return o.data.empty() ? generate(o) : read_folder(o); }

} // namespace batch_study
