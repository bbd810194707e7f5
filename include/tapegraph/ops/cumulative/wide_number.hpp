#pragma once

#include <tapegraph/core/math/bits.hpp>

#include <cstdint>

namespace tapegraph::detail {

inline constexpr std::int64_t field_of_infinity = 0x7ff;
/// The exponent's bits.
TG_HD constexpr std::int64_t exponent_field(double x) {
    return static_cast<std::int64_t>(math::detail::to_bits(x) >> 52 & 0x7ff);
}

/// A number with a double's digits and a 64-bit exponent, so that a product of many factors neither
/// overflows nor underflows on the way. Each sum and product rounds like one of doubles.
struct wide_number {
    double part = 0; ///< with magnitude between 2^-400 and 2^401; or zero, infinite or NaN, and then the whole value
    std::int64_t exponent = 0; ///< the value is part 2^exponent

    wide_number() = default;
    /// Of a part that is zero, infinite, NaN or a normal number.
    TG_HD static wide_number of(double part, std::int64_t exponent) {
        wide_number x(part, exponent, true);
        x.normalize();
        return x;
    }
    TG_HD explicit wide_number(double x) : wide_number(x, 0) {}
    TG_HD explicit operator double() const {
        if (exponent == 0 || exponent == beyond_all) return part;
        wide_number x = *this;
        x.normalize();
        if (x.exponent > 1023) return x.part * math::detail::traits<double>::infinity;
        if (x.exponent < -1080) return x.part * 0;
        // Multiplies by two factors, of which only the last one rounds.
        const std::int64_t half = x.exponent / 2;
        return math::detail::product(math::detail::product(x.part, power(half)), power(x.exponent - half));
    }
    TG_HD friend wide_number operator*(const wide_number& a, const wide_number& b) {
        return {math::detail::product(a.part, b.part), a.exponent + b.exponent};
    }
    TG_HD friend wide_number operator+(const wide_number& a, const wide_number& b) {
        if (a.part == 0 && b.part == 0) return {a.part + b.part, 0}; // of -0 and 0
        if (a.part == 0 || b.part == 0) return a.part == 0 ? b : a;
        const bool first = a.exponent >= b.exponent;
        const wide_number &large = first ? a : b, &small = first ? b : a;
        const std::int64_t apart = large.exponent - small.exponent; // the parts themselves may be 800 apart
        return {large.part + (apart > 1000 ? 0 : math::detail::product(small.part, power(-apart))), large.exponent};
    }

private:
    static constexpr std::int64_t beyond_all = std::int64_t{1} << 40; ///< the exponent of infinities and NaN

    TG_HD wide_number(double p, std::int64_t e, bool) : part(p), exponent(e) {}
    TG_HD wide_number(double p, std::int64_t e) : part(p), exponent(e) {
        const std::int64_t size = exponent_field(part) - 1023;
        if (size < -400 || size > 400) normalize(); // rarely
    }
    TG_HD static double power(std::int64_t e) {
        return math::detail::from_exponent<double>(static_cast<std::uint64_t>(e + 1023));
    }
    /// Brings the part into [1, 2).
    TG_HD void normalize() {
        if (part == 0 || exponent_field(part) == field_of_infinity) {
            exponent = part == 0 ? 0 : beyond_all;
            return;
        }
        if (exponent_field(part) == 0) { // subnormal
            part *= 0x1p200;
            exponent -= 200;
        }
        exponent += exponent_field(part) - 1023;
        constexpr std::uint64_t kept = ~(std::uint64_t{0x7ff} << 52);
        part = math::detail::from_bits<double>((math::detail::to_bits(part) & kept) | (std::uint64_t{1023} << 52));
    }
};

} // namespace tapegraph::detail
