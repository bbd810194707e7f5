#pragma once

#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/readers/labelled_images.hpp>

#include <cstdint>
#include <string>

namespace tutorial {

/// Digits as a pocket calculator shows them, 28 by 28 pixels, at random places, of random size and brightness, with noise: what
/// the tutorial uses where no MNIST is at hand. Image i shows the digit i % 10 and depends on (seed, i) alone.
inline tapegraph::data::labelled_images drawn_digits(std::int64_t count, std::uint64_t seed) {
    // The seven strokes, from top to bottom and left to right, of 0 to 9.
    constexpr bool strokes[10][7] = {{1, 1, 1, 0, 1, 1, 1}, {0, 0, 1, 0, 0, 1, 0}, {1, 0, 1, 1, 1, 0, 1},
                                     {1, 0, 1, 1, 0, 1, 1}, {0, 1, 1, 1, 0, 1, 0}, {1, 1, 0, 1, 0, 1, 1},
                                     {1, 1, 0, 1, 1, 1, 1}, {1, 0, 1, 0, 0, 1, 0}, {1, 1, 1, 1, 1, 1, 1},
                                     {1, 1, 1, 1, 0, 1, 1}};
    constexpr int from[7][2] = {{0, 0}, {0, 0}, {0, 1}, {1, 0},
                                {1, 0}, {1, 1}, {2, 0}}; // where a stroke begins: row, column
    constexpr bool across[7] = {1, 0, 0, 1, 0, 0, 1};
    tapegraph::data::labelled_images result;
    result.count = count;
    result.height = result.width = 28;
    result.channels = 1;
    result.images.assign(static_cast<std::size_t>(count * 28 * 28), 0.f);
    for (int digit = 0; digit < 10; ++digit) result.class_names.push_back(std::to_string(digit));
    for (std::int64_t i = 0; i < count; ++i) {
        tapegraph::data::counter_random random(seed, static_cast<std::uint64_t>(i));
        float* const image = result.images.data() + i * 28 * 28;
        const int length = 8 + static_cast<int>(random.below(3));
        const int top = 3 + static_cast<int>(random.below(4)), left = 7 + static_cast<int>(random.below(6));
        const auto ink = static_cast<float>(random.uniform(0.5, 1));
        for (int s = 0; s < 7; ++s)
            for (int k = 0; strokes[i % 10][s] && k <= length; ++k) {
                const int row = top + from[s][0] * length + (across[s] ? 0 : k);
                const int column = left + from[s][1] * length + (across[s] ? k : 0);
                image[row * 28 + column] = image[row * 28 + column + 1] = image[(row + 1) * 28 + column] = ink;
            }
        for (int p = 0; p < 28 * 28; ++p) image[p] += static_cast<float>(0.1 * random.normal());
        result.labels.push_back(static_cast<std::int32_t>(i % 10));
    }
    return result;
}

} // namespace tutorial
