#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/images/crop.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Normalises an image by its own statistics or by a data set's; also the last step of a pipeline
/// in one: resizes, mirrors and normalises a part of an image straight into the batch.

namespace tapegraph::data::images {

/// Mean and standard deviation of each channel, on the scale of [0, 1].
struct channel_statistics {
    std::vector<float> mean, deviation;
};

/// Statistics of ImageNet's training images, which most pretrained models expect.
inline channel_statistics imagenet_statistics() { return {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}; }

namespace detail {

/// v * factor + offset is (v / full - mean) / deviation. Without statistics it is v / full.
template <class From>
void normalization_of(const channel_statistics& statistics, std::int64_t channels, std::vector<float>& factor,
                      std::vector<float>& offset) {
    const auto count = static_cast<std::size_t>(channels);
    if (statistics.mean.size() != statistics.deviation.size() ||
        (!statistics.mean.empty() && statistics.mean.size() != count))
        throw shape_error("normalize: " + std::to_string(statistics.mean.size()) + " means and " +
                          std::to_string(statistics.deviation.size()) + " deviations for " + std::to_string(channels) +
                          " channels");
    factor.assign(count, 1 / full<From>);
    offset.assign(count, 0.0f);
    for (std::size_t c = 0; c < statistics.mean.size(); ++c) {
        if (!(statistics.deviation[c] > 0))
            throw argument_error("normalize: the deviation of channel " + std::to_string(c) +
                                 " must be positive, got " + number_text(statistics.deviation[c]));
        factor[c] = 1 / (full<From> * statistics.deviation[c]);
        offset[c] = -statistics.mean[c] / statistics.deviation[c];
    }
}

} // namespace detail

/// Options for an image on its way into a batch.
struct model_input_options {
    channel_statistics normalize{}; ///< empty: floats in [0, 1]
    resize_options resize{resize_method::bilinear, true};
    bool mirror = false; ///< from left to right
};
// clang-format off
template <class = void> no_such_option_in<model_input_options> model_input_into(any_argument, any_argument, ...) TG_MISTAKE;
template <class = void> no_such_option_in<model_input_options> model_input_into(any_argument, any_argument, any_argument, any_argument, ...) TG_MISTAKE;
// clang-format on

/// Resizes an image (or a `crop` of one), mirrors and normalises it in one pass, without an
/// intermediate image. Throws shape_error if the channels differ or there are no pixels.
template <image_like I>
void model_input_into(const I& x, image_view<float> to, const model_input_options& options = {}) {
    const auto from = view_of(x);
    std::vector<float> factor, offset;
    detail::normalization_of<pixel_of<I>>(options.normalize, std::max<std::int64_t>(from.channels, 0), factor, offset);
    detail::resample(from, to, options.resize, options.mirror, std::move(factor), std::move(offset));
}

/// The same into the span of a batch's slot, [height, width, channels of the image]. Throws
/// shape_error if its size differs.
template <image_like I>
void model_input_into(const I& x, std::span<float> to, std::int64_t height, std::int64_t width,
                      const model_input_options& options = {}) {
    const std::int64_t channels = view_of(x).channels;
    if (static_cast<std::int64_t>(to.size()) != height * width * channels)
        throw shape_error("model_input_into: room for " + std::to_string(to.size()) + " values, an image [" +
                          std::to_string(height) + "," + std::to_string(width) + "," + std::to_string(channels) +
                          "] has " + std::to_string(height * width * channels));
    model_input_into(x, image_view<float>(to.data(), height, width, channels), options);
}

/// (x - mean) / deviation, per channel, with x in [0, 1] (bytes are divided by 255).
template <image_like I>
image<float> normalize(const I& x, const channel_statistics& statistics) {
    const auto from = view_of(x);
    std::vector<float> factor, offset;
    detail::normalization_of<pixel_of<I>>(statistics, from.channels, factor, offset);
    image<float> to(from.height, from.width, from.channels);
    for (std::int64_t y = 0; y < from.height; ++y)
        for (std::int64_t i = 0; i < from.row_size(); ++i) {
            const auto c = static_cast<std::size_t>(i % from.channels);
            to.view().row(y)[i] = static_cast<float>(from.row(y)[i]) * factor[c] + offset[c];
        }
    return to;
}

/// (x - mean) / max(deviation, 1 / sqrt(size)) with statistics over all values of this image:
/// tf.image.per_image_standardization.
template <image_like I>
image<float> per_image_standardization(const I& x) {
    const auto from = view_of(x);
    image<float> to(from.height, from.width, from.channels);
    const auto size = static_cast<double>(from.size());
    if (from.size() == 0) return to;
    double sum = 0, squares = 0;
    for (std::int64_t y = 0; y < from.height; ++y)
        for (std::int64_t i = 0; i < from.row_size(); ++i) sum += static_cast<double>(from.row(y)[i]);
    const double mean = sum / size;
    for (std::int64_t y = 0; y < from.height; ++y)
        for (std::int64_t i = 0; i < from.row_size(); ++i) {
            const double beside = static_cast<double>(from.row(y)[i]) - mean;
            squares += beside * beside;
        }
    const double deviation = std::max(std::sqrt(squares / size), 1 / std::sqrt(size));
    for (std::int64_t y = 0; y < from.height; ++y)
        for (std::int64_t i = 0; i < from.row_size(); ++i)
            to.view().row(y)[i] = static_cast<float>((static_cast<double>(from.row(y)[i]) - mean) / deviation);
    return to;
}

/// Accumulates mean and deviation of each channel over images added one by one, for `normalize`.
class statistics_of_channels {
public:
    /// Throws shape_error if the number of channels differs from earlier images.
    template <image_like I>
    void add(const I& x) {
        const auto from = view_of(x);
        if (sums_.empty()) sums_.resize(static_cast<std::size_t>(from.channels)), squares_ = sums_;
        if (static_cast<std::int64_t>(sums_.size()) != from.channels)
            throw shape_error("statistics_of_channels: an image " + detail::extents(from) + " among those of " +
                              std::to_string(sums_.size()) + " channels");
        for (std::int64_t y = 0; y < from.height; ++y)
            for (std::int64_t i = 0; i < from.row_size(); ++i) {
                const double v = static_cast<double>(from.row(y)[i]) / static_cast<double>(detail::full<pixel_of<I>>);
                sums_[static_cast<std::size_t>(i % from.channels)] += v;
                squares_[static_cast<std::size_t>(i % from.channels)] += v * v;
            }
        count_ += static_cast<double>(from.height * from.width);
    }
    /// Throws argument_error before the first pixel.
    channel_statistics result() const {
        if (count_ == 0) throw argument_error("statistics_of_channels: no images");
        channel_statistics found;
        for (std::size_t c = 0; c < sums_.size(); ++c) {
            const double mean = sums_[c] / count_;
            found.mean.push_back(static_cast<float>(mean));
            found.deviation.push_back(static_cast<float>(std::sqrt(std::max(squares_[c] / count_ - mean * mean, 0.0))));
        }
        return found;
    }

private:
    std::vector<double> sums_, squares_;
    double count_ = 0;
};

} // namespace tapegraph::data::images
