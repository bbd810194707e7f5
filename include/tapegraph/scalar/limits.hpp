#pragma once

#include <tapegraph/scalar/jet.hpp>
#include <tapegraph/scalar/number.hpp>

#include <iosfwd>
#include <limits>

/// What else numbers do: limits, and streams, which write and read the value.

namespace tapegraph {

// Only where streams are known, so that programs may ask whether numbers can be written.
template <class C, class Traits, recording X>
    requires requires(std::basic_ostream<C, Traits>& stream, const X& number) { stream << number.value(); }
std::basic_ostream<C, Traits>& operator<<(std::basic_ostream<C, Traits>& out, const X& x) { return out << x.value(); }
template <class C, class Traits, class T, int N>
    requires requires(std::basic_ostream<C, Traits>& stream, const T& number) { stream << number; }
std::basic_ostream<C, Traits>& operator<<(std::basic_ostream<C, Traits>& out, const jet<T, N>& x) {
    return out << x.value;
}
/// Reads a number; it is a constant to tapes.
template <class C, class Traits, class T>
std::basic_istream<C, Traits>& operator>>(std::basic_istream<C, Traits>& in, real<T>& x) {
    T value{};
    if (in >> value) x = real<T>(value);
    return in;
}

} // namespace tapegraph

namespace tapegraph::scalars {
/// Limits of T, as numbers of type Number.
template <class Number, class T>
struct limits_as : std::numeric_limits<T> {
    using number = Number;
    using base = std::numeric_limits<T>;
    static constexpr number min() noexcept { return base::min(); }
    static constexpr number max() noexcept { return base::max(); }
    static constexpr number lowest() noexcept { return base::lowest(); }
    static constexpr number epsilon() noexcept { return base::epsilon(); }
    static constexpr number round_error() noexcept { return base::round_error(); }
    static constexpr number infinity() noexcept { return base::infinity(); }
    static constexpr number quiet_NaN() noexcept { return base::quiet_NaN(); }
    static constexpr number signaling_NaN() noexcept { return base::signaling_NaN(); }
    static constexpr number denorm_min() noexcept { return base::denorm_min(); }
};
} // namespace tapegraph::scalars

// NOLINTBEGIN: meant to be specialised for such types
template <class T>
struct std::numeric_limits<tapegraph::real<T>> : tapegraph::scalars::limits_as<tapegraph::real<T>, T> {};
template <class T, int N>
struct std::numeric_limits<tapegraph::jet<T, N>> : tapegraph::scalars::limits_as<tapegraph::jet<T, N>, T> {};
// NOLINTEND
