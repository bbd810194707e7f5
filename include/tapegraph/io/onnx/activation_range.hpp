#pragma once

#include <tapegraph/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// The numbers that a value between layers takes on a data set, and what they become as unsigned integers of 8 bits.

namespace tapegraph::onnx {

/// real = scale (q - zero), q from 0 to 255.
struct uint8_scale {
    float scale = 1;
    std::uint8_t zero = 0;
};
/// For numbers from low to high. The range is widened to include 0, which is exact: padding is.
inline uint8_scale uint8_scale_of(double low, double high) {
    low = std::min(low, 0.0), high = std::max(high, 0.0);
    uint8_scale s;
    s.scale = static_cast<float>((high - low) / 255);
    if (!(s.scale > 0)) s.scale = std::numeric_limits<float>::min(); // of denormal numbers
    s.zero = static_cast<std::uint8_t>(std::clamp(std::nearbyint(-low / static_cast<double>(s.scale)), 0.0, 255.0));
    return s;
}

/// The Kullback-Leibler divergence, in nats, of a histogram whose first `used` bins become `levels` equal steps, from the
/// same bins with all that lies behind them counted in the last one.
inline double divergence(const std::vector<std::int64_t>& counts, int used, int levels) {
    double outside = 0, total = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        total += static_cast<double>(counts[i]);
        if (i >= static_cast<std::size_t>(used)) outside += static_cast<double>(counts[i]);
    }
    const double inside = total - outside;
    if (inside <= 0) return std::numeric_limits<double>::infinity();
    double sum = 0;
    for (int step = 0; step < levels; ++step) {
        const int first = static_cast<int>(std::int64_t{step} * used / levels),
                  last = static_cast<int>(std::int64_t{step + 1} * used / levels);
        double mass = 0;
        int filled = 0;
        for (int i = first; i < last; ++i)
            if (const auto c = counts[static_cast<std::size_t>(i)]; c > 0) mass += static_cast<double>(c), ++filled;
        for (int i = first; i < last; ++i) {
            const double p = static_cast<double>(counts[static_cast<std::size_t>(i)]) + (i + 1 == used ? outside : 0);
            if (p == 0) continue;
            // A step's numbers are spread over its bins that have some; a last bin of outliers alone has next to none.
            const double own = counts[static_cast<std::size_t>(i)] > 0 ? mass / filled : 1e-4;
            sum += p / total * std::log(p / total / (own / inside));
        }
    }
    return sum;
}
/// The number of bins, from `levels` on, whose divergence is least: the limit of the calibration that S. Migacz published
/// ("8-bit inference with TensorRT", 2017).
inline int least_divergence(const std::vector<std::int64_t>& counts, int levels) {
    int best = static_cast<int>(counts.size());
    double least = std::numeric_limits<double>::infinity();
    for (int used = levels; used <= static_cast<int>(counts.size()); ++used)
        if (const double d = divergence(counts, used, levels); d < least) least = d, best = used;
    return best;
}

/// Extremes and a histogram of one value, collected batch by batch: first all extremes, then the histogram.
class activation_range {
public:
    static constexpr int bins = 2048;

    /// Takes the extremes. Throws argument_error, which names the value, for a number that is not finite.
    void see(const float* x, std::int64_t count, const std::string& name) {
        for (std::int64_t i = 0; i < count; ++i) {
            if (!std::isfinite(x[i]))
                throw argument_error("quantization: '" + name + "' is " +
                                     (std::isnan(x[i]) ? "NaN"
                                      : x[i] > 0       ? "inf"
                                                       : "-inf") +
                                     " on the calibration data");
            low_ = std::min(low_, x[i]), high_ = std::max(high_, x[i]);
        }
        count_ += count;
    }
    /// Counts numbers, after all have been seen.
    void sort(const float* x, std::int64_t count) {
        if (counts_.empty()) counts_.resize(bins);
        const double width = (high() - low()) / bins;
        for (std::int64_t i = 0; i < count; ++i) {
            const double at = (static_cast<double>(x[i]) - low()) / width;
            ++counts_[static_cast<std::size_t>(std::clamp(at, 0.0, bins - 1.0))];
        }
    }

    /// Counts absolute values, after all have been seen. Zeros are left out: they are exact in every range.
    void sort_absolute(const float* x, std::int64_t count) {
        if (counts_.empty()) counts_.resize(bins);
        const double width = std::max(-low(), high()) / bins;
        for (std::int64_t i = 0; i < count; ++i)
            if (x[i] != 0)
                ++counts_[static_cast<std::size_t>(std::min(std::fabs(static_cast<double>(x[i])) / width, bins - 1.0))];
    }

    /// How many numbers it has seen.
    std::int64_t count() const { return count_; }
    /// Where their range begins: the least of them, or what `keep` cut it to.
    double low() const { return static_cast<double>(low_); }
    /// Where it ends.
    double high() const { return static_cast<double>(high_); }

    /// Cuts off the same share on both sides, so that at least `percent` of the numbers stay inside, to the next limit of a bin.
    void keep(double percent) {
        const double width = (high() - low()) / bins, tail = static_cast<double>(count_) * (100 - percent) / 200;
        int first = 0, last = bins;
        for (double outside = static_cast<double>(counts_[0]); outside <= tail && first + 1 < bins;)
            outside += static_cast<double>(counts_[static_cast<std::size_t>(++first)]);
        for (double outside = static_cast<double>(counts_[bins - 1]); outside <= tail && last - 1 > first;)
            outside += static_cast<double>(counts_[static_cast<std::size_t>(--last) - 1]);
        const double begin = low();
        low_ = static_cast<float>(begin + first * width), high_ = static_cast<float>(begin + last * width);
    }

    /// Cuts off what is further from 0 than the limit from which the divergence is least (below), after
    /// sort_absolute.
    void keep_information() {
        const double width = std::max(-low(), high()) / bins;
        // Numbers on both sides share the integers.
        const int levels = low() < 0 && high() > 0 ? 128 : 256;
        const auto limit = static_cast<float>(least_divergence(counts_, levels) * width);
        low_ = std::max(low_, -limit), high_ = std::min(high_, limit);
    }

private:
    float low_ = std::numeric_limits<float>::infinity(), high_ = -std::numeric_limits<float>::infinity();
    std::int64_t count_ = 0;
    std::vector<std::int64_t> counts_;
};

} // namespace tapegraph::onnx
