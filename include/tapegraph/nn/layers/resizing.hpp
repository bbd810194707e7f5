#pragma once

#include <tapegraph/nn/layers/cast_like.hpp>
#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/elementwise/rounding.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/ops/refusal.hpp>

/// Keras's layers without variables that change extents: up_sampling, cropping, zero_padding,
/// repeat_vector. They are functions of a tensor alone. Not part of tapegraph.hpp: programs without
/// them do not compile them.

namespace tapegraph {

/// How elements between the old ones are found: a copy of the nearest, or weights linear in both directions.
enum class interpolation : std::uint8_t { nearest, bilinear };

/// The number of elements before and after an axis. One number sets both.
struct before_after {
    std::int64_t before = 0, after = 0;
    constexpr before_after() = default;
    constexpr before_after(std::int64_t both) : before(both), after(both) {}
    constexpr before_after(std::int64_t elements_before, std::int64_t elements_after)
        : before(elements_before), after(elements_after) {}
};

/// Options of `up_sampling2d`: each row and column becomes `size` of them.
struct up_sampling2d_options {
    height_width size = 2;
    tapegraph::interpolation interpolation = interpolation::nearest;
};
/// Options of `up_sampling1d`: each step becomes `size` of them.
struct up_sampling1d_options {
    std::int64_t size = 2;
};
/// `{.height = {1, 2}, .width = 3}`: a row at the top, two at the bottom, three columns on each side.
struct cropping2d_options {
    before_after height{}, width{};
};
/// Options of `zero_padding2d`: rows and columns of zeros before and after.
struct zero_padding2d_options {
    before_after height = 1, width = 1;
};

namespace detail {

struct resizing_texts {
    enum reason : std::int64_t { rank3, rank4, size, amount, rank2 };
    static constexpr const char* text(std::int64_t what) {
        switch (what) {
        case rank3: return "up_sampling1d, cropping1d, zero_padding1d: x must be [batch, time, features]";
        case rank4: return "up_sampling2d, cropping2d, zero_padding2d: x must be [batch, height, width, channels]";
        case size: return "up_sampling: size must be positive";
        case rank2: return "repeat_vector: x must be [batch, features]";
        default: return "cropping, zero_padding, repeat_vector: an amount is negative";
        }
    }
};

/// Makes an axis `factor` times as long. Element i of the result is at (i + 1/2) / factor - 1/2
/// among those of x, and is interpolated between its two neighbours there, as in TensorFlow and
/// PyTorch (align_corners = False).
template <handle H>
constexpr H linearly_longer(const H& x, int axis, std::int64_t factor, std::source_location where) {
    if (factor == 1) return x;
    const shape from = shape_of(x);
    const extent size = from[axis] * factor;
    const auto place_of = [&](const auto& number) {
        return eval(maximum((number + 0.5) / static_cast<double>(factor) - 0.5, 0), where);
    };
    const auto place = place_of(arange<double>(x, size, 0, 1, where));
    const auto below = eval(floor(place), where);
    const auto above = eval(minimum(below + 1, extent_number(below, from[axis] - extent(1))), where);
    const auto beside = place_of(numbers_along<double>(x, size, axis, from.rank(), where));
    const H share = cast_like(x, beside - floor(beside), where);
    const H first = gather(x, eval(cast<std::int32_t>(below), where), axis, 0, where);
    const H second = gather(x, eval(cast<std::int32_t>(above), where), axis, 0, where);
    return eval(first + share * (second - first), where);
}

} // namespace detail

/// x [batch, height, width, channels] to [batch, height size[0], width size[1], channels]: every pixel repeated, or bilinear.
template <tensor_like X>
constexpr auto up_sampling2d(const X& x, const up_sampling2d_options& o = {},
                             std::source_location where = std::source_location::current()) {
    using texts = detail::resizing_texts;
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 4) return detail::refuse<texts>(texts::rank4, where, input);
    if (o.size[0] < 1 || o.size[1] < 1) return detail::refuse<texts>(texts::size, where, input);
    if (o.interpolation == interpolation::bilinear)
        return detail::linearly_longer(detail::linearly_longer(input, 1, o.size[0], where), 2, o.size[1], where);
    return repeat(repeat(input, o.size[0], 1, where), o.size[1], 2, where);
}
no_such_option_in<up_sampling2d_options> up_sampling2d(any_argument, ...) TG_MISTAKE;

