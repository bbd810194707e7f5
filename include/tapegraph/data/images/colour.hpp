#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/images/image.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Colour adjustments with the semantics of tf.image. Each function takes an image by value (move
/// it in to avoid a copy) and computes in floats. Bytes are rounded to the nearest and clipped to
/// [0, 255]; floats are not clipped, for which there is `clip_colours`.

namespace tapegraph::data::images {

namespace detail {

/// Applies f to every value, as floats in which 1 is the maximum.
template <pixel T, class F>
void each_value(image<T>& x, const F& f) {
    constexpr float unit = 1 / full<T>;
    for (T& value : x.pixels) value = stored<T>(f(static_cast<float>(value) * unit) * full<T>);
}

template <pixel T>
void check_rgb(const char* operation, const image<T>& x) {
    if (x.channels != 3)
        throw shape_error(std::string(operation) + ": an image " + extents(x) + " is not red, green and blue");
}

using colour = std::array<float, 3>;

/// Applies f to every pixel, three floats in which 1 is the maximum.
template <pixel T, class F>
void each_colour(image<T>& x, const F& f) {
    constexpr float unit = 1 / full<T>;
    for (std::size_t i = 0; i + 2 < x.pixels.size(); i += 3) {
        const colour after =
            f(colour{static_cast<float>(x.pixels[i]) * unit, static_cast<float>(x.pixels[i + 1]) * unit,
                     static_cast<float>(x.pixels[i + 2]) * unit});
        for (std::size_t c = 0; c < 3; ++c) x.pixels[i + c] = stored<T>(after[c] * full<T>);
    }
}

/// Hue in [0, 1), saturation and value: A. R. Smith, "Color gamut transform pairs", 1978.
inline colour to_hsv(const colour& rgb) {
    const auto [r, g, b] = rgb;
    const float high = std::max({r, g, b}), low = std::min({r, g, b}), range = high - low;
    float hue = 0;
    if (range > 0) {
        if (high == r)
            hue = (g - b) / range;
        else if (high == g)
            hue = 2 + (b - r) / range;
        else
            hue = 4 + (r - g) / range;
        hue /= 6;
        if (hue < 0) hue += 1;
    }
    return {hue, high > 0 ? range / high : 0, high};
}

inline colour to_rgb(const colour& hsv) {
    // No bindings, because clang cannot capture them under OpenMP.
    const float hue = hsv[0], saturation = hsv[1], value = hsv[2];
    const auto channel = [&](float shift) {
        const float place = std::fmod(hue * 6 + shift, 6.0f);
        return value - value * saturation * std::clamp(std::min(place, 4 - place), 0.0f, 1.0f);
    };
    return {channel(5), channel(3), channel(1)};
}

inline void check_factor(const char* operation, double low, double high) {
    if (!(low <= high && low >= 0 && high < 1e6))
        throw argument_error(std::string(operation) +
                             ": a factor must be finite and not negative, the lower end not above the "
                             "upper one, got " +
                             number_text(low) + " and " + number_text(high));
}

} // namespace detail

/// x + delta, with delta on the scale of [0, 1].
template <pixel T>
image<T> adjust_brightness(image<T> x, double delta) {
    const auto by = static_cast<float>(delta);
    detail::each_value(x, [by](float v) { return v + by; });
    return x;
}

/// (x - mean) factor + mean, with the mean of each channel.
template <pixel T>
image<T> adjust_contrast(image<T> x, double factor) {
    const auto channels = static_cast<std::size_t>(x.channels);
    if (x.pixels.empty()) return x;
    std::vector<double> mean(channels);
    for (std::size_t i = 0; i < x.pixels.size(); i += channels)
        for (std::size_t c = 0; c < channels; ++c) mean[c] += static_cast<double>(x.pixels[i + c]);
    for (double& m : mean) m /= static_cast<double>(x.pixels.size() / channels);
    for (std::size_t i = 0; i < x.pixels.size(); i += channels)
        for (std::size_t c = 0; c < channels; ++c)
            x.pixels[i + c] = detail::stored<T>(
                static_cast<float>((static_cast<double>(x.pixels[i + c]) - mean[c]) * factor + mean[c]));
    return x;
}

/// Multiplies the saturation by the factor, up to 1. Throws shape_error for other than three
/// channels, argument_error for a negative factor.
template <pixel T>
image<T> adjust_saturation(image<T> x, double factor) {
    detail::check_rgb("adjust_saturation", x);
    detail::check_factor("adjust_saturation", factor, factor);
    const auto by = static_cast<float>(factor);
    detail::each_colour(x, [by](const detail::colour& rgb) {
        const auto hsv = detail::to_hsv(rgb);
        return detail::to_rgb({hsv[0], std::min(hsv[1] * by, 1.0f), hsv[2]});
    });
    return x;
}

/// Rotates the hue by a fraction of the circle. Throws shape_error for other than three channels.
template <pixel T>
image<T> adjust_hue(image<T> x, double delta) {
    detail::check_rgb("adjust_hue", x);
    const auto by = static_cast<float>(delta - std::floor(delta));
    detail::each_colour(x, [by](const detail::colour& rgb) {
        const auto hsv = detail::to_hsv(rgb);
        const float hue = hsv[0] + by;
        return detail::to_rgb({hue >= 1 ? hue - 1 : hue, hsv[1], hsv[2]});
    });
    return x;
}

/// full * (x / full)^gamma * gain: tf.image.adjust_gamma.
template <pixel T>
image<T> adjust_gamma(image<T> x, double gamma, double gain = 1) {
    if (!(gamma >= 0)) throw argument_error("adjust_gamma: gamma must not be negative, got " + number_text(gamma));
    detail::each_value(
        x, [&](float v) { return static_cast<float>(gain * std::pow(static_cast<double>(v < 0 ? 0 : v), gamma)); });
    return x;
}

/// Inverts each value to full - value.
template <pixel T>
image<T> invert(image<T> x) {
    for (T& value : x.pixels) value = static_cast<T>(detail::full<T> - static_cast<float>(value));
    return x;
}

/// Clips values to [0, full] (1 for floats).
template <pixel T>
image<T> clip_colours(image<T> x) {
    for (T& value : x.pixels) value = std::clamp(value, T(0), static_cast<T>(detail::full<T>));
    return x;
}

/// One channel: 0.2989 red + 0.5870 green + 0.1140 blue (ITU-R BT.601). Throws shape_error for other than three channels.
template <pixel T>
image<T> rgb_to_grayscale(const image<T>& x) {
    detail::check_rgb("rgb_to_grayscale", x);
    image<T> grey(x.height, x.width, 1);
    for (std::size_t i = 0; i < grey.pixels.size(); ++i)
        grey.pixels[i] = detail::stored<T>(0.2989f * static_cast<float>(x.pixels[3 * i]) +
                                           0.5870f * static_cast<float>(x.pixels[3 * i + 1]) +
                                           0.1140f * static_cast<float>(x.pixels[3 * i + 2]));
    return grey;
}

/// Converts a grey image to three equal channels. Throws shape_error for other than one channel.
template <pixel T>
image<T> grayscale_to_rgb(const image<T>& x) {
    if (x.channels != 1) throw shape_error("grayscale_to_rgb: an image " + detail::extents(x) + " is not grey");
    image<T> rgb(x.height, x.width, 3);
    for (std::size_t i = 0; i < x.pixels.size(); ++i)
        for (std::size_t c = 0; c < 3; ++c) rgb.pixels[3 * i + c] = x.pixels[i];
    return rgb;
}

/// The ranges of the random adjustments. Empty ranges also draw, so that one range does not change
/// the others' numbers.
struct colour_jitter_options {
    double brightness = 0;                            ///< delta in [-b, b]
    double least_contrast = 1, greatest_contrast = 1; ///< factor
    double least_saturation = 1, greatest_saturation = 1;
    double hue = 0; ///< delta in [-h, h], at most 1/2
};

/// Adjusts brightness, contrast, saturation and hue in this order, each by a number drawn for it.
/// Throws argument_error for impossible ranges, shape_error if saturation or hue change an image
/// that does not have three channels.
template <pixel T>
image<T> random_colour_jitter(image<T> x, const colour_jitter_options& o, counter_random& random) {
    detail::check_factor("random_colour_jitter", o.brightness, o.brightness);
    detail::check_factor("random_colour_jitter", o.least_contrast, o.greatest_contrast);
    detail::check_factor("random_colour_jitter", o.least_saturation, o.greatest_saturation);
    if (!(o.hue >= 0 && o.hue <= 0.5))
        throw argument_error("random_colour_jitter: hue must lie in [0, 0.5], got " + number_text(o.hue));
    const double brightness = random.uniform(-o.brightness, o.brightness);
    const double contrast = random.uniform(o.least_contrast, o.greatest_contrast);
    const double saturation = random.uniform(o.least_saturation, o.greatest_saturation);
    const double hue = random.uniform(-o.hue, o.hue);
    if (o.brightness > 0) x = adjust_brightness(std::move(x), brightness);
    if (contrast != 1) x = adjust_contrast(std::move(x), contrast);
    if (saturation != 1) x = adjust_saturation(std::move(x), saturation);
    if (o.hue > 0) x = adjust_hue(std::move(x), hue);
    return x;
}
/// adjust_brightness by a delta from [-greatest, greatest].
template <pixel T>
image<T> random_brightness(image<T> x, double greatest, counter_random& random) {
    return adjust_brightness(std::move(x), random.uniform(-greatest, greatest));
}
/// adjust_contrast by a factor from [least, greatest].
template <pixel T>
image<T> random_contrast(image<T> x, double least, double greatest, counter_random& random) {
    return adjust_contrast(std::move(x), random.uniform(least, greatest));
}
/// adjust_saturation by a factor from [least, greatest].
template <pixel T>
image<T> random_saturation(image<T> x, double least, double greatest, counter_random& random) {
    return adjust_saturation(std::move(x), random.uniform(least, greatest));
}
/// adjust_hue by a delta from [-greatest, greatest].
template <pixel T>
image<T> random_hue(image<T> x, double greatest, counter_random& random) {
    return adjust_hue(std::move(x), random.uniform(-greatest, greatest));
}

} // namespace tapegraph::data::images
