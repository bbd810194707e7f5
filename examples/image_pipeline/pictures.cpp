#include "pictures.hpp"

#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/images/image.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/png.hpp> // which includes stb_image_write, for JPEG

#include <cmath>
#include <filesystem>
#include <vector>

namespace image_pipeline {

namespace {

namespace data = tapegraph::data;

/// Whether a point (coordinates from -1 to 1 within the shape) belongs to it.
bool covered(int shape, double y, double x) {
    if (std::fabs(x) > 1 || std::fabs(y) > 1) return false;
    if (shape == 0) return x * x + y * y <= 1;
    if (shape == 1) return true;
    return std::fabs(std::fabs(x) - std::fabs(y)) < 0.3;
}

/// One shape at a random position on a background of two colours, with noise.
data::images::image<std::uint8_t> picture(int shape, data::counter_random& random) {
    const auto between = [&](int low, int high) {
        return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low)));
    };
    data::images::image<std::uint8_t> image(between(120, 240), between(120, 240), 3);
    const double size = random.uniform(0.25, 0.4) * static_cast<double>(std::min(image.height, image.width));
    const double middle_y = random.uniform(size, static_cast<double>(image.height) - size);
    const double middle_x = random.uniform(size, static_cast<double>(image.width) - size);
    int ground[3], figure[3];
    for (int c = 0; c < 3; ++c) {
        ground[c] = between(20, 110);
        figure[c] = between(140, 236);
    }
    for (std::int64_t y = 0; y < image.height; ++y)
        for (std::int64_t x = 0; x < image.width; ++x) {
            const bool inside =
                covered(shape, (static_cast<double>(y) - middle_y) / size, (static_cast<double>(x) - middle_x) / size);
            const int noise = between(-12, 13);
            for (int c = 0; c < 3; ++c)
                image.at(y, x, c) = static_cast<std::uint8_t>((inside ? figure : ground)[c] + noise);
        }
    return image;
}

void append(void* to, void* bytes, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

} // namespace

void make_pictures(const std::string& folder, std::int64_t count, std::uint64_t seed) {
    const char* const names[3] = {"cross", "disc", "square"};
    const int shapes[3] = {2, 0, 1};
    for (std::int64_t i = 0; i < count; ++i) {
        data::counter_random random(seed, static_cast<std::uint64_t>(i));
        const auto image = picture(shapes[i % 3], random);
        const std::filesystem::path path = std::filesystem::path(folder) / names[i % 3];
        std::filesystem::create_directories(path);
        const bool png = i / 3 % 4 == 3;
        std::string bytes;
        if (png)
            bytes = tapegraph::io::encode_png(image.pixels, image.height, image.width, 3);
        else
            stbi_write_jpg_to_func(append, &bytes, static_cast<int>(image.width), static_cast<int>(image.height), 3,
                                   image.pixels.data(), 90);
        tapegraph::io::atomic_file file(path / (std::to_string(i) + (png ? ".png" : ".jpg")));
        file.write(bytes);
        file.commit();
    }
}

} // namespace image_pipeline
