#include <tapegraph/tapegraph.hpp>

#include <tapegraph/data/readers/idx.hpp>
#include <tapegraph/formats/csv_reader.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>

#include "study/svg_images.hpp"
#include "tutorial/digits.hpp"

// Handwritten digits: a CNN learns from four fifths of them, and shows those of the rest that it is least sure of.
//
//   digits [DATA [PICTURE.svg]]
//
// DATA is a folder with MNIST's files (train-images-idx3-ubyte, plain or .gz, and so on), or a .csv file whose rows are 64 pixels
// from 0 to 16 and a digit, as scikit-learn's digits.csv.gz has them once it is unpacked, or `drawn`, the default: digits
// that the program draws itself.

namespace tg = tapegraph;

constexpr std::int64_t side = 28;

struct network {
    constexpr auto operator()(auto scope, auto x) const { // x: [batch, 28, 28, 1]
        auto h = tg::conv2d(scope / "conv" / 0, x, {.filters = 16, .kernel_size = 5, .stride = 2});
        h = tg::conv2d(scope / "conv" / 1, relu(h), {.filters = 32, .kernel_size = 3, .stride = 2});
        h = tg::dropout(scope / "drop", flatten(relu(h)), {.rate = 0.4});
        return tg::dense(scope / "score", h, {.units = 10});
    }
};

// Images of 8 by 8 pixels become 24 by 24, within a border.
tg::data::labelled_images read_table(const std::string& path) {
    tg::data::labelled_images all;
    all.height = all.width = side;
    all.channels = 1;
    for (int digit = 0; digit < 10; ++digit) all.class_names.push_back(std::to_string(digit));
    tg::io::csv_reader rows(path, {.header = false});
    while (rows.next()) {
        const auto number = [&](std::size_t field, int most) {
            const int value = rows.number<int>(field);
            if (value < 0 || value > most)
                throw tg::data_error("'" + path + "', record " + std::to_string(all.count + 1) + ", field " +
                                     std::to_string(field + 1) + ": " + std::to_string(value) + " is not from 0 to " +
                                     std::to_string(most));
            return value;
        };
        if (rows.fields().size() != 65)
            throw tg::data_error("'" + path + "': records have " + std::to_string(rows.fields().size()) +
                                 " fields, not 64 pixels and a digit");
        std::vector<float> image(side * side);
        for (std::size_t pixel = 0; pixel < 64; ++pixel)
            for (std::size_t i = 0; i < 9; ++i)
                image[(2 + 3 * (pixel / 8) + i / 3) * side + 2 + 3 * (pixel % 8) + i % 3] =
                    static_cast<float>(number(pixel, 16)) / 16;
        all.images.insert(all.images.end(), image.begin(), image.end());
        all.labels.push_back(number(64, 9));
        ++all.count;
    }
    return all;
}

int main(int argc, char** argv) try {
    const std::string data = argc > 1 ? argv[1] : "drawn";
    const tg::data::labelled_images images = data == "drawn"                       ? tutorial::drawn_digits(4000, 1)
                                             : std::filesystem::is_directory(data) ? tg::data::read_mnist(data)
                                                                                   : read_table(data);
    const auto parts = tg::data::train_validation_split(tg::data::make_dataset(images), 1, 0.2);
    auto model =
        tg::compile<tg::graph>(network{}, tg::spec<float, tg::dyn, side, side, 1>{}, tg::sparse_softmax_cross_entropy{},
                               tg::adam{.learning_rate = 2e-3}, {.seed = 1});
    const auto history = model.fit(parts.train, {.epochs = images.count > 10000 ? 3 : 20,
                                                 .batch_size = 64,
                                                 .validation_data = parts.validation,
                                                 .verbose = false});
    const double right = history.epochs.back().validation_accuracy;
    std::printf("%lld digits to learn from; of %lld others %.1f %% are read correctly\n",
                static_cast<long long>(parts.train.size()), static_cast<long long>(parts.validation.size()),
                100 * right);
    if (argc < 3) return 0;

    std::vector<study::svg_image> shown;
    std::vector<float> sureness;
    tg::data::loader batches(parts.validation.batch(100));
    for (const tg::data::batch& batch : batches.epoch(0)) {
        const auto image = batch.tensor<float>("image");
        const auto label = batch.tensor<std::int32_t>("label");
        const tg::tensor<float> chances = softmax(model.predict(image));
        for (std::int64_t i = 0; i < label.size(); ++i) {
            const float* const of = chances.data() + 10 * i;
            const auto digit = std::max_element(of, of + 10) - of;
            const bool wrong = digit != label.data()[i];
            shown.push_back({.pixels = {image.data() + i * side * side, image.data() + (i + 1) * side * side},
                             .label = wrong ? std::to_string(digit) + ", is " + std::to_string(label.data()[i])
                                            : std::to_string(digit),
                             .marked = wrong});
            sureness.push_back(of[digit]);
        }
    }
    std::vector<std::size_t> order(shown.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sureness[a] < sureness[b]; });
    study::image_rows picture{
        .title = "The digits it is least sure of, of " + std::to_string(shown.size()), .height = side, .width = side};
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 40); ++i) picture.images.push_back(shown[order[i]]);
    study::write_svg_images(argv[2], picture);
} catch (const tg::error& e) {
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
}
