#pragma once

#include <tapegraph/core/math/bits.hpp>

#include <cstdint>

namespace tapegraph::detail {

inline constexpr std::int64_t field_of_infinity = 0x7ff;
/// The bits of the exponent.
TG_HD constexpr std::int64_t exponent_field(double x) {
    return static_cast<std::int64_t>(math::detail::to_bits(x) >> 52 & 0x7ff);
}

/// A number of a double's digits and an exponent of 64 bits, so that a product of many neither overflows nor underflows on the way.
/// Each sum and product rounds as one of doubles does.
struct wide_number {
    double part = 0;           ///< in [1, 2) or (-2, -1]; or zero, infinite or NaN, and then all there is
    std::int64_t exponent = 0; ///< part 2^exponent

    wide_number() = default;
    TG_HD explicit wide_number(double x) : part(x) {
        if (exponent_field(x) == 0) *this = {x * 0x1p64, -64}; // a subnormal number, or zero
        normalize();
    }
    TG_HD explicit operator double() const {
        if (exponent_field(part) == field_of_infinity) return part;
        // Two factors, of which the last one alone rounds.
        const std::int64_t e = exponent < -2200 ? -2200 : exponent > 2200 ? 2200 : exponent, half = e / 2;
        return math::detail::product(math::detail::product(part, power(half)), power(e - half));
    }
    TG_HD friend wide_number operator*(const wide_number& a, const wide_number& b) {
        return {math::detail::product(a.part, b.part), a.exponent + b.exponent};
    }
    TG_HD friend wide_number operator+(const wide_number& a, const wide_number& b) {
        if (a.part == 0 || b.part == 0) return a.part == 0 ? b : a;
        const bool first = a.exponent >= b.exponent;
        const wide_number &large = first ? a : b, &small = first ? b : a;
        const std::int64_t apart = large.exponent - small.exponent;
        return {large.part + (apart > 200 ? small.part * 0x1p-200 : small.part * power(-apart)), large.exponent};
    }

private:
    TG_HD wide_number(double p, std::int64_t e) : part(p), exponent(e) { normalize(); }
    TG_HD static double power(std::int64_t e) {
        return math::detail::from_exponent<double>(static_cast<std::uint64_t>(e + 1023));
    }
    TG_HD void normalize() {
        const std::int64_t field = exponent_field(part);
        if (field == 0 || field == field_of_infinity) { // not subnormal: parts are not small
            exponent = 0;
            return;
        }
        exponent += field - 1023;
        constexpr std::uint64_t kept = ~(std::uint64_t{0x7ff} << 52);
        part = math::detail::from_bits<double>((math::detail::to_bits(part) & kept) | (std::uint64_t{1023} << 52));
    }
};

} // namespace tapegraph::detail
