#pragma once

#include <tapegraph/core/fill_mode.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/augmentation.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>

#include <numbers>

/// Random translation, rotation and zoom of images [batch, height, width, channels] in training,
/// sampled bilinearly; otherwise they return their operand. Derivatives by the images exist. Not
/// part of tapegraph.hpp: programs without them do not compile them.

namespace tapegraph {

/// Fractions of the image's extents; positive ones move it down and to the right. Defaults are
/// those of Keras.
struct random_translation_options {
    factor_range height_factor{}, width_factor{};
    tapegraph::fill_mode fill_mode = fill_mode::reflect;
    double fill_value = 0;
};
/// Fractions of a full turn, counter-clockwise.
struct random_rotation_options {
    factor_range factor{};
    tapegraph::fill_mode fill_mode = fill_mode::reflect;
    double fill_value = 0;
};
/// A positive factor f shows 1 + f times as much of the image, so objects become smaller. Without
/// `keep_ratio` the width has draws of its own, from `width_factor`.
struct random_zoom_options {
    factor_range height_factor{};
    factor_range width_factor{};
    bool keep_ratio = true;
    tapegraph::fill_mode fill_mode = fill_mode::reflect;
    double fill_value = 0;
};

namespace detail {

/// Maps integer places along an axis of n elements, in float or double, to places inside it.
template <handle H>
constexpr H inside(const H& place, extent n, fill_mode mode, std::source_location where) {
    if (mode == fill_mode::wrap) return eval(place % extent_number(place, n), where);
    if (mode == fill_mode::reflect) {
        const H folded = eval(place % extent_number(place, n * extent(2)), where);
        return eval(minimum(folded, extent_number(folded, n * extent(2) - extent(1)) - folded), where);
    }
    return eval(clip(place, 0, extent_number(place, n - extent(1))), where);
}

/// Samples images [batch, height, width, channels] at places (rows, columns) [batch, height,
/// width], bilinearly between four pixels. Places are floating, numbers of pixels are integers, of
/// which a 16-bit type may lack every other one from 256 on, and float from 2^24 on.
template <handle H, handle P>
constexpr H sampled(const H& images, const P& rows, const P& columns, fill_mode mode, double beyond,
                    std::source_location where) {
    const shape dims = shape_of(images);
    shape flat = no_axes(dims), places = flat, weights = flat;
    for (const extent e : {dims[0], dims[1] * dims[2], dims[3]}) flat.push_back(e);
    for (const extent e : {dims[0], dims[1] * dims[2]}) places.push_back(e);
    for (const extent e : {dims[0], dims[1], dims[2], extent(1)}) weights.push_back(e);
    const H pixels = reshape(images, flat, where);
    const P top = eval(floor(rows), where), left = eval(floor(columns), where);
    const P below = reshape(rows - top, weights, where), right = reshape(columns - left, weights, where);
    const auto height = extent_number(top, dims[1]), width = extent_number(top, dims[2]);
    const auto pixel = [&](int down, int along) {
        const P row = eval(top + down, where), column = eval(left + along, where);
        const auto line = eval(cast<std::int32_t>(inside(row, dims[1], mode, where)), where);
        const auto place = cast<std::int32_t>(inside(column, dims[2], mode, where));
        const auto at = eval(line * extent_number(line, dims[2]) + place, where);
        const H found = reshape(gather(pixels, eval(reshape(at, places, where), where), 1, 1, where), dims, where);
        const P wide = as_float(found, where);
        if (mode != fill_mode::constant) return wide;
        // Products of 0 and 1: whether the place is inside the image.
        const P within =
            eval(tapegraph::where(row >= 0, 1, zeros_like(row)) * tapegraph::where(row < height, 1, zeros_like(row)) *
                     tapegraph::where(column >= 0, 1, zeros_like(row)) *
                     tapegraph::where(column < width, 1, zeros_like(row)),
                 where);
        return P(eval(tapegraph::where(reshape(within, weights, where) > 0, wide, beyond), where));
    };
    const P a = pixel(0, 0), b = pixel(0, 1), c = pixel(1, 0), d = pixel(1, 1);
    const P upper = eval(a + right * (b - a), where), lower = eval(c + right * (d - c), where);
    return rounded_like(images, eval(upper + below * (lower - upper), where), where);
}

/// Rows [1, height, 1] and columns [1, 1, width] of an image's pixels relative to its centre, in
/// the type of `like`.
template <handle H, handle P>
constexpr P from_centre(const H& images, const P& like, int axis, std::source_location where) {
    const extent n = shape_of(images)[axis];
    const P numbers = cast_like(like, numbers_along<double>(images, n, axis, 3, where), where);
    return eval((2 * numbers - extent_number(numbers, n - extent(1))) * 0.5, where);
}

/// Samples at the places that f(row, column from the centre) returns, a pair relative to the centre
/// in the type of `like`, the draws.
template <handle H, handle P, class F>
constexpr H moved(const H& images, const P& like, fill_mode mode, double beyond, std::source_location where,
                  const F& f) {
    const P row = from_centre(images, like, 1, where), column = from_centre(images, like, 2, where);
    const auto [rows, columns] = f(row, column);
    const shape dims = shape_of(images);
    shape places = no_axes(dims);
    for (int i = 0; i < 3; ++i) places.push_back(dims[i]);
    const P from_top = eval((2 * rows + extent_number(rows, dims[1] - extent(1))) * 0.5, where);
    const P from_left = eval((2 * columns + extent_number(columns, dims[2] - extent(1))) * 0.5, where);
    const P tops = eval(broadcast_to(from_top, places), where);
    const P lefts = eval(broadcast_to(from_left, places), where);
    return sampled(images, tops, lefts, mode, beyond, where);
}

/// A draw per record that broadcasts to rows and columns: [batch, 1, 1].
template <handle H>
constexpr auto place_draws(const H& images, const factor_range& range, std::source_location where) {
    return squeeze(record_draws(images, range, where), 3, where);
}

template <class H>
struct two_places {
    H rows, columns;
};

} // namespace detail

/// Moves each image by fractions of its extents drawn from the factors.
template <layer_scope Scope, tensor_like X>
constexpr auto random_translation(const Scope& scope, const X& x, const random_translation_options& o,
                                  std::source_location where = std::source_location::current()) {
    const char* const wrong = o.height_factor.sensible() && o.width_factor.sensible() ? nullptr : detail::factor_needed;
    return detail::image_layer(scope, "random_translation", x, wrong, where, [&](const auto& input) {
        const auto down = detail::place_draws(input, o.height_factor, where);
        using H = std::remove_cvref_t<decltype(down)>;
        const H right = detail::place_draws(input, o.width_factor, where);
        const shape dims = shape_of(input);
        return detail::moved(input, down, o.fill_mode, o.fill_value, where, [&](const H& row, const H& column) {
            return detail::two_places<H>{eval(row - down * extent_number(row, dims[1]), where),
                                         eval(column - right * extent_number(row, dims[2]), where)};
        });
    });
}
template <layer_scope Scope>
no_such_option_in<random_translation_options> random_translation(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing random_translation(any_argument, ...) TG_MISTAKE;

/// Rotates each image about its centre.
template <layer_scope Scope, tensor_like X>
constexpr auto random_rotation(const Scope& scope, const X& x, const random_rotation_options& o,
                               std::source_location where = std::source_location::current()) {
    const char* const wrong = o.factor.sensible() ? nullptr : detail::factor_needed;
    return detail::image_layer(scope, "random_rotation", x, wrong, where, [&](const auto& input) {
        const auto turn = eval(detail::place_draws(input, o.factor, where) * (2 * std::numbers::pi), where);
        using H = std::remove_cvref_t<decltype(turn)>;
        const H cosine = eval(cos(turn), where), sine = eval(sin(turn), where);
        return detail::moved(input, turn, o.fill_mode, o.fill_value, where, [&](const H& row, const H& column) {
            return detail::two_places<H>{eval(cosine * row + sine * column, where),
                                         eval(cosine * column - sine * row, where)};
        });
    });
}
template <layer_scope Scope>
no_such_option_in<random_rotation_options> random_rotation(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing random_rotation(any_argument, ...) TG_MISTAKE;

/// Zooms each image about its centre.
template <layer_scope Scope, tensor_like X>
constexpr auto random_zoom(const Scope& scope, const X& x, const random_zoom_options& o,
                           std::source_location where = std::source_location::current()) {
    const char* const wrong = !o.height_factor.sensible() || !o.width_factor.sensible() ? detail::factor_needed
                              : o.height_factor.low > -1 && o.width_factor.low > -1
                                  ? nullptr
                                  : "random_zoom: factors must lie above -1";
    return detail::image_layer(scope, "random_zoom", x, wrong, where, [&](const auto& input) {
        const auto height = detail::place_draws(input, o.height_factor, where);
        using H = std::remove_cvref_t<decltype(height)>;
        const H width = o.keep_ratio ? height : detail::place_draws(input, o.width_factor, where);
        return detail::moved(input, height, o.fill_mode, o.fill_value, where, [&](const H& row, const H& column) {
            return detail::two_places<H>{eval(row * (1 + height), where), eval(column * (1 + width), where)};
        });
    });
}
template <layer_scope Scope>
no_such_option_in<random_zoom_options> random_zoom(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing random_zoom(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
