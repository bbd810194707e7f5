#!/usr/bin/env python3
"""Says how fast a model could be at all, if everything but its products of matrices were free.

For rows of compare.py, whose options it takes, it measures the row beside the peers, asks ours for the calls of a step
(tg::profile), and then measures each product of these calls alone: ours, PyTorch's (MKL, into memory that is there already)
and JAX's, each in the layout of the call and in that with the weights transposed, in predictions also with packed weights.
The sum of the fastest is what the products of a step cost with the fastest products known; operands lie in a cache, and nothing
is added or moved. The fastest peer's time over that sum is the limit: no library with these products could be faster
beside that peer.

    benchmarks/product_limits.py --only 'mlp/' --threads 1 --peers pytorch,jax --ways '^(TapeGraph|PyTorch|PyTorch fused|JAX)$'
    benchmarks/product_limits.py --report benchmarks/results/limits_....json     # prints the tables again

The products of a recurrence are those of its steps; those of attention are its two (in a gradient five) products over all keys,
or half of them where later ones are hidden. Convolutions have none here.
"""

import collections
import csv
import json
import pathlib
import re
import sys

import compare
import contestants
import operations
import protocol
import race
import report


def sizes_of(text):
    """"f32[32,784] f32[] -> f32[32,512]" as lists of extents of the operands, and of the results."""
    return [[[int(n) for n in extents.split(",") if n] for extents in re.findall(r"\w+\[([\d,]*)\]", side)]
            for side in text.split("->")]


def product(x, w, y):
    """(batch, m, n, k), layout of a product of matrices by the extents of its operands and its result; batches of
    the first factor alone are rows."""
    m, n, batch = y[-2], y[-1], 1
    for extent in y[:-2]:
        batch *= extent
    k = max(set(x[-2:]) - {m}, default=m)
    if len(w) == 2:
        m, batch = m * batch, 1
    return (batch, m, n, k), ("n" if x[-1] == k else "t") + ("n" if w[-2] == k else "t")


def products_of(call, kept):
    """Returns [(times, (batch, m, n, k), layout)] of a call of a step."""
    return []


class Limits(compare.Comparison):
    """A comparison that measures the products of each row, too."""
