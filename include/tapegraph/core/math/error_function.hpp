#pragma once

#include <tapegraph/core/math/exponential.hpp>

namespace tapegraph::math {

/// The error function: up to 0.9, x + x p(x^2); above, 1 - e^g(x) with g = log(erfc x) as a polynomial, whose error
/// counts less and less as erfc vanishes. Coefficients: tools/fit_polynomial.py (Remez, relative error of erf: 2^-31
/// float, 2^-65 double).
template <class T>
TG_HD constexpr T erf(T x) {
    constexpr bool single = sizeof(T) == sizeof(float);
    const T a = abs(x), z = detail::product(a, a);
    const T c = detail::blend(a > T(single ? 4 : 6), T(single ? 4 : 6), a); // there erf rounds to 1
    T p, g;
    if constexpr (single) {
        p = detail::polynomial(z, 0.128379166f, -0.376126349f, 0.112837195f, -0.0268607531f, 0.0052044359f,
                               -0.00081819261f, 8.53883394e-05f);
        g = detail::polynomial(c, 0.000150611682f, -1.12938178f, -0.633663356f, -0.107858166f, 0.0247744657f,
                               -0.00399407279f, 0.000378839293f, -1.13092201e-05f, -7.37641358e-07f);
    } else {
        p = detail::polynomial(z, 0.1283791670955126, -0.37612638903183754, 0.112837916709551, -0.026866170645124195,
                               0.0052239776253421326, -0.0008548327015004245, 0.0001205533252375538,
                               -1.4925633695295662e-05, 1.6461698635027334e-06, -1.635869952656244e-07,
                               1.4723756492614945e-08, -1.1653704389281652e-09, 6.497556905866099e-11);
        g = detail::polynomial(c, 2.133345841427813e-08, -1.1283794450251903, -0.6366180612879343, -0.10277922594185174,
                               0.01914652998786122, 0.0001721485435457088, -0.0016370964396620986,
                               0.0005148983558034126, 5.1638792903929766e-05, -0.00012968888344829974,
                               7.453207127573467e-05, -2.8370923785803124e-05, 8.165234303593275e-06,
                               -1.8420554080810396e-06, 3.269142093758065e-07, -4.487907542787604e-08,
                               4.5744761666948834e-09, -3.159174397885022e-10, 1.1000563245439906e-11,
                               2.2580671245599044e-13, -3.994287851045373e-14, 1.244195109754724e-15);
    }
    const T near = detail::mul_add(a, p, a);
    const T far = T(1) - exp(g);
    return copysign(detail::blend(a < T(0.9), near, far), x);
}

} // namespace tapegraph::math
