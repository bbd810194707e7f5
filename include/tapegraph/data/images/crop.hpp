#pragma once

#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/images/resize.hpp>

#include <cmath>
#include <cstdint>
#include <string>

/// Parts of images. A part is a view: nothing is copied until it is resized, normalised or copied
/// by `copy`.

namespace tapegraph::data::images {

/// A view of a rectangle of an image. Throws shape_error if it is not inside.
template <image_like I>
auto crop(const I& x, const box& part) {
    auto from = view_of(x);
    if (part.top < 0 || part.left < 0 || part.height < 0 || part.width < 0 || part.height > from.height - part.top ||
        part.width > from.width - part.left)
        throw shape_error("crop: rows [" + std::to_string(part.top) + ", " + std::to_string(part.top + part.height) +
                          "), columns [" + std::to_string(part.left) + ", " + std::to_string(part.left + part.width) +
                          ") do not lie in an image " + detail::extents(from));
    from.pixels += part.top * from.row_stride + part.left * from.channels;
    from.height = part.height;
    from.width = part.width;
    return from;
}

namespace detail {

inline void check_part(const char* operation, std::int64_t height, std::int64_t width, std::int64_t of_height,
                       std::int64_t of_width) {
    if (height < 0 || width < 0 || height > of_height || width > of_width)
        throw shape_error(std::string(operation) + ": " + std::to_string(height) + "x" + std::to_string(width) +
                          " (height x width) of an image of " + std::to_string(of_height) + "x" +
                          std::to_string(of_width));
}

} // namespace detail

/// The rectangle in the middle; an odd remainder leaves one row or column less before it, as in
/// TensorFlow and Keras. Throws shape_error if the image is smaller.
inline box center_box(std::int64_t of_height, std::int64_t of_width, std::int64_t height, std::int64_t width) {
    detail::check_part("center_crop", height, width, of_height, of_width);
    return {(of_height - height) / 2, (of_width - width) / 2, height, width};
}
/// The middle height x width pixels; shape_error if the image is smaller.
template <image_like I>
auto center_crop(const I& x, std::int64_t height, std::int64_t width) {
    return crop(x, center_box(view_of(x).height, view_of(x).width, height, width));
}

/// A rectangle of this size at a uniformly random position. Throws shape_error if the image is
/// smaller.
inline box random_box(std::int64_t of_height, std::int64_t of_width, std::int64_t height, std::int64_t width,
                      counter_random& random) {
    detail::check_part("random_crop", height, width, of_height, of_width);
    const auto top = random.below(static_cast<std::uint64_t>(of_height - height) + 1);
    const auto left = random.below(static_cast<std::uint64_t>(of_width - width) + 1);
    return {static_cast<std::int64_t>(top), static_cast<std::int64_t>(left), height, width};
}
/// height x width pixels from a place drawn uniformly; shape_error if the image is smaller.
template <image_like I>
auto random_crop(const I& x, std::int64_t height, std::int64_t width, counter_random& random) {
    return crop(x, random_box(view_of(x).height, view_of(x).width, height, width, random));
}

/// Options of torchvision's RandomResizedCrop with its defaults: the crop of Inception.
struct random_resized_crop_options {
    double least_scale = 0.08, greatest_scale = 1;          ///< fractions of the image's area
    double least_ratio = 3.0 / 4, greatest_ratio = 4.0 / 3; ///< width / height, drawn uniformly in its logarithm
    resize_options resize{resize_method::bilinear, true};
};

/// Draws the rectangle. Area and ratio are drawn up to ten times until such a rectangle fits; then
/// it falls back to the middle, with the image's own ratio or the nearest one allowed. Throws
/// argument_error for invalid ranges.
inline box random_resized_box(std::int64_t height, std::int64_t width, counter_random& random,
                              const random_resized_crop_options& options = {}) {
    if (!(options.least_scale > 0 && options.least_scale <= options.greatest_scale && options.greatest_scale < 1e9 &&
          options.least_ratio > 0 && options.least_ratio <= options.greatest_ratio && options.greatest_ratio < 1e9))
        throw argument_error(
            "random_resized_crop: scale and ratio must be positive, each lower end not above the upper one");
    if (height < 1 || width < 1)
        throw shape_error("random_resized_crop: an image of " + std::to_string(height) + "x" + std::to_string(width) +
                          " has no pixels");
    const double rows = static_cast<double>(height), columns = static_cast<double>(width);
    const double least = std::log(options.least_ratio), greatest = std::log(options.greatest_ratio);
    for (int tries = 0; tries < 10; ++tries) {
        const double area = rows * columns * random.uniform(options.least_scale, options.greatest_scale);
        const double ratio = std::exp(random.uniform(least, greatest));
        const double across = std::round(std::sqrt(area * ratio)), down = std::round(std::sqrt(area / ratio));
        if (across < 1 || down < 1 || across > columns || down > rows) continue;
        return random_box(height, width, static_cast<std::int64_t>(down), static_cast<std::int64_t>(across), random);
    }
    double down = rows, across = columns;
    if (columns / rows < options.least_ratio)
        down = std::round(columns / options.least_ratio);
    else if (columns / rows > options.greatest_ratio)
        across = std::round(rows * options.greatest_ratio);
    const auto valid = [](double n, double limit) {
        return static_cast<std::int64_t>(n < 1 ? 1 : n > limit ? limit : n);
    };
    return center_box(height, width, valid(down, rows), valid(across, columns));
}

/// A random part of the image, resized to height x width.
template <image_like I>
image<pixel_of<I>> random_resized_crop(const I& x, std::int64_t height, std::int64_t width, counter_random& random,
                                       const random_resized_crop_options& options = {}) {
    const auto part = crop(x, random_resized_box(view_of(x).height, view_of(x).width, random, options));
    return resize(part, height, width, options.resize);
}

/// Crops or pads the image with zeros around its middle, each axis separately, to height x width:
/// tf.image.resize_with_crop_or_pad.
template <image_like I>
image<pixel_of<I>> crop_or_pad(const I& x, std::int64_t height, std::int64_t width) {
    const auto from = view_of(x);
    image<pixel_of<I>> to(height, width, from.channels);
    const auto smaller = [](std::int64_t a, std::int64_t b) { return a < b ? a : b; };
    const std::int64_t rows = smaller(height, from.height), columns = smaller(width, from.width);
    auto inside = to.view();
    inside.pixels += (height - rows) / 2 * inside.row_stride + (width - columns) / 2 * from.channels;
    inside.height = rows;
    inside.width = columns;
    copy_into(center_crop(from, rows, columns), inside);
    return to;
}

/// Resizes the image to fit into height x width without changing its aspect ratio, and pads it with
/// zeros: tf.image.resize_with_pad.
template <image_like I>
image<pixel_of<I>> resize_with_pad(const I& x, std::int64_t height, std::int64_t width,
                                   const resize_options& options = {}) {
    const auto from = view_of(x);
    detail::check_pixels("resize_with_pad", from);
    const double ratio = std::fmax(static_cast<double>(from.width) / static_cast<double>(width),
                                   static_cast<double>(from.height) / static_cast<double>(height));
    const auto part = [&](std::int64_t n, std::int64_t limit) {
        const auto size = static_cast<std::int64_t>(std::floor(static_cast<double>(n) / ratio + 1e-9));
        return size < 1 ? std::int64_t{1} : size > limit ? limit : size;
    };
    return crop_or_pad(resize(from, part(from.height, height), part(from.width, width), options), height, width);
}

} // namespace tapegraph::data::images
