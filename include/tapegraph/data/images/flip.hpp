#pragma once

#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/images/image.hpp>

#include <cstdint>
#include <cstring>

/// Mirrors images and rotates them by quarter turns: pixels move without changing.

namespace tapegraph::data::images {

/// Mirrors from left to right.
template <image_like I>
image<pixel_of<I>> flip_left_right(const I& x) {
    const auto from = view_of(x);
    image<pixel_of<I>> to(from.height, from.width, from.channels);
    for (std::int64_t y = 0; y < from.height; ++y)
        for (std::int64_t z = 0; z < from.width; ++z)
            for (std::int64_t c = 0; c < from.channels; ++c) to.at(y, from.width - 1 - z, c) = from.at(y, z, c);
    return to;
}
/// Mirrors from top to bottom.
template <image_like I>
image<pixel_of<I>> flip_up_down(const I& x) {
    const auto from = view_of(x);
    image<pixel_of<I>> to(from.height, from.width, from.channels);
    for (std::int64_t y = 0; y < from.height; ++y)
        std::memcpy(to.view().row(from.height - 1 - y), from.row(y),
                    static_cast<std::size_t>(from.row_size()) * sizeof(pixel_of<I>));
    return to;
}
/// Transposes rows and columns.
template <image_like I>
image<pixel_of<I>> transpose(const I& x) {
    const auto from = view_of(x);
    image<pixel_of<I>> to(from.width, from.height, from.channels);
    for (std::int64_t y = 0; y < from.height; ++y)
        for (std::int64_t z = 0; z < from.width; ++z)
            for (std::int64_t c = 0; c < from.channels; ++c) to.at(z, y, c) = from.at(y, z, c);
    return to;
}
/// Rotates counter-clockwise by `turns` quarter turns (any number, negative ones clockwise):
/// tf.image.rot90.
template <image_like I>
image<pixel_of<I>> rotate_quarters(const I& x, int turns) {
    switch ((turns % 4 + 4) % 4) {
    case 1: return flip_up_down(transpose(x));
    case 2: return flip_up_down(flip_left_right(x));
    case 3: return flip_left_right(transpose(x));
    default: return copy(x);
    }
}
/// Mirrors in either direction, each with probability 1/2.
template <image_like I>
image<pixel_of<I>> random_flip_left_right(const I& x, counter_random& random) {
    return random.uniform() < 0.5 ? flip_left_right(x) : copy(x);
}
/// The image upside down with probability 1/2, otherwise a copy.
template <image_like I>
image<pixel_of<I>> random_flip_up_down(const I& x, counter_random& random) {
    return random.uniform() < 0.5 ? flip_up_down(x) : copy(x);
}

} // namespace tapegraph::data::images