/// x [batch, time, features] to [batch, time size, features]: every step repeated.
template <tensor_like X>
constexpr auto up_sampling1d(const X& x, const up_sampling1d_options& o = {},
                             std::source_location where = std::source_location::current()) {
    using texts = detail::resizing_texts;
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 3) return detail::refuse<texts>(texts::rank3, where, input);
    if (o.size < 1) return detail::refuse<texts>(texts::size, where, input);
    return repeat(input, o.size, 1, where);
}
no_such_option_in<up_sampling1d_options> up_sampling1d(any_argument, ...) TG_MISTAKE;

/// x [batch, height, width, channels] without some rows and columns at its borders.
template <tensor_like X>
constexpr auto cropping2d(const X& x, const cropping2d_options& o,
                          std::source_location where = std::source_location::current()) {
    using texts = detail::resizing_texts;
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 4) return detail::refuse<texts>(texts::rank4, where, input);
    if (o.height.before < 0 || o.height.after < 0 || o.width.before < 0 || o.width.after < 0)
        return detail::refuse<texts>(texts::amount, where, input);
    const auto kept = [](const before_after& a) {
        return a.after == 0 ? range{a.before, all.end} : range{a.before, -a.after};
    };
    return slice(input, {all, kept(o.height), kept(o.width)}, where);
}
no_such_option_in<cropping2d_options> cropping2d(any_argument, ...) TG_MISTAKE;

/// x [batch, time, features] without some steps at its ends; Keras's default is {1, 1}.
template <tensor_like X>
constexpr auto cropping1d(const X& x, const before_after& amount,
                          std::source_location where = std::source_location::current()) {
    using texts = detail::resizing_texts;
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 3) return detail::refuse<texts>(texts::rank3, where, input);
    if (amount.before < 0 || amount.after < 0) return detail::refuse<texts>(texts::amount, where, input);
    return slice(input, {all, amount.after == 0 ? range{amount.before, all.end} : range{amount.before, -amount.after}},
                 where);
}

/// Pads x [batch, height, width, channels] with zeros.
template <tensor_like X>
constexpr auto zero_padding2d(const X& x, const zero_padding2d_options& o = {},
                              std::source_location where = std::source_location::current()) {
    using texts = detail::resizing_texts;
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 4) return detail::refuse<texts>(texts::rank4, where, input);
    return pad(input, {{0, 0}, {o.height.before, o.height.after}, {o.width.before, o.width.after}}, {}, where);
}
no_such_option_in<zero_padding2d_options> zero_padding2d(any_argument, ...) TG_MISTAKE;

/// Pads x [batch, time, features] with steps of zeros before and after.
template <tensor_like X>
constexpr auto zero_padding1d(const X& x, const before_after& amount = 1,
                              std::source_location where = std::source_location::current()) {
    using texts = detail::resizing_texts;
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 3) return detail::refuse<texts>(texts::rank3, where, input);
    return pad(input, {{0, 0}, {amount.before, amount.after}}, {}, where);
}

/// x [batch, features] to [batch, n, features], n times the same.
template <tensor_like X>
constexpr auto repeat_vector(const X& x, std::int64_t n, std::source_location where = std::source_location::current()) {
    using texts = detail::resizing_texts;
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 2) return detail::refuse<texts>(texts::rank2, where, input);
    if (n < 0) return detail::refuse<texts>(texts::amount, where, input);
    return repeat(expand_dims(input, 1, where), n, 1, where);
}

} // namespace tapegraph
