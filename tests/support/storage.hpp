#pragma once

#include <support/graph_runner.hpp>

#include <tapegraph/core/half.hpp>

/// Compares 16-bit results with the expected values.

namespace tapegraph::testing {

/// The position among the numbers of a type, counted from zero: neighbours differ by one, infinity
/// follows the largest.
template <storage_type T>
int position(T x) {
    const int magnitude = x.bits & 0x7FFF;
    return x.bits >= 0x8000 ? -magnitude : magnitude;
}
template <storage_type T>
bool is_nan(T x) {
    return std::isnan(static_cast<float>(x));
}

/// Numbers as long double.
template <class T>
array plain(const tensor<T>& t) {
    array a(extents_of(t.shape()));
    for (std::int64_t i = 0; i < t.size(); ++i) {
        if constexpr (storage_type<T>)
            a[i] = static_cast<real>(static_cast<float>(t.data()[i]));
        else
            a[i] = static_cast<real>(t.data()[i]);
    }
    return a;
}

struct agreement {
    std::int64_t elements = 0;
    std::int64_t beside = 0; ///< the neighbour of the nearest number
    std::int64_t wrong = 0;  ///< further away
    std::string first;       ///< wrong
};

/// Counts how results compare with the values rounded to the type. Float arithmetic before the
/// rounding may be off by a few of its own units, which moves the result to the neighbour when the
/// exact value is that close to a midpoint: seldom, since a unit of the type is 2^13 (half) or 2^16
/// (bfloat16) units of float. `scale` holds magnitudes that cancelled on the way, of which a
/// fraction `slack` may be off.
template <storage_type T>
agreement compared(const tensor<T>& got, const array& want, real slack = 0, const array* scale = nullptr) {
    agreement a;
    a.elements = got.size();
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const T value = got.data()[i];
        const T nearest = T(static_cast<double>(want[i]));
        if (is_nan(value) && is_nan(nearest)) continue;
        const real margin = scale == nullptr ? 0 : slack * (*scale)[i];
        const int low = position(T(static_cast<double>(want[i] - margin))), high = position(T(static_cast<double>(want[i] + margin)));
        const int at = position(value);
        if (is_nan(value) == is_nan(nearest) && at >= low && at <= high) continue;
        if (is_nan(value) == is_nan(nearest) && at >= low - 1 && at <= high + 1) {
            ++a.beside;
            continue;
        }
        if (a.wrong++ == 0)
            a.first = "element " + std::to_string(i) + " is " + std::to_string(static_cast<float>(value)) + ", expected " +
                      std::to_string(static_cast<double>(want[i]));
    }
    return a;
}

} // namespace tapegraph::testing
