#pragma once

#include <tapegraph/core/math/exponential.hpp>

namespace tapegraph::math {

namespace detail {

/// erf(x) / x - 1 for |x| <= 0.9, z = x^2.
template <class T>
TG_HD constexpr T erf_tail(T z) {
    if constexpr (sizeof(T) == sizeof(float)) {
        return polynomial(z, 0.128379166f, -0.376126349f, 0.112837195f, -0.0268607531f, 0.0052044359f, -0.00081819261f,
                          8.53883394e-05f);
    } else {
        return polynomial(z, 0.1283791670955126, -0.37612638903183754, 0.112837916709551, -0.026866170645124195,
                          0.0052239776253421326, -0.0008548327015004245, 0.0001205533252375538, -1.4925633695295662e-05,
                          1.6461698635027334e-06, -1.635869952656244e-07, 1.4723756492614945e-08,
                          -1.1653704389281652e-09, 6.497556905866099e-11);
    }
}

} // namespace detail

/// The error function: up to 0.9, x + x p(x^2); above, 1 - e^g(x) with g = log(erfc x) as a polynomial, whose error
/// counts less and less as erfc vanishes. Coefficients: tools/fit_polynomial.py (Remez, relative error of erf: 2^-31
/// float, 2^-65 double).
template <class T>
TG_HD constexpr T erf(T x) {
    constexpr bool single = sizeof(T) == sizeof(float);
    const T a = abs(x), z = detail::product(a, a);
    const T c = detail::select(a > T(single ? 4 : 6), T(single ? 4 : 6), a); // there erf rounds to 1
    T g;
    if constexpr (single) {
        g = detail::polynomial(c, 0.000150611682f, -1.12938178f, -0.633663356f, -0.107858166f, 0.0247744657f,
                               -0.00399407279f, 0.000378839293f, -1.13092201e-05f, -7.37641358e-07f);
    } else {
        g = detail::polynomial(c, 2.133345841427813e-08, -1.1283794450251903, -0.6366180612879343, -0.10277922594185174,
                               0.01914652998786122, 0.0001721485435457088, -0.0016370964396620986,
                               0.0005148983558034126, 5.1638792903929766e-05, -0.00012968888344829974,
                               7.453207127573467e-05, -2.8370923785803124e-05, 8.165234303593275e-06,
                               -1.8420554080810396e-06, 3.269142093758065e-07, -4.487907542787604e-08,
                               4.5744761666948834e-09, -3.159174397885022e-10, 1.1000563245439906e-11,
                               2.2580671245599044e-13, -3.994287851045373e-14, 1.244195109754724e-15);
    }
    const T near = detail::mul_add(a, detail::erf_tail(z), a);
    const T far = T(1) - exp(g);
    return copysign(detail::select(a < T(0.9), near, far), x);
}

namespace detail {

/// a * a = high + low exactly.
TG_HD constexpr void exact_square(float a, float& high, float& low) {
    const float a1 = from_bits<float>(to_bits(a) & 0xfffff000u), a2 = a - a1;
    high = product(a, a);
    low = mul_add(a2, a2, mul_add(2 * a1, a2, product(a1, a1) - high));
}
TG_HD constexpr void exact_square(double a, double& high, double& low) { exact_product(a, a, high, low); }

/// From here on erfc rounds to 0.
template <class T>
inline constexpr T erfc_largest = sizeof(T) == sizeof(float) ? T(10.1) : T(27.3);
/// q of erfc's fit, in [-1, 1).
template <class T>
TG_HD constexpr T erfc_place(T c) {
    constexpr T centre = sizeof(T) == sizeof(float) ? T(2) : T(4);
    return (c - centre) / (c + centre);
}
/// p(q) = erfc_centre_value + q erfc_slope(q).
template <class T>
inline constexpr T erfc_centre_value = sizeof(T) == sizeof(float) ? T(1.27697837f) : T(1.2329951186255526);
template <class T>
TG_HD constexpr T erfc_slope(T q) {
    if constexpr (sizeof(T) == sizeof(float)) {
        return polynomial(q, -0.0927638933f, -0.166031361f, 0.164053157f, -0.0542051382f, -0.00804460421f,
                          0.00863843504f, 0.00127338723f, -0.00125338696f, -0.000364626205f, 2.64905684e-05f);
    } else {
        return polynomial(q, -0.13962111684056286, 0.01537965210262014, 0.06809705425473357, -0.10103906603632352,
                          0.09373283499691396, -0.0663303658120398, 0.03716751556070729, -0.016197734054709118,
                          0.005031969770579639, -0.0007577733615067123, -0.00019925557946412183, 0.00015062229048279545,
                          -2.440295390789884e-05, -1.1224822256975093e-05, 5.71749823232777e-06, 3.012743735000957e-07,
                          -8.347652859679776e-07, 6.288750644743056e-08, 1.1515942253234202e-07, -7.841907893398557e-09,
                          -1.3649643027453165e-08, -1.8000659273409901e-09);
    }
}

/// P(-a) e^(a^2 / 2) in double for a >= 0, P the distribution function of the standard normal distribution: p(q) / (a + c)
/// with q = (a - c) / (a + c), so that one quotient serves both. Relative error of the fit: 2^-59, as far as e^(-a^2 / 2) is
/// not 0.
TG_HD constexpr double scaled_normal_tail(double a) {
    const double near = select(a > 40.0, 40.0, a);
    const double inverse = 1 / (near + 7);
    const double q = product(near - 7, inverse);
    const double p =
        polynomial(q, 0.7825087541675675, -0.724320296091625, 0.6200850993703694, -0.4901144494882739,
                   0.35666445160403687, -0.23798953586334573, 0.14475817472933925, -0.0795891005266004,
                   0.03906354378490817, -0.016784381036847103, 0.00610303404723639, -0.0017508197800472905,
                   0.0003206837358658545, 9.545598926152813e-06, -3.22441808854929e-05, 1.1091590582335168e-05,
                   -6.679639184415363e-07, -9.317367890590861e-07, 3.520765547367625e-07, 1.2827530553046194e-08,
                   -4.5125044422903555e-08, 4.7244965563428475e-09, 3.971977510430684e-09);
    return product(inverse, p);
}

/// a P(-a) in float, for 0 <= a <= 40, without an exponential: P(-a) = 1.5^8 / (2 r^8), r a polynomial that is 1.5 at 0. Up to
/// a = 6 the fit's error in P is below 1.5e-8 and below 6e-4 of P. Beyond, P is below 1e-9, and r grows until the result is
/// 0. Rounding errors of r count eight times; from 1.5 on floats are close together where P is large.
TG_HD constexpr float normal_tail_times(float a) {
    const float r =
        mul_add(a,
                polynomial(a, 0.149603084f, 0.0671479329f, 0.0129890358f, 0.00133678666f, 0.00024645208f,
                           0.000140430348f, -4.25928411e-05f, 1.37031102e-05f, -1.9376821e-06f, 1.48608152e-07f),
                1.5f);
    const float r2 = r * r, inverse = 1 / (r2 * r2); // r^8 would overflow
    return product(product(12.814453125f, a) * inverse, inverse);
}

/// P(-a) - a p(a) in float, for 0 <= a <= 150 and NaN, p the density: a polynomial over the eighth power of another, which
/// follows 1.5 e^(a^2 / 16). Up to a = 6 the fit's error is below 1.2e-8 and below 4e-4 of P(-a) + a p(a); beyond, both are
/// below 4e-8.
TG_HD constexpr float gelu_slope_tail(float a) {
    const float z = product(a, a);
    const float r = mul_add(z, mul_add(z, mul_add(z, 8.424e-05f, 0.0023295f), 0.09315f), 1.5f);
    const float r2 = r * r, inverse = 1 / (r2 * r2);
    const float n = mul_add(a,
                            polynomial(a, -20.4488926f, 6.36587667f, -3.34011483f, 1.53311849f, -0.588032663f,
                                       0.217144623f, -0.0642177165f, 0.0120613473f, -0.00120999955f, 4.88829937e-05f),
                            12.814453125f);
    return product(n * inverse, inverse);
}

} // namespace detail

/// 1 - erf(x), accurate where it vanishes: e^(-a^2) p(q) / (1 + 2 a) with q = (a - c) / (a + c) for a = |x|, with the square
/// in twice the precision. Relative error of the fit: 2^-26 float, 2^-56 double.
template <class T>
TG_HD constexpr T erfc(T x) {
    const T a = abs(x), c = detail::select(a > detail::erfc_largest<T>, detail::erfc_largest<T>, a);
    const T q = detail::erfc_place(c);
    T p = detail::erfc_slope(q);
    constexpr T first = detail::erfc_centre_value<T>;
    T square = 0, square_low = 0;
    detail::exact_square(c, square, square_low);
    const T t = detail::exponent_of(-square);
    const T r = detail::remainder_high(-square, t);
    const T w = T(1) + r;
    const T rest = ((T(1) - w) + r) + detail::expm1_rest(r, detail::remainder_low(t) + square_low);
    const T e = w + rest;
    p = detail::product(q, p);
    const T n = first + p, d = detail::mul_add(T(2), c, T(1));
    const T ratio = n / d;
    // What the sums e, n and d lost, relative to the result; 2 - e and 0.9 are near enough to 1 / e and 1 / n.
    const T d_low = detail::select(c > T(0.5), T(1) - (d - T(2) * c), T(2) * c - (d - T(1)));
    const T lost = detail::mul_add(rest - (e - w), T(2) - e,
                                   detail::product(T(0.9), (p - (n - first)) - detail::product(ratio, d_low)));
    const T value = detail::product(e, ratio);
    const auto scale = detail::split_exponent(t);
    // The last factor may make a denormal number, so it comes last.
    const T y = detail::product(detail::product(detail::mul_add(value, lost, value), scale.first()), scale.second());
    // Near zero the rounding of q counts; there 1 - erf does not cancel.
    const T near = T(1) - detail::mul_add(x, detail::erf_tail(detail::product(x, x)), x);
    return detail::select(a < T(0.25), near, detail::select(x < 0, T(2) - y, y));
}

} // namespace tapegraph::math
