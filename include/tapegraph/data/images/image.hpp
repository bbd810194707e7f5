#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/data/readers/image.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Images in host memory, [height, width, channels], of bytes in [0, 255] or of floats, usually in
/// [0, 1], as used by all functions of this folder. These are plain functions of values, for use in
/// a `map` or directly. Random functions take a counter_random, so that their result depends on a
/// record's number and not on the thread that comes first.

namespace tapegraph::data::images {

/// Element types of images.
template <class T>
concept pixel = std::is_same_v<std::remove_const_t<T>, std::uint8_t> || std::is_same_v < std::remove_const_t<T>,
float > ;

/// A rectangle of an image: rows [top, top + height), columns [left, left + width).
struct box {
    std::int64_t top = 0, left = 0, height = 0, width = 0;
    bool operator==(const box&) const = default;
};

/// A view of an image owned elsewhere, with rows `row_stride` elements apart.
template <pixel T>
struct image_view {
    T* pixels = nullptr;
    std::int64_t height = 0, width = 0, channels = 0;
    std::int64_t row_stride = 0;

    image_view() = default;
    /// Rows are contiguous, unless `stride` gives their distance.
    image_view(T* first, std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t stride = 0)
        : pixels(first),
          height(rows),
          width(columns),
          channels(depth),
          row_stride(stride == 0 ? columns * depth : stride) {}
    /// A writable view converts to a read-only one.
    operator image_view<const T>() const requires(!std::is_const_v<T>) {
        return {pixels, height, width, channels, row_stride};
    }

    /// The first value of row y, from 0 at the top, unchecked.
    T* row(std::int64_t y) const { return pixels + y * row_stride; }
    /// Channel c of the pixel in row y and column x, unchecked.
    T& at(std::int64_t y, std::int64_t x, std::int64_t c = 0) const { return row(y)[x * channels + c]; }
    /// Values in a row: width times channels.
    std::int64_t row_size() const { return width * channels; }
    std::int64_t size() const { return height * width * channels; }
};

/// An image that owns its pixels.
template <pixel T>
struct image {
    std::int64_t height = 0, width = 0, channels = 0;
    std::vector<T> pixels;

    image() = default;
    /// An image of zeros. Throws shape_error for a negative extent or more than 2^40 elements.
    image(std::int64_t rows, std::int64_t columns, std::int64_t depth) : height(rows), width(columns), channels(depth) {
        std::int64_t size = 0;
        if (rows < 0 || columns < 0 || depth < 0 || __builtin_mul_overflow(rows, columns, &size) ||
            __builtin_mul_overflow(size, depth, &size) || size > std::int64_t{1} << 40)
            throw shape_error("image: impossible extents [" + std::to_string(rows) + "," + std::to_string(columns) +
                              "," + std::to_string(depth) + "]");
        pixels.resize(static_cast<std::size_t>(size));
    }
    /// Throws shape_error unless there are rows * columns * depth values.
    image(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::vector<T> values)
        : height(rows), width(columns), channels(depth), pixels(std::move(values)) {
        if (static_cast<std::int64_t>(pixels.size()) != rows * columns * depth)
            throw shape_error("image: " + std::to_string(pixels.size()) + " values for [" + std::to_string(rows) + "," +
                              std::to_string(columns) + "," + std::to_string(depth) + "]");
    }
    /// Takes a decoder's result.
    image(rgb_image decoded) requires(std::is_same_v<T, std::uint8_t>)
        : height(decoded.height), width(decoded.width), channels(3), pixels(std::move(decoded.pixels)) {}

