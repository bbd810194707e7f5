#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/cast_like.hpp>
#include <tapegraph/nn/layers/noise.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/rounding.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/movement/slice.hpp>

/// Layers that change images [batch, height, width, channels] at random in training, with draws of
/// its own for each record: random_flip, random_crop, random_brightness, random_contrast. Otherwise
/// they return the images (random_crop then takes the middle). affine_augmentation.hpp has those
/// that sample between pixels. Not part of tapegraph.hpp: programs without them do not compile
/// them.

namespace tapegraph {

/// The directions in which an image may be mirrored; horizontal exchanges left and right.
enum class flip_mode : std::uint8_t { horizontal_and_vertical, horizontal, vertical };

/// Options of `random_flip`.
struct random_flip_options {
    flip_mode mode = flip_mode::horizontal_and_vertical; ///< also Keras's default: each with probability 1/2
};
/// Options of `random_crop`.
struct random_crop_options {
    std::int64_t height = 1, width = 1; ///< of the result
};

/// The range from which a number is drawn uniformly. One number f means [-f, f].
struct factor_range {
    double low = 0, high = 0;
    constexpr factor_range() = default;
    constexpr factor_range(double factor) : low(-factor), high(factor) {}
    constexpr factor_range(double lowest, double highest) : low(lowest), high(highest) {}
    /// Whether the ends are finite and in order.
    constexpr bool sensible() const { return low <= high && low > -1e300 && high < 1e300; }
};
/// The range of the images' values. Keras's default is [0, 255]; this library's readers return
/// images in [0, 1].
struct value_range {
    double low = 0, high = 1;
};
/// Options of `random_brightness`: what is added, as a fraction of the range of values.
struct random_brightness_options {
    factor_range factor{};
    tapegraph::value_range value_range{};
};
/// Options of `random_contrast`: the distance from the mean of an image's channel is multiplied by 1 + factor.
struct random_contrast_options {
    factor_range factor{}; ///< above -1
    tapegraph::value_range value_range{};
};

namespace detail {

inline constexpr const char* image_needed = "augmentation: input must be [batch, height, width, channels]";
inline constexpr const char* factor_needed =
    "augmentation: a factor must be finite, its lower end not above the upper one";

/// A uniform number for each record, [batch, 1, 1, 1], in float if images have 16 bits, because
/// places are computed from them.
template <handle H>
constexpr auto record_draws(const H& images, const factor_range& range, std::source_location where) {
    shape dims = no_axes(shape_of(images));
    dims.push_back(shape_of(images)[0]);
    for (int i = 0; i < 3; ++i) dims.push_back(1);
    const auto drawn = random::detail::wide_uniform(images, dims, where);
    if (range.low == 0 && range.high == 1) return drawn;
    return eval(range.low + (range.high - range.low) * drawn, where); // the ends may be equal
}

template <class Scope, tensor_like X, class F>
constexpr auto image_layer(const Scope& scope, std::string_view type, const X& x, const char* refused,
                           std::source_location where, const F& f) {
    const char* const wrong = shape_of(x).rank() == 4 ? refused : image_needed;
    return noise_layer(scope, type, x, false, wrong, where, f);
}

/// Some rows (axis 1) or columns (axis 2) of each record, from a drawn place on; `least` is the
/// last place.
template <handle H>
constexpr H randomly_cropped(const H& images, int axis, std::int64_t count, std::int64_t last,
                             std::source_location where) {
    const auto drawn = record_draws(images, {0, 1}, where);
    shape column = no_axes(shape_of(images));
    column.push_back(shape_of(images)[0]);
    column.push_back(1);
    // Rounding may reach last + 1.
    const auto first =
        reshape(minimum(floor(drawn * static_cast<double>(last + 1)), static_cast<double>(last)), column, where);
    const auto places = eval(cast<std::int32_t>(first) + arange<std::int32_t>(images, count, 0, 1, where), where);
    return gather(images, places, axis, 1, where);
}

} // namespace detail

/// Mirrors images from left to right, from top to bottom, or both, each with probability 1/2.
template <layer_scope Scope, tensor_like X>
constexpr auto random_flip(const Scope& scope, const X& x, const random_flip_options& o = {},
                           std::source_location where = std::source_location::current()) {
    return detail::image_layer(scope, "random_flip", x, nullptr, where, [&](const auto& input) {
        auto images = input;
        if (o.mode != flip_mode::vertical) {
            const auto drawn = detail::record_draws(images, {0, 1}, where);
            images = eval(tapegraph::where(drawn < 0.5, reverse(images, 2, where), images), where);
        }
        if (o.mode != flip_mode::horizontal) {
            const auto drawn = detail::record_draws(images, {0, 1}, where);
            images = eval(tapegraph::where(drawn < 0.5, reverse(images, 1, where), images), where);
        }
        return images;
    });
}
template <layer_scope Scope>
no_such_option_in<random_flip_options> random_flip(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing random_flip(any_argument, ...) TG_MISTAKE;

/// A part of [height, width] of each image; outside of training the middle one. The image's extents
/// must be known and not smaller.
template <layer_scope Scope, tensor_like X>
constexpr auto random_crop(const Scope& scope, const X& x, const random_crop_options& o,
                           std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input);
    const bool sensible =
        scope.require(dims.rank() == 4, detail::image_needed) &&
        scope.require(dims[1].known() && dims[2].known() && o.height > 0 && o.width > 0 && o.height <= dims[1].value &&
                          o.width <= dims[2].value,
                      "random_crop: height and width must be positive and not exceed the image's, which must be known");
    if (!sensible) return scope.leave("random_crop", mark, input);
    const std::int64_t below = dims[1].value - o.height, right = dims[2].value - o.width;
    if (!scope.training()) {
        const auto middle =
            slice(input, {all, {below / 2, below / 2 + o.height}, {right / 2, right / 2 + o.width}}, where);
        return scope.leave("random_crop", mark, middle);
    }
    return scope.leave("random_crop", mark, scope.with_draws([&] {
        const auto rows = detail::randomly_cropped(input, 1, o.height, below, where);
        return detail::randomly_cropped(rows, 2, o.width, right, where);
    }));
}
template <layer_scope Scope>
no_such_option_in<random_crop_options> random_crop(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing random_crop(any_argument, ...) TG_MISTAKE;

/// Adds a number from `factor` times the extent of `value_range` to each image and clips it to the range.
template <layer_scope Scope, tensor_like X>
constexpr auto random_brightness(const Scope& scope, const X& x, const random_brightness_options& o,
                                 std::source_location where = std::source_location::current()) {
    const char* const wrong = o.factor.sensible() ? nullptr : detail::factor_needed;
    return detail::image_layer(scope, "random_brightness", x, wrong, where, [&](const auto& input) {
        const auto drawn = detail::record_draws(input, o.factor, where);
        const double extent = o.value_range.high - o.value_range.low;
        const auto images = detail::as_float(input, where);
        const auto brighter = clip(images + drawn * extent, o.value_range.low, o.value_range.high);
        return detail::rounded_like(input, eval(brighter, where), where);
    });
}
template <layer_scope Scope>
no_such_option_in<random_brightness_options> random_brightness(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing random_brightness(any_argument, ...) TG_MISTAKE;

/// (x - mean) (1 + f) + mean, clipped to `value_range`, with f from `factor` and the mean of each channel of each image.
template <layer_scope Scope, tensor_like X>
constexpr auto random_contrast(const Scope& scope, const X& x, const random_contrast_options& o,
                               std::source_location where = std::source_location::current()) {
    const char* const wrong = !o.factor.sensible() ? detail::factor_needed
                              : o.factor.low >= -1 ? nullptr
                                                   : "random_contrast: the factor must not be below -1";
    return detail::image_layer(scope, "random_contrast", x, wrong, where, [&](const auto& input) {
        const auto drawn = detail::record_draws(input, o.factor, where);
        const auto images = detail::as_float(input, where);
        const auto middle = eval(mean(images, {1, 2}, {.keepdims = true}, where), where);
        const auto stretched = (images - middle) * (1 + drawn) + middle;
        return detail::rounded_like(input, eval(clip(stretched, o.value_range.low, o.value_range.high), where), where);
    });
}
template <layer_scope Scope>
no_such_option_in<random_contrast_options> random_contrast(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing random_contrast(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
