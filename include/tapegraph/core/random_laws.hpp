#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/core/philox.hpp>

#include <limits>

/// Distributions derived from uniform and normal numbers of the same address, computed where the
/// number is drawn.

namespace tapegraph {

/// The laws that random tensors are drawn from.
enum class distribution : std::int64_t { uniform, normal, truncated_normal, exponential, bernoulli };

} // namespace tapegraph

namespace tapegraph::random {

/// The largest T below b; b is finite.
template <class T>
requires std::is_floating_point_v<T> TG_HD constexpr T just_below(T b) {
    using bits = math::detail::bits_t<T>;
    if (b == T(0)) return -math::detail::from_bits<T>(bits{1});
    const bits raw = math::detail::to_bits(b);
    return math::detail::from_bits<T>(b > T(0) ? raw - 1 : raw + 1);
}

/// The same for the 16-bit types.
template <storage_type T>
constexpr T just_below(T b) {
    const bool zero = (b.bits & 0x7FFFu) == 0, positive = b.bits < 0x8000u;
    return T::from_bits(static_cast<std::uint16_t>(zero ? 0x8001u : b.bits + (positive ? -1 : 1)));
}

/// Element `index` of the truncated normal distribution. Attempt k reads the number 2^40 k blocks
/// further, so attempts of different elements never collide. Beyond 2 deviations lie 4.55 % of the
/// normal numbers.
template <class T>
TG_HD constexpr T truncated_normal_at(const address& a, std::uint64_t index) {
    T x = 0;
    for (std::uint64_t attempt = 0; attempt < 128; ++attempt) { // the last is needed with probability 2^-565
        x = detail::at<detail::normal, T>(a, index + ((attempt * per_block<T>) << 40));
        if (x >= T(-2) && x <= T(2)) return x;
    }
    return T(0);
}

/// 1 with the given probability, else 0, from a uniform number in [0, 1).
template <class T>
TG_HD constexpr T bernoulli_of(T uniform, T probability) {
    return math::detail::select(uniform < probability, T(1), T(0));
}

/// An exponential number with the given mean, from a uniform number in [0, 1).
template <class T>
TG_HD constexpr T exponential_of(T uniform, T mean) {
    return (T(0) - math::log(T(1) - uniform)) * mean;
}

/// x * slope + offset, but at most `most`.
template <class T>
struct scaling {
    T slope, offset, most = std::numeric_limits<T>::infinity();

    /// slope x + offset, at most `most`.
    TG_HD constexpr T operator()(T x) const {
        const T value = math::detail::mul_add(x, slope, offset);
        return math::detail::select(value > most, most, value);
    }
};

/// Maps [0, 1) to [low, high); rounding must not reach the excluded end.
template <class T>
constexpr scaling<T> uniform_scaling(double low, double high) {
    const T offset = static_cast<T>(low), end = static_cast<T>(high);
    scaling<T> s{static_cast<T>(high - low), offset};
    if (offset < end) s.most = just_below(end);
    return s;
}
/// From the standard normal law to that of the mean and the standard deviation.
template <class T>
constexpr scaling<T> normal_scaling(double mean, double deviation) {
    return {static_cast<T>(deviation), static_cast<T>(mean)};
}

/// The high word of a 64-bit product.
TG_HD constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const std::uint64_t low = a0 * b0, left = a1 * b0 + (low >> 32), right = a0 * b1 + (left & 0xffffffffu);
    return a1 * b1 + (left >> 32) + (right >> 32);
}

/// Element `index` of uniform integers in [0, range): 64 bits scaled to the range (D. Lemire, "Fast
/// random integer generation in an interval", 2019, without its rejection: the probabilities differ
/// by less than range / 2^64). Two per block.
TG_HD constexpr std::uint64_t integer_at(const address& a, std::uint64_t index, std::uint64_t range) {
    const std::uint64_t block = index / 2;
    std::uint32_t w0 = 0, w1 = 0, w2 = 0, w3 = 0;
    detail::words(a, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), w0, w1, w2, w3);
    const bool second = index % 2 != 0;
    const std::uint64_t word = (std::uint64_t{second ? w3 : w1} << 32) | (second ? w2 : w0);
    return high_product(word, range);
}

} // namespace tapegraph::random
