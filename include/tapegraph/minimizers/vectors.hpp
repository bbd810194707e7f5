#pragma once

#include <tapegraph/core/config.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

/// Sums and norms of flat vectors.

namespace tapegraph::minimizers {

/// The sum of x[i] * y[i], in eight partial sums of double (sixteen of float): one sum would wait for each addition,
/// and g++ -O2 makes no vectors of it. The order depends on the length alone.
template <class T>
T dot(std::span<const T> x, std::span<const T> y) {
    typedef T lanes __attribute__((vector_size(16)));
    constexpr std::size_t width = sizeof(lanes) / sizeof(T), parts = 4;
    lanes sums[parts]{};
    std::size_t i = 0;
    for (; i + parts * width <= x.size(); i += parts * width)
        for (std::size_t k = 0; k < parts; ++k) {
            lanes a, b;
            std::memcpy(&a, x.data() + i + k * width, sizeof a);
            std::memcpy(&b, y.data() + i + k * width, sizeof b);
            sums[k] += a * b;
        }
    const lanes whole = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    T sum = 0;
    for (std::size_t k = 0; k < width; ++k) sum += whole[k];
    for (; i < x.size(); ++i) sum += x[i] * y[i];
    return sum;
}
template <class T>
T norm(std::span<const T> x) {
    return std::sqrt(dot(x, x));
}
/// The largest magnitude; NaN if there is one.
template <class T>
T max_norm(std::span<const T> x) {
    T most = 0;
    for (const T& each : x) {
        const T magnitude = std::abs(each);
        if (!(magnitude <= most)) most = magnitude;
        if (std::isnan(most)) return most;
    }
    return most;
}
/// y += a * x
template <class T>
void add_scaled(std::span<T> y, T a, std::span<const T> x) {
    typedef T lanes __attribute__((vector_size(16)));
    constexpr std::size_t width = sizeof(lanes) / sizeof(T);
    std::size_t i = 0;
    for (; i + width <= y.size(); i += width) {
        lanes from, to;
        std::memcpy(&from, x.data() + i, sizeof from);
        std::memcpy(&to, y.data() + i, sizeof to);
        to += a * from;
        std::memcpy(y.data() + i, &to, sizeof to);
    }
    for (; i < y.size(); ++i) y[i] += a * x[i];
}
template <class T>
bool all_finite(std::span<const T> x) {
    bool finite = true;
    for (const T& each : x) finite &= std::isfinite(each);
    return finite;
}
template <class T>
inline constexpr T epsilon = std::numeric_limits<T>::epsilon();

} // namespace tapegraph::minimizers
