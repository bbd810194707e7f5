#!/usr/bin/env python3
"""Fits minimax polynomials for include/tapegraph/core/math/: Remez exchange in 60 digits,
coefficients rounded at the end.

Each row approximates g on [a, b] so that weight(x) * |g(x) - p(x)| is smallest; the weight turns
the error of g into the relative error of the function that uses it. Run: `fit_polynomial.py [name
...]` (needs mpmath).
"""
import sys

from mpmath import (asin, atan, atanh, cos, erf, erfc, exp, expm1, fabs, log, log1p, lu_solve, matrix, mp, mpf, pi, sin, sinh, sqrt, tanh)

mp.dps = 60


def remez(g, weight, a, b, degree, rounds=12, grid=600):
    """Returns coefficients (lowest first) and the weighted error of the minimax polynomial."""
    n = degree + 2
    points = [(a + b) / 2 - (b - a) / 2 * cos(pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    mesh = [(a + b) / 2 - (b - a) / 2 * cos(pi * (i + mpf(1) / 3) / grid) for i in range(grid)]
    targets = [(x, g(x), weight(x)) for x in mesh]
    for _ in range(rounds):
        system, right = matrix(n, n), matrix(n, 1)
        for i, x in enumerate(points):
            for j in range(degree + 1):
                system[i, j] = x**j
            system[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = g(x)
        solution = lu_solve(system, right)
        c = [solution[j] for j in range(degree + 1)]
        errors = [w * (y - sum(k * x**j for j, k in enumerate(c))) for x, y, w in targets]
        # One extremum per run of equal signs; keep the n consecutive ones with the largest smallest error.
        runs = []
        for (x, _, _), e in zip(targets, errors):
            if runs and (runs[-1][1] > 0) == (e > 0):
                if fabs(e) > fabs(runs[-1][1]):
                    runs[-1] = (x, e)
            else:
                runs.append((x, e))
        if len(runs) < n:
            break
        start = max(range(len(runs) - n + 1), key=lambda s: min(fabs(r[1]) for r in runs[s:s + n]))
        points = [r[0] for r in runs[start:start + n]]
        worst = max(fabs(e) for e in errors)
        if worst < fabs(solution[degree + 1]) * mpf("1.02"):
            break
    return c, max(fabs(e) for e in errors)


half_ln2 = log(2) / 2 * mpf("1.01")
quarter_pi = pi / 4 * mpf("1.1")
octant = sqrt(2) - 1
tiny = mpf(10) ** -6
one = mpf(1)


def scaled_erfc(q, c):
    a = c * (1 + q) / (1 - q)
    return (1 + 2 * a) * exp(a**2) * erfc(a)


def normal_tail(q, c):
    a = c * (1 + q) / (1 - q)
    return exp(a**2 / 2) * erfc(a / sqrt(mpf(2))) * (a + c) / 2


def tail(a):
    return erfc(a / sqrt(mpf(2))) / 2


def density(a):
    return exp(-a**2 / 2) / sqrt(2 * pi)


def tail_root(a):
    return mpf("1.5") * (2 * tail(a)) ** (-one / 8)


def slope_root(a):  # coefficients near those with which the other polynomial errs least
    z = a**2
    return (mpf("1.5") + z * (mpf("0.09315") + z * (mpf("0.0023295") + z * mpf("8.424e-5")))) ** 8


# Errors allowed in gelu and its slope: a share of the value, at most 1e-8.
def allowed(size):
    return 1 / (mpf(10) ** 8 + 1 / (mpf("4e-4") * size))


# name: (g, weight, a, b, degree for float, degree for double)
rows = {
    "exp": (lambda r: (expm1(r) - r) / r**2, lambda r: fabs(r**2 / expm1(r)), -half_ln2, half_ln2, 4, 10),
    # 2^r = 1 + r p(r), r the rest of the rounded logarithm
    "exp2": (lambda r: expm1(r * log(2)) / r, lambda r: fabs(r) / 2**r, -mpf("0.505"), mpf("0.506"), 5, None),
    "log": (lambda f: (log1p(f) - f + f**2 / 2) / f**3, lambda f: fabs(f**3 / log1p(f)),
            sqrt(one / 2) - 1, sqrt(mpf(2)) - 1, 7, None),
    # z = s^2 with s = f / (2 + f): atanh(s) = s + s z p(z)
    "log_s": (lambda z: (2 * atanh(sqrt(z)) / sqrt(z) - 2) / z, lambda z: z / 2, tiny, mpf("0.02945"), None, 6),
    "pow_log": (lambda z: (atanh(sqrt(z)) / sqrt(z) - 1 - z / 3) / z**2, lambda z: z**2, tiny, mpf("0.02945"), None, 8),
    "sin": (lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z * sqrt(z) / sin(sqrt(z)), tiny, quarter_pi**2, 3, 6),
    "cos": (lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / cos(sqrt(z)), tiny, quarter_pi**2, 2, 6),
    "atan": (lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z, tiny, octant**2, 4, 12),
    "asin": (lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z, tiny, one / 4, 4, 12),
    "sinh": (lambda z: (sinh(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z, tiny, one, 3, 7),
    "tanh": (lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z, tiny, mpf("0.315"), 4, 11),
    "erf_small": (lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: one, tiny, mpf("0.81"), 6, 12),
    "erf_large_f": (lambda a: log(erfc(a)), lambda a: erfc(a) / erf(a), mpf("0.9"), mpf(4), 8, None),
    # erfc(a) = e^(-a^2) p(q) / (1 + 2 a), q = (a - c) / (a + c)
    "erfc_f": (lambda q: scaled_erfc(q, 2), lambda q: 1 / scaled_erfc(q, 2), -one, (mpf("10.1") - 2) / (mpf("10.1") + 2), 10, None),
    "erfc_d": (lambda q: scaled_erfc(q, 4), lambda q: 1 / scaled_erfc(q, 4), -one, (mpf("27.3") - 4) / (mpf("27.3") + 4), None, 22),
    # P(-a) = e^(-a^2 / 2) p(q) / (a + c), q = (a - c) / (a + c)
    "normal_d": (lambda q: normal_tail(q, 7), lambda q: 1 / normal_tail(q, 7), -one, (mpf("38.7") - 7) / (mpf("38.7") + 7), None, 22),
    # gelu: P(-a) = 1.5^8 / (2 r^8), r = 1.5 + a p(a)
    "normal_root": (lambda a: (tail_root(a) - mpf("1.5")) / a,
                    lambda a: 8 * a * tail(a) / tail_root(a) / allowed(tail(a)), mpf("0.001"), mpf(6), 9, None),
    # its slope: P(-a) - a p(a) = (1.5^8 / 2 + a p(a)) / r(a^2)^8
    "gelu_slope": (lambda a: ((tail(a) - a * density(a)) * slope_root(a) - mpf("12.814453125")) / a,
                   lambda a: a / slope_root(a) / allowed(tail(a) + a * density(a)), mpf("0.001"), mpf(6), 9, None),
    # softplus: log(1 + e) = 2 s + s z p(z), z = s^2, s = e / (2 + e), e <= 1
    "log1p_unit": (lambda z: (2 * atanh(sqrt(z)) / sqrt(z) - 2) / z, lambda z: z / 2, tiny, one / 9, 4, 10),
    "erf_large_d": (lambda a: log(erfc(a)), lambda a: erfc(a) / erf(a), mpf("0.9"), mpf(6), None, 21),
}

if __name__ == "__main__":
    import struct

    for name in sys.argv[1:] or rows:
        g, weight, a, b, single, double = rows[name]
        for degree, suffix in ((single, "f"), (double, "")):
            if degree is None:
                continue
            c, error = remez(g, weight, a, b, degree)
            print(f"{name}{suffix or 'd'} degree {degree}, error 2^{float(log(error, 2)):.1f}")
            if suffix:
                words = [f"{struct.unpack('f', struct.pack('f', float(k)))[0]:.9g}" for k in c]
                words = [w if "." in w or "e" in w else w + ".0" for w in words]
            else:
                words = [repr(float(k)) for k in c]
            print("    " + ", ".join(w + suffix for w in words))
