#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/readers/labelled_images.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

/// Data sets that need no files. Record i depends only on (seed, i), not on the thread count or
/// `count`.

namespace tapegraph::data {

/// Options of `textured_blobs`: size and difficulty of the images.
struct texture_options {
    std::int64_t height = 50, width = 50;
    double contrast = 0.3; ///< amplitude of the texture
    double noise = 0.08;   ///< standard deviation of the noise of each value
};

/// Two balanced classes of images, [count, height, width, 3], values in [0, 1]; record i has the
/// label i % 2. Each shows a few round blobs on a shaded background, with horizontal stripes in
/// class 0 ("horizontal") and vertical ones in class 1 ("vertical"). Position, size, wavelength,
/// phase, tilt and colours have the same distribution in both classes, so neither the mean colour
/// nor any linear function of the pixels separates them, while a 3x3 convolution and a nonlinearity
/// do. Throws argument_error for a negative count or size.
labelled_images textured_blobs(std::int64_t count, std::uint64_t seed, const texture_options& options = {});
#if TG_DEFINES(data)
TG_DEFINITION labelled_images textured_blobs(std::int64_t count, std::uint64_t seed, const texture_options& options) {
    if (count < 0 || options.height < 1 || options.width < 1)
        throw argument_error("textured_blobs: " + std::to_string(count) + " images of " +
                             std::to_string(options.height) + "x" + std::to_string(options.width));
    labelled_images result;
    result.count = count;
    result.height = options.height;
    result.width = options.width;
    result.channels = 3;
    result.class_names = {"horizontal", "vertical"};
    const std::int64_t image_size = options.height * options.width * 3;
    result.images.resize(static_cast<std::size_t>(count * image_size));
    for (std::int64_t i = 0; i < count; ++i) result.labels.push_back(static_cast<std::int32_t>(i % 2));

    cpu::parallel_for(count, true, [&](std::int64_t i) {
        counter_random random(seed, static_cast<std::uint64_t>(i));
        struct blob {
            double y, x, radius, wave_y, wave_x, phase;
            double colour[3];
        };
        double ground[3], slope_y = random.uniform(-0.15, 0.15), slope_x = random.uniform(-0.15, 0.15);
        for (double& channel : ground) channel = random.uniform(0.25, 0.75);
        std::vector<blob> blobs(2 + random.below(3));
        const auto height = static_cast<double>(options.height), width = static_cast<double>(options.width);
        for (blob& b : blobs) {
            b.y = random.uniform(0.15, 0.85) * height;
            b.x = random.uniform(0.15, 0.85) * width;
            b.radius = random.uniform(0.15, 0.3) * std::min(height, width);
            const double wavelength = random.uniform(3.5, 7.0); // pixels
            const double tilt = random.uniform(-0.35, 0.35) + (i % 2 == 0 ? 0.5 : 0.0) * std::numbers::pi;
            b.wave_x = 2 * std::numbers::pi / wavelength * std::cos(tilt);
            b.wave_y = 2 * std::numbers::pi / wavelength * std::sin(tilt);
            b.phase = random.uniform(0, 2 * std::numbers::pi);
            for (double& channel : b.colour) channel = random.uniform(-0.25, 0.25);
        }
        float* out = result.images.data() + i * image_size;
        for (std::int64_t row = 0; row < options.height; ++row)
            for (std::int64_t column = 0; column < options.width; ++column) {
                const auto y = static_cast<double>(row), x = static_cast<double>(column);
                double value[3];
                for (int c = 0; c < 3; ++c)
                    value[c] = ground[c] + slope_y * (y / height - 0.5) + slope_x * (x / width - 0.5);
                for (const blob& b : blobs) {
                    const double distance = std::hypot(y - b.y, x - b.x) / b.radius;
                    if (distance > 1.2) continue;
                    const double weight = std::clamp((1.2 - distance) * 2.5, 0.0, 1.0); // soft rim
                    const double texture = options.contrast * std::sin(b.wave_y * y + b.wave_x * x + b.phase);
                    for (int c = 0; c < 3; ++c) value[c] += weight * (b.colour[c] + texture);
                }
                for (const double v : value)
                    *out++ = static_cast<float>(std::clamp(v + options.noise * random.normal(), 0.0, 1.0));
            }
    });
    return result;
}
#endif

/// Points, each with a class.
struct labelled_points {
    std::vector<float> points; ///< [count, dimensions]
    std::int64_t count = 0, dimensions = 0;
    std::vector<std::int32_t> labels; ///< [count]
};

/// Two interleaved half circles of radius 1 in the plane, record i in class i % 2, with Gaussian noise of standard
/// deviation `noise`. Throws argument_error for a negative count or noise.
labelled_points two_moons(std::int64_t count, std::uint64_t seed, double noise = 0.1);
#if TG_DEFINES(data)
TG_DEFINITION labelled_points two_moons(std::int64_t count, std::uint64_t seed, double noise) {
    if (count < 0 || !(noise >= 0))
        throw argument_error("two_moons: " + std::to_string(count) + " points, noise " + number_text(noise));
    labelled_points result{{}, count, 2, {}};
    for (std::int64_t i = 0; i < count; ++i) {
        counter_random random(seed, static_cast<std::uint64_t>(i));
        const double angle = random.uniform(0, std::numbers::pi);
        const double x = i % 2 == 0 ? std::cos(angle) : 1 - std::cos(angle);
        const double y = i % 2 == 0 ? std::sin(angle) : 0.5 - std::sin(angle);
        result.points.push_back(static_cast<float>(x + noise * random.normal()));
        result.points.push_back(static_cast<float>(y + noise * random.normal()));
        result.labels.push_back(static_cast<std::int32_t>(i % 2));
    }
    return result;
}
#endif

/// One Gaussian cloud of standard deviation `spread` per class around centres drawn from [-3, 3]^dimensions; record i in
/// class i % classes. Throws argument_error for a negative count or spread, or fewer than one class or dimension.
labelled_points gaussian_clouds(std::int64_t count, std::uint64_t seed, std::int64_t classes = 2,
                                std::int64_t dimensions = 2, double spread = 0.7);
#if TG_DEFINES(data)
TG_DEFINITION labelled_points gaussian_clouds(std::int64_t count, std::uint64_t seed, std::int64_t classes,
                                              std::int64_t dimensions, double spread) {
    if (count < 0 || classes < 1 || dimensions < 1 || !(spread >= 0))
        throw argument_error("gaussian_clouds: " + std::to_string(count) + " points of " + std::to_string(dimensions) +
                             " dimensions in " + std::to_string(classes) + " classes, spread " + number_text(spread));
    std::vector<double> centres;
    counter_random places(seed, UINT64_MAX); // a stream that no record uses
    for (std::int64_t i = 0; i < classes * dimensions; ++i) centres.push_back(places.uniform(-3, 3));
    labelled_points result{{}, count, dimensions, {}};
    for (std::int64_t i = 0; i < count; ++i) {
        counter_random random(seed, static_cast<std::uint64_t>(i));
        for (std::int64_t d = 0; d < dimensions; ++d)
            result.points.push_back(static_cast<float>(centres[static_cast<std::size_t>(i % classes * dimensions + d)] +
                                                       spread * random.normal()));
        result.labels.push_back(static_cast<std::int32_t>(i % classes));
    }
    return result;
}
#endif

} // namespace tapegraph::data