    /// The image as a view that neither owns nor copies pixels.
    image_view<T> view() { return {pixels.data(), height, width, channels}; }
    image_view<const T> view() const { return {pixels.data(), height, width, channels}; }
    /// Channel c of the pixel in row y and column x, unchecked.
    T& at(std::int64_t y, std::int64_t x, std::int64_t c = 0) {
        return pixels[static_cast<std::size_t>((y * width + x) * channels + c)];
    }
    const T& at(std::int64_t y, std::int64_t x, std::int64_t c = 0) const {
        return pixels[static_cast<std::size_t>((y * width + x) * channels + c)];
    }
    bool operator==(const image&) const = default;
};

/// A view of what has pixels, an image or a view itself.
template <pixel T>
image_view<const T> view_of(const image<T>& x) {
    return x.view();
}
template <pixel T>
image_view<const T> view_of(image_view<T> x) {
    return x;
}
inline image_view<const std::uint8_t> view_of(const rgb_image& x) { return {x.pixels.data(), x.height, x.width, 3}; }

/// An image, a view of one, or a decoder's result.
template <class I>
concept image_like = requires(const I& x) {
    view_of(x).row_stride;
};

/// The element type, uint8_t or float.
template <image_like I>
using pixel_of = std::remove_const_t<std::remove_pointer_t<decltype(view_of(std::declval<const I&>()).pixels)>>;

namespace detail {

/// "[3,4,3]"
template <class V>
std::string extents(const V& x) {
    return "[" + std::to_string(x.height) + "," + std::to_string(x.width) + "," + std::to_string(x.channels) + "]";
}

template <class From, class To>
void check_same_extents(const char* operation, const From& from, const To& to) {
    if (from.height != to.height || from.width != to.width || from.channels != to.channels)
        throw shape_error(std::string(operation) + ": an image " + extents(from) + " does not fit into one " +
                          extents(to));
}

template <class V>
void check_pixels(const char* operation, const V& x) {
    if (x.height < 1 || x.width < 1 || x.channels < 1)
        throw shape_error(std::string(operation) + ": an image " + extents(x) + " has no pixels");
}

/// Converts a float to a pixel: bytes are rounded to the nearest and clipped.
template <pixel T>
T stored(float value) {
    if constexpr (std::is_same_v<T, float>)
        return value;
    else {
        const float up = value + 0.5f;
        return up >= 255 ? std::uint8_t{255} : up > 0 ? static_cast<std::uint8_t>(up) : std::uint8_t{0}; // NaN: 0
    }
}

/// The maximum value of a pixel, which corresponds to 1 for floats.
template <pixel T>
inline constexpr float full = std::is_same_v<std::remove_const_t<T>, float> ? 1.0f : 255.0f;

} // namespace detail

/// Copies the pixels into an image of its own.
template <image_like I>
image<pixel_of<I>> copy(const I& x) {
    const auto from = view_of(x);
    image<pixel_of<I>> to(from.height, from.width, from.channels);
    for (std::int64_t y = 0; y < from.height; ++y)
        std::memcpy(to.view().row(y), from.row(y), static_cast<std::size_t>(from.row_size()) * sizeof(pixel_of<I>));
    return to;
}

/// Copies an image into existing memory, such as a batch's slot. Throws shape_error if extents
/// differ.
template <image_like I>
void copy_into(const I& x, image_view<pixel_of<I>> to) {
    const auto from = view_of(x);
    detail::check_same_extents("copy_into", from, to);
    for (std::int64_t y = 0; y < from.height; ++y)
        std::memcpy(to.row(y), from.row(y), static_cast<std::size_t>(from.row_size()) * sizeof(pixel_of<I>));
}

/// Converts bytes to floats in [0, 1]: value / 255.
template <image_like I>
    requires std::is_same_v<pixel_of<I>, std::uint8_t>
TG_VECTORISES void to_float_into(const I& x, image_view<float> to) {
    const auto from = view_of(x);
    detail::check_same_extents("to_float", from, to);
    constexpr float unit = 1.0f / 255.0f;
    for (std::int64_t y = 0; y < from.height; ++y) {
        const std::uint8_t* const row = from.row(y);
        float* const out = to.row(y);
        const std::int64_t size = from.row_size();
        TG_SIMD
        for (std::int64_t i = 0; i < size; ++i) out[i] = static_cast<float>(row[i]) * unit;
    }
}
/// Bytes as floats, 255 becoming 1.
template <image_like I>
    requires std::is_same_v<pixel_of<I>, std::uint8_t> image<float> to_float(const I& x) {
        const auto from = view_of(x);
        image<float> to(from.height, from.width, from.channels);
        to_float_into(from, to.view());
        return to;
    }

/// Converts floats in [0, 1] to bytes, rounded to the nearest and clipped.
template <image_like I>
    requires std::is_same_v < pixel_of<I>,
float > image<std::uint8_t> to_bytes(const I& x) {
    const auto from = view_of(x);
    image<std::uint8_t> to(from.height, from.width, from.channels);
    for (std::int64_t y = 0; y < from.height; ++y)
        for (std::int64_t i = 0; i < from.row_size(); ++i)
            to.view().row(y)[i] = detail::stored<std::uint8_t>(from.row(y)[i] * 255);
    return to;
}

} // namespace tapegraph::data::images
