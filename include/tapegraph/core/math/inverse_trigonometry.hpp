#pragma once

#include <tapegraph/core/math/root.hpp>
#include <tapegraph/core/math/rounding.hpp>

/// asin, acos, atan, atan2. Coefficients: tools/fit_polynomial.py (Remez, relative error 2^-27 float, 2^-59 double).

namespace tapegraph::math {

namespace detail {

template <class T>
struct circle; // multiples of pi / 4 in two parts

template <>
struct circle<float> {
    static constexpr float eighth = 0x1.921fb6p-1f, eighth_low = -0x1.777a5cp-26f;
    static constexpr float quarter = 0x1.921fb6p+0f, quarter_low = -0x1.777a5cp-25f;
    static constexpr float half = 0x1.921fb6p+1f, half_low = -0x1.777a5cp-24f;
};
template <>
struct circle<double> {
    static constexpr double eighth = 0.7853981633974483, eighth_low = 3.061616997868383e-17;
    static constexpr double quarter = 1.5707963267948966, quarter_low = 6.123233995736766e-17;
    static constexpr double half = 3.141592653589793, half_low = 1.2246467991473532e-16;
};

/// asin(s) - s for |s| <= 1/2, from s and z = s^2.
template <class T>
TG_HD constexpr T asin_tail(T s, T z) {
    T q;
    if constexpr (sizeof(T) == sizeof(float)) {
        q = polynomial(z, 0.166667536f, 0.0749524161f, 0.0454771072f, 0.0241475608f, 0.042218633f);
    } else {
        q = polynomial(z, 0.16666666666666763, 0.07499999999970265, 0.04464285717511928, 0.030381942683668933,
                       0.02237221565913892, 0.01735160011025334, 0.01398096124314775, 0.01139777766237325,
                       0.010786519632603754, 0.0036830780349786096, 0.021763409933606478, -0.021077163694677187,
                       0.03267680795642545);
    }
    return product(product(s, z), q);
}

/// atan(t) - t for |t| <= tan(pi / 8).
template <class T>
TG_HD constexpr T atan_tail(T t) {
    const T z = product(t, t);
    T q;
    if constexpr (sizeof(T) == sizeof(float)) {
        q = polynomial(z, -0.333333164f, 0.199984893f, -0.142438486f, 0.105960011f, -0.0608345419f);
    } else {
        q = polynomial(z, -0.3333333333333333, 0.19999999999999887, -0.14285714285695741, 0.11111111109587948,
                       -0.09090909017005838, 0.07692305383161638, -0.06666617776103798, 0.05881630402620997,
                       -0.05255595848760108, 0.04705770290810651, -0.04055675623913259, 0.029622902012480273,
                       -0.012990206354983541);
    }
    return product(product(t, z), q);
}

/// An angle of the first octant as base + (t + tail): atan(low / high) for 0 <= low <= high. Above tan(pi / 8) it is
/// pi / 4 + atan((low - high) / (low + high)).
template <class T>
struct octant_angle {
    T base, base_low, t, tail;
};
template <class T>
TG_HD constexpr octant_angle<T> atan_ratio(T low, T high) {
    const bool upper = low > product(high, T(0.41421356237309505));
    const T t = select(upper, low - high, low) / select(upper, low + high, high);
    return {select(upper, circle<T>::eighth, T(0)), select(upper, circle<T>::eighth_low, T(0)), t, atan_tail(t)};
}

} // namespace detail

/// Up to 1/2 a polynomial; above, pi / 2 - 2 asin(sqrt((1 - |x|) / 2)). NaN outside [-1, 1].
template <class T>
TG_HD constexpr T asin(T x) {
    using circle = detail::circle<T>;
    const T a = abs(x);
    const bool upper = a > T(0.5);
    const T z = detail::select(upper, detail::product(T(1) - a, T(0.5)), detail::product(a, a));
    const T s = detail::select(upper, sqrt(z), a);
    const T tail = detail::asin_tail(s, z);
    const T u = circle::quarter - T(2) * s, lost = (circle::quarter - u) - T(2) * s;
    return copysign(detail::select(upper, u - (T(2) * tail - (circle::quarter_low + lost)), s + tail), x);
}

/// pi / 2 - asin(x) up to 1/2; 2 asin(sqrt((1 - x) / 2)) above; its supplement below -1/2. NaN outside [-1, 1].
template <class T>
TG_HD constexpr T acos(T x) {
    using circle = detail::circle<T>;
    const T a = abs(x);
    const bool outer = a > T(0.5);
    const T z = detail::select(outer, detail::product(T(1) - a, T(0.5)), detail::product(a, a));
    const T s = detail::select(outer, sqrt(z), x);
    const T tail = detail::asin_tail(s, z);
    const T inner = circle::quarter - (s - (circle::quarter_low - tail));
    const T twice = T(2) * (s + tail);
    const T outside = detail::select(x < 0, circle::half - (twice - circle::half_low), twice);
    return detail::select(outer, outside, inner);
}

/// The inverse tangent in radians.
template <class T>
TG_HD constexpr T atan(T x) {
    using circle = detail::circle<T>;
    const T a = abs(x);
    const bool steep = a > T(1); // atan(a) = pi / 2 - atan(1 / a)
    const auto o = detail::atan_ratio(detail::select(steep, T(1), a), detail::select(steep, a, T(1)));
    const T direct = o.base + (o.t + (o.tail + o.base_low));
    const T complement = (circle::quarter - o.base) - (o.t + (o.tail + (o.base_low - circle::quarter_low)));
    return copysign(detail::select(steep, complement, direct), x);
}

/// The angle of the point (x, y) in (-pi, pi], with the signs of zeros and infinities as in IEEE 754.
template <class T>
TG_HD constexpr T atan2(T y, T x) {
    using circle = detail::circle<T>;
    constexpr T infinity = detail::traits<T>::infinity;
    const T ax = abs(x), ay = abs(y);
    const bool steep = ay > ax;
    T high = detail::select(steep, ay, ax), low = detail::select(steep, ax, ay);
    // The sum of two huge values would overflow; two infinities count as equal, and two zeros as 0 / 1.
    const T shrink = detail::select(high > detail::traits<T>::integer_from, T(0.25), T(1));
    low = detail::select(low == infinity, T(1), detail::product(low, shrink));
    high = detail::select(high == infinity, detail::select(ax == ay, T(1), infinity), detail::product(high, shrink));
    high = detail::select(high == 0, T(1), high);

    const auto o = detail::atan_ratio(low, high);
    // The angle is centre + sign (base + t): centre 0, pi / 2 or pi by octant.
    const bool left = detail::to_bits(x) >> (8 * sizeof(T) - 1) != 0;
    const T sign = detail::select(steep != left, T(-1), T(1));
    const T centre = detail::select(steep, circle::quarter, detail::select(left, circle::half, T(0)));
    const T centre_low = detail::select(steep, circle::quarter_low, detail::select(left, circle::half_low, T(0)));
    const T base = centre + sign * o.base; // exact: multiples of pi / 4 with few bits between them, see below
    const T base_rest = (centre - base) + sign * o.base;
    const T angle = base + (sign * o.t + (sign * o.tail + (base_rest + (centre_low + sign * o.base_low))));
    return detail::select((x != x) | (y != y), x + y, copysign(angle, y));
}

} // namespace tapegraph::math
