#!/usr/bin/env python3
"""The functions of vectorised.cpp by JAX (jit) and by PyTorch (eager), where installed: value and gradient in double on one
thread. Prints medians of processor time in microseconds, and the values, which are those of by_hand.

    benchmarks/autodiff/vectorised.py [seconds per function]
"""
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np  # noqa: E402


def numbers(count, low, high, state=12345):
    x = np.empty(count)
    for i in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        x[i] = low + (high - low) * (state >> 8) / 16777216.0
    return x


def problems(lib, sum_of, logsumexp):
    """{title: (function, what it is differentiated by, constants)}"""
    def chain(x):
        return sum_of(lib.log(1 + lib.exp(lib.sin(x) * x)) + lib.sqrt(1 + lib.tanh(x) ** 2))

    def layers(first, second, x):
        return sum_of(lib.tanh(lib.tanh(x @ first.T) @ second.T) ** 2)

    def normal(p, points):
        return -0.5 * sum_of(((points - p[0]) * lib.exp(-p[1])) ** 2) - len(points) * (p[1] + 0.91893853320467274178)

    def mixture(a, m, q, lower, below, points):
        centred = points[None] - m[:, None]
        turned = centred @ lib.swapaxes(lower * below, 1, 2) + lib.exp(q)[:, None] * centred
        terms = (a + q.sum(1))[:, None] - 0.5 * (turned ** 2).sum(2)
        return sum_of(logsumexp(terms, 0)) - len(points) * logsumexp(a, 0)

    w, x = numbers(3 * 4096, -0.2, 0.2).reshape(3, 64, 64), numbers(45, -0.5, 0.5)
    return {
        "functions of 1,000 numbers": (chain, [numbers(1000, -1, 1)], []),
        "two layers of 64, 64 inputs": (layers, [w[0], w[1], w[2]], []),
        "normal log density of 100,000": (normal, [np.array([0.25, -0.125])], [numbers(100000, -2, 2)]),
        "Gaussian mixture, d 2, K 5, n 1,000": (
            mixture, [x[:5], x[5:15].reshape(5, 2), x[15:25].reshape(5, 2), x[25:].reshape(5, 2, 2)],
            [np.array([[0.0, 0], [1, 0]]), numbers(2000, -2, 2).reshape(1000, 2)]),
    }


def by_jax():
    import jax
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    for title, (f, inputs, constants) in problems(jax.numpy, jax.numpy.sum, jax.scipy.special.logsumexp).items():
        call = jax.jit(jax.value_and_grad(f, argnums=tuple(range(len(inputs)))))
        given = [jax.numpy.asarray(each) for each in inputs + constants]
        yield title, lambda call=call, given=given: float(jax.block_until_ready(call(*given))[0])


def by_torch():
    import torch
    torch.set_num_threads(1)
    for title, (f, inputs, constants) in problems(torch, torch.sum, torch.logsumexp).items():
        given = [torch.tensor(each, requires_grad=True) for each in inputs]
        rest = [torch.tensor(each) for each in constants]

        def call(f=f, given=given, rest=rest):
            y = f(*given, *rest)
            torch.autograd.grad(y, given)
            return y.item()
        yield title, call


def median(call, budget):
    times, until = [], time.process_time() + budget
    while time.process_time() < until or len(times) < 5:
        start = time.process_time()
        for _ in range(20):
            call()
        times.append((time.process_time() - start) / 20)
    return 1e6 * sorted(times)[len(times) // 2]


budget = float(sys.argv[1]) if len(sys.argv) > 1 else 1
for name, rows in (("JAX", by_jax), ("PyTorch", by_torch)):
    try:
        for title, call in rows():
            print(f"{title:36}  {name} {median(call, budget):.2f}  (value {call():.12g})", flush=True)
    except ImportError:
        print(f"{name} is not installed")
