#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/images/image.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Mix-up and CutMix over a batch, in place: record i takes a part of the preceding record (the
/// first of the last), which after shuffling is a random one. Labels are one-hot or probabilities
/// and are mixed in the same proportions.

namespace tapegraph::data::images {

namespace detail {

/// The logarithm of a number from Gamma(shape, 1). G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000.
inline double log_gamma_draw(double shape, counter_random& random) {
    const double larger = shape < 1 ? shape + 1 : shape;
    const double d = larger - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    double drawn = 0;
    for (;;) {
        const double x = random.normal(), v = std::pow(1 + c * x, 3);
        if (v <= 0) continue;
        if (std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) {
            drawn = std::log(d * v);
            break;
        }
    }
    return shape < 1 ? drawn + std::log(1 - random.uniform()) / shape : drawn;
}

/// A number from Beta(alpha, alpha).
inline double beta_draw(double alpha, counter_random& random) {
    const double a = log_gamma_draw(alpha, random), b = log_gamma_draw(alpha, random);
    return 1 / (1 + std::exp(b - a));
}

inline void check_mixing(const char* operation, std::size_t values, std::size_t labels, std::int64_t count,
                         double alpha) {
    if (!(alpha > 0 && alpha < 1e6))
        throw argument_error(std::string(operation) + ": alpha must be positive and finite, got " + number_text(alpha));
    const auto records = static_cast<std::size_t>(count);
    if (count < 0 || (count == 0 ? values + labels != 0 : values % records != 0 || labels % records != 0))
        throw shape_error(std::string(operation) + ": " + std::to_string(values) + " values and " +
                          std::to_string(labels) + " of labels are not " + std::to_string(count) + " records");
}

/// own * keep + other * (1 - keep)
inline void blend(std::span<float> own, std::span<const float> other, float keep) {
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = own[i] * keep + other[i] * (1 - keep);
}

/// Calls mix(own, other, label, other label, record) for each record from the last to the first;
/// the original last one is kept for the first.
template <class Mix>
void with_neighbours(std::span<float> values, std::span<float> labels, std::int64_t count, const Mix& mix) {
    if (count == 0) return;
    const std::size_t size = values.size() / static_cast<std::size_t>(count),
                      classes = labels.size() / static_cast<std::size_t>(count);
    const auto last = static_cast<std::size_t>(count - 1);
    const std::vector<float> kept(values.begin() + static_cast<std::ptrdiff_t>(last * size), values.end());
    const std::vector<float> kept_label(labels.begin() + static_cast<std::ptrdiff_t>(last * classes), labels.end());
    for (std::size_t i = last + 1; i-- > 0;) {
        const std::span<const float> other =
            i > 0 ? std::span<const float>(values.subspan((i - 1) * size, size)) : kept;
        const std::span<const float> other_label =
            i > 0 ? std::span<const float>(labels.subspan((i - 1) * classes, classes)) : kept_label;
        mix(values.subspan(i * size, size), other, labels.subspan(i * classes, classes), other_label, i);
    }
}

} // namespace detail

/// Mix-up (H. Zhang et al., 2018): each record becomes s of itself and 1 - s of its neighbour, as
/// does its label, with s from Beta(alpha, alpha). `values` is [count, ...], `labels` [count,
/// classes] or empty. Returns s of each record. Throws argument_error for an alpha that is not
/// positive, shape_error if the sizes are not multiples of the number of records.
inline std::vector<float> mix_up(std::span<float> values, std::span<float> labels, std::int64_t count, double alpha,
                                 counter_random& random) {
    detail::check_mixing("mix_up", values.size(), labels.size(), count, alpha);
    std::vector<float> shares(static_cast<std::size_t>(count));
    for (float& share : shares) share = static_cast<float>(detail::beta_draw(alpha, random));
    detail::with_neighbours(values, labels, count,
                            [&](auto own, auto other, auto label, auto other_label, std::size_t i) {
                                detail::blend(own, other, shares[i]);
                                detail::blend(label, other_label, shares[i]);
                            });
    return shares;
}

/// CutMix (S. Yun et al., 2019): a rectangle of each image comes from its neighbour. Its area is 1
/// - s of the image with s from Beta(alpha, alpha); it is placed anywhere and cut off at the
/// borders; labels are mixed by the areas. `values` is [count, height, width, channels]. Returns
/// the remaining fraction of each image. Throws like mix_up.
inline std::vector<float> cut_mix(std::span<float> values, std::span<float> labels, std::int64_t count,
                                  std::int64_t height, std::int64_t width, double alpha, counter_random& random) {
    detail::check_mixing("cut_mix", values.size(), labels.size(), count, alpha);
    const std::int64_t area = height * width;
    const auto size = static_cast<std::int64_t>(count > 0 ? values.size() / static_cast<std::size_t>(count) : 0);
    if (height < 1 || width < 1 || size % area != 0)
        throw shape_error("cut_mix: records of " + std::to_string(size) + " values are not images of " +
                          std::to_string(height) + "x" + std::to_string(width));
    const std::int64_t row = size / height, channels = size / area;
    std::vector<float> shares(static_cast<std::size_t>(count));
    std::vector<box> boxes(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const double side = std::sqrt(1 - detail::beta_draw(alpha, random));
        const auto part = [&](std::int64_t n, std::int64_t& first) {
            const auto length = static_cast<std::int64_t>(static_cast<double>(n) * side);
            const auto middle = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
            first = std::clamp<std::int64_t>(middle - length / 2, 0, n);
            return std::clamp<std::int64_t>(middle - length / 2 + length, 0, n) - first;
        };
        boxes[i].height = part(height, boxes[i].top);
        boxes[i].width = part(width, boxes[i].left);
        shares[i] = 1 - static_cast<float>(boxes[i].height * boxes[i].width) / static_cast<float>(area);
    }
    detail::with_neighbours(values, labels, count,
                            [&](auto own, auto other, auto label, auto other_label, std::size_t i) {
                                const box& b = boxes[i];
                                for (std::int64_t y = b.top; y < b.top + b.height; ++y)
                                    std::copy_n(other.data() + y * row + b.left * channels, b.width * channels,
                                                own.data() + y * row + b.left * channels);
                                detail::blend(label, other_label, shares[i]);
                            });
    return shares;
}

} // namespace tapegraph::data::images
