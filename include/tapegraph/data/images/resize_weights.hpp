#pragma once

#include <tapegraph/core/config.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The weights of a resize along one axis: which pixels contribute to each output, and how much.
///
/// Pixel p's centre is at p + 1/2, and output i is sampled at c = (i + 1/2) from / to, as in
/// tf.image.resize, PyTorch with align_corners = False, and Pillow. An interpolating method weights
/// pixel p by kernel((p + 1/2 - c) / s), where s is 1, or, with `antialias`, from / to when that is
/// more, so that a shrinking image is averaged. There are no pixels beyond the border: weights are
/// divided by their sum.

namespace tapegraph::data::images {

/// The methods of tf.image.ResizeMethod.
enum class resize_method : std::uint8_t {
    nearest,  ///< the pixel that contains the output's centre
    bilinear, ///< kernel max(0, 1 - |x|)
    bicubic,  ///< Keys' cubic with a = -1/2, TensorFlow's and Pillow's (PyTorch's interpolate: -3/4)
    area      ///< the mean over the output's area, with partial pixels at its ends
};

namespace detail {

/// R. Keys, "Cubic convolution interpolation for digital image processing", 1981, a = -1/2.
inline double cubic_kernel(double x) {
    x = std::fabs(x);
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
    return 0;
}

inline double triangle_kernel(double x) { return std::max(0.0, 1 - std::fabs(x)); }

/// Output i is the sum over k < count[i] of weights[i * taps + k] * input[first[i] + k].
struct axis_weights {
    std::vector<std::int64_t> first, count;
    std::vector<float> weights;
    std::int64_t taps = 1;

    const float* of(std::int64_t output) const { return weights.data() + output * taps; }
};

/// `from` and `to` are positive.
inline axis_weights make_axis_weights(std::int64_t from, std::int64_t to, resize_method method, bool antialias) {
    const double scale = static_cast<double>(from) / static_cast<double>(to), limit = static_cast<double>(from);
    const bool interpolates = method == resize_method::bilinear || method == resize_method::bicubic;
    const double stretch = interpolates && antialias ? std::max(scale, 1.0) : 1.0;
    const double radius = stretch * (method == resize_method::bicubic ? 2 : 1);
    const double reach = interpolates ? radius : 0;
    axis_weights axis;
    axis.taps = method == resize_method::nearest ? 1
                : interpolates                   ? static_cast<std::int64_t>(std::ceil(2 * radius)) + 1
                                                 : static_cast<std::int64_t>(std::ceil(scale)) + 1;
    axis.taps = std::min(axis.taps, from);
    axis.first.resize(static_cast<std::size_t>(to));
    axis.count.resize(static_cast<std::size_t>(to));
    axis.weights.assign(static_cast<std::size_t>(to * axis.taps), 0.0f);
    std::vector<double> exact(static_cast<std::size_t>(axis.taps));
    for (std::int64_t i = 0; i < to; ++i) {
        const double centre = (static_cast<double>(i) + 0.5) * scale;
        double low = centre, high = centre; // the range of contributing pixels
        if (interpolates) {
            low = centre - 0.5 - radius;
            high = centre + 0.5 + radius;
        } else if (method == resize_method::area) {
            low = static_cast<double>(i) * scale;
            high = low + scale;
        }
        auto first = static_cast<std::int64_t>(std::clamp(std::floor(low), 0.0, limit - 1));
        double sum = 0;
        std::int64_t count = 0;
        for (std::int64_t p = first; p < from; ++p) {
            const auto at = static_cast<double>(p);
            double weight = 1;
            if (method == resize_method::area)
                weight = std::min(high, at + 1) - std::max(low, at);
            else if (method == resize_method::bilinear)
                weight = triangle_kernel((at + 0.5 - centre) / stretch);
            else if (method == resize_method::bicubic)
                weight = cubic_kernel((at + 0.5 - centre) / stretch);
            const bool outside = method == resize_method::area ? weight <= 1e-9 : weight == 0;
            if (outside && count == 0 && at < centre && p + 1 < from) {
                ++first; // before the first contributing pixel
                continue;
            }
            // The cubic is also 0 at 1, and continues after it.
            if ((outside && at + 0.5 - centre >= reach) || count == axis.taps) break;
            exact[static_cast<std::size_t>(count++)] = weight;
            sum += weight;
            if (method == resize_method::nearest) break;
        }
        axis.first[static_cast<std::size_t>(i)] = first;
        axis.count[static_cast<std::size_t>(i)] = count;
        for (std::int64_t k = 0; k < count; ++k)
            axis.weights[static_cast<std::size_t>(i * axis.taps + k)] =
                static_cast<float>(exact[static_cast<std::size_t>(k)] / sum);
    }
    return axis;
}

} // namespace detail

} // namespace tapegraph::data::images
