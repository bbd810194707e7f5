#pragma once

#include <tapegraph/core/fill_mode.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/images/image.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

/// Rotates, shifts, zooms and shears images, with the conventions of the layers random_rotation,
/// random_translation and random_zoom (nn/layers/affine_augmentation.hpp).

namespace tapegraph::data::images {

/// What pixels get whose place lies outside of the image.
struct affine_options {
    tapegraph::fill_mode fill_mode = fill_mode::reflect;
    double fill_value = 0; ///< for `constant`
    bool nearest = false;  ///< take the nearest pixel; otherwise bilinear between four
};

/// Source positions of the result's pixels: with (y, x) relative to the image's centre, row r[0] y
/// + r[1] x + r[2] and column c[0] y + c[1] x + c[2] relative to the centre.
struct affine_places {
    std::array<double, 3> r{1, 0, 0}, c{0, 1, 0};

    /// Applies `first`, then this, with one sampling instead of two.
    affine_places after(const affine_places& first) const {
        const auto row = [&](const std::array<double, 3>& of) {
            return std::array<double, 3>{of[0] * r[0] + of[1] * c[0], of[0] * r[1] + of[1] * c[1],
                                         of[0] * r[2] + of[1] * c[2] + of[2]};
        };
        return {row(first.r), row(first.c)};
    }
};

/// A rotation by a fraction of a full turn, counter-clockwise.
inline affine_places rotation(double turn) {
    const double angle = 2 * std::numbers::pi * turn, cosine = std::cos(angle), sine = std::sin(angle);
    return {{cosine, sine, 0}, {-sine, cosine, 0}};
}
/// A shift by this many pixels down and to the right.
inline affine_places translation(double down, double right) { return {{1, 0, -down}, {0, 1, -right}}; }
/// Shows 1 + f times as much of the image: a positive factor makes objects smaller.
inline affine_places zooming(double height_factor, double width_factor) {
    return {{1 + height_factor, 0, 0}, {0, 1 + width_factor, 0}};
}
/// Shifts rows to the right by `along` times their distance below the centre.
inline affine_places shearing(double along) { return {{1, 0, 0}, {-along, 1, 0}}; }

namespace detail {

/// Maps a position along an axis of n to one inside it.
inline std::int64_t place_inside(std::int64_t place, std::int64_t n, fill_mode mode) {
    if (place >= 0 && place < n) return place;
    if (mode == fill_mode::wrap) return (place % n + n) % n;
    if (mode == fill_mode::reflect) {
        const std::int64_t folded = (place % (2 * n) + 2 * n) % (2 * n);
        return folded < n ? folded : 2 * n - 1 - folded;
    }
    return place < 0 ? 0 : n - 1;
}

} // namespace detail
// clang-format off
template <class = void> no_such_option_in<affine_options> affine(any_argument, any_argument, ...) TG_MISTAKE;
template <class = void> no_such_option_in<affine_options> rotate(any_argument, any_argument, ...) TG_MISTAKE;
template <class = void> no_such_option_in<affine_options> shift(any_argument, any_argument, any_argument, ...) TG_MISTAKE;
template <class = void> no_such_option_in<affine_options> zoom(any_argument, any_argument, any_argument, ...) TG_MISTAKE;
// clang-format on

/// Samples the image at the given positions. Throws argument_error if a position is not finite.
template <image_like I>
image<pixel_of<I>> affine(const I& x, const affine_places& places, const affine_options& options = {}) {
    using T = pixel_of<I>;
    const auto from = view_of(x);
    for (const double number : {places.r[0], places.r[1], places.r[2], places.c[0], places.c[1], places.c[2]})
        if (!(std::fabs(number) < 1e6)) throw argument_error("affine: numbers must be finite and below a million");
    image<T> to(from.height, from.width, from.channels);
    const bool constant = options.fill_mode == fill_mode::constant;
    const auto beyond = static_cast<float>(options.fill_value);
    const double middle_row = static_cast<double>(from.height - 1) / 2,
                 middle_column = static_cast<double>(from.width - 1) / 2;
    const auto value = [&](std::int64_t row, std::int64_t column, std::int64_t c) {
        if (constant && (row < 0 || row >= from.height || column < 0 || column >= from.width)) return beyond;
        return static_cast<float>(from.at(detail::place_inside(row, from.height, options.fill_mode),
                                          detail::place_inside(column, from.width, options.fill_mode), c));
    };
    for (std::int64_t i = 0; i < to.height; ++i)
        for (std::int64_t j = 0; j < to.width; ++j) {
            const double y = static_cast<double>(i) - middle_row, z = static_cast<double>(j) - middle_column;
            const double row = places.r[0] * y + places.r[1] * z + places.r[2] + middle_row;
            const double column = places.c[0] * y + places.c[1] * z + places.c[2] + middle_column;
            if (options.nearest) {
                const auto r = static_cast<std::int64_t>(std::floor(row + 0.5));
                const auto k = static_cast<std::int64_t>(std::floor(column + 0.5));
                for (std::int64_t c = 0; c < to.channels; ++c) to.at(i, j, c) = detail::stored<T>(value(r, k, c));
                continue;
            }
            const double top = std::floor(row), left = std::floor(column);
            const auto r = static_cast<std::int64_t>(top), k = static_cast<std::int64_t>(left);
            const auto below = static_cast<float>(row - top), right = static_cast<float>(column - left);
            for (std::int64_t c = 0; c < to.channels; ++c) {
                const float a = value(r, k, c), b = value(r, k + 1, c), d = value(r + 1, k, c),
                            e = value(r + 1, k + 1, c);
                const float upper = a + right * (b - a), lower = d + right * (e - d);
                to.at(i, j, c) = detail::stored<T>(upper + below * (lower - upper));
            }
        }
    return to;
}

/// Rotates the image about its centre by a fraction of a full turn, counter-clockwise.
template <image_like I>
image<pixel_of<I>> rotate(const I& x, double turn, const affine_options& options = {}) {
    return affine(x, rotation(turn), options);
}
/// Shifts the image down and to the right by this many pixels.
template <image_like I>
image<pixel_of<I>> shift(const I& x, double down, double right, const affine_options& options = {}) {
    return affine(x, translation(down, right), options);
}
/// Shows 1 + f times as much of the image, about its centre.
template <image_like I>
image<pixel_of<I>> zoom(const I& x, double height_factor, double width_factor, const affine_options& options = {}) {
    return affine(x, zooming(height_factor, width_factor), options);
}

/// The ranges of Keras's ImageDataGenerator: each number is drawn from [-f, f].
struct random_affine_options {
    double turn = 0;                          ///< fractions of a full turn
    double height_shift = 0, width_shift = 0; ///< fractions of the image's extents
    double height_zoom = 0, width_zoom = 0;   ///< see zooming; below 1
    bool keep_ratio = true;                   ///< one zoom for both axes, from height_zoom
    double shear = 0;                         ///< see shearing
    affine_options sampling{};
};

/// Applies all of them in one sampling. Throws argument_error for a range that is not finite or a
/// zoom of 1 or more.
template <image_like I>
image<pixel_of<I>> random_affine(const I& x, const random_affine_options& o, counter_random& random) {
    for (const double range : {o.turn, o.height_shift, o.width_shift, o.height_zoom, o.width_zoom, o.shear})
        if (!(range >= 0 && range < 1e6))
            throw argument_error("random_affine: a range must be finite and not negative");
    if (o.height_zoom >= 1 || o.width_zoom >= 1) throw argument_error("random_affine: a zoom must lie below 1");
    const auto draw = [&](double range) { return random.uniform(-range, range); };
    const double turn = draw(o.turn), down = draw(o.height_shift), right = draw(o.width_shift), shear = draw(o.shear);
    const double height = draw(o.height_zoom), width = o.keep_ratio ? height : draw(o.width_zoom);
    const auto from = view_of(x);
    return affine(x,
                  translation(down * static_cast<double>(from.height), right * static_cast<double>(from.width))
                      .after(rotation(turn))
                      .after(shearing(shear))
                      .after(zooming(height, width)),
                  o.sampling);
}

} // namespace tapegraph::data::images
