#!/usr/bin/env python3
"""SciPy's side of bench_autodiff_minimize: the same problems, starts and tolerance, with derivatives by hand in NumPy.

    benchmarks/autodiff/minimize.py         needs numpy and scipy

Prints value, evaluations, and the median of processor time in microseconds, which is mostly that of Python.
"""
import time

import numpy
import scipy.optimize


def rosenbrock(x):
    b = x[1:] - x[:-1] ** 2
    a = 1 - x[:-1]
    g = numpy.zeros_like(x)
    g[:-1] = -400 * b * x[:-1] - 2 * a
    g[1:] += 200 * b
    return 100 * (b @ b) + a @ a, g


def hessian_product(x, v):
    product = numpy.zeros_like(x)
    product[:-1] = (1200 * x[:-1] ** 2 - 400 * x[1:] + 2) * v[:-1] - 400 * x[:-1] * v[1:]
    product[1:] += 200 * v[1:] - 400 * x[:-1] * v[:-1]
    return product


def median_microseconds(f):
    times = []
    until = time.process_time() + 1
    while time.process_time() < until or len(times) < 5:
        start = time.process_time()
        f()
        times.append(time.process_time() - start)
    return 1e6 * sorted(times)[len(times) // 2]


def show(problem, method, run, value=lambda r: r.fun):
    r = run()
    print(f"{problem:18} {method:28} value {value(r):<12.6g} evaluations {r.nfev:<5} {median_microseconds(run):10.1f} us")


MISRA = ([77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0],
         [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78])
THURBER = ([-3.067, -2.981, -2.921, -2.912, -2.840, -2.797, -2.702, -2.699, -2.633, -2.481, -2.363, -2.322, -1.501, -1.460,
            -1.274, -1.212, -1.100, -1.046, -0.915, -0.714, -0.566, -0.545, -0.400, -0.309, -0.109, -0.103, 0.010, 0.119,
            0.377, 0.790, 0.963, 1.006, 1.115, 1.572, 1.841, 2.047, 2.200],
           [80.574, 84.248, 87.264, 87.195, 89.076, 89.608, 89.868, 90.101, 92.405, 95.854, 100.696, 101.060, 401.672, 390.724,
            567.534, 635.316, 733.054, 759.087, 894.206, 990.785, 1090.109, 1080.914, 1122.643, 1178.351, 1260.531, 1273.514,
            1288.339, 1327.543, 1353.863, 1414.509, 1425.208, 1421.384, 1442.962, 1464.350, 1468.705, 1447.894, 1457.628])


def misra(b, x):
    e = numpy.exp(-b[1] * x)
    return b[0] * (1 - e), numpy.stack([1 - e, b[0] * x * e], 1)


def thurber(b, x):
    powers = numpy.stack([x ** k for k in range(4)], 1)
    top, bottom = powers @ b[:4], 1 + powers[:, 1:] @ b[4:]
    return top / bottom, numpy.concatenate([powers / bottom[:, None], -(top / bottom ** 2)[:, None] * powers[:, 1:]], 1)


def main():
    for n in (10, 1000):
        start = numpy.full(n, 1.5)
        show(f"Rosenbrock {n:,}", "L-BFGS-B",
             lambda: scipy.optimize.minimize(rosenbrock, start, jac=True, method="L-BFGS-B",
                                             options={"gtol": 1e-6, "ftol": 0, "maxiter": 10000, "maxfun": 100000}))
        show(f"Rosenbrock {n:,}", "trust-ncg",
             lambda: scipy.optimize.minimize(rosenbrock, start, jac=True, hessp=hessian_product, method="trust-ncg",
                                             options={"gtol": 1e-6, "maxiter": 10000}))
    for name, (x, y), model, start in (("Misra1a", MISRA, misra, [500, 0.0001]),
                                       ("Thurber", THURBER, thurber, [1000, 1000, 400, 40, 0.7, 0.3, 0.03])):
        x, y = numpy.array(x), numpy.array(y)
        show(name, "least_squares, lm (MINPACK)",
             lambda: scipy.optimize.least_squares(lambda b: model(b, x)[0] - y, start, jac=lambda b: model(b, x)[1], method="lm"),
             lambda r: r.cost)


if __name__ == "__main__":
    main()
