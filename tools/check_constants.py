#!/usr/bin/env python3
"""Checks numbers in layers, losses, optimizers and operations that are 0 or infinite in half: -1e9 for what a softmax does not
see, 1e-30 below a logarithm. Each must stand in the table below with the reason why it meets no 16-bit value.

Prints FILE:LINE: MESSAGE for each that does not, and for each line of the table that no file has; exits 1 if there is any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include/tapegraph"

HOST = "an option, a step or a duration, on the host"
DOUBLE = "meets double alone, in which norms and products of shorter types are computed, too"
FLOAT = "meets float or double alone: {}"
REASONS = {
    ("ops/attention/attention_formula.hpp", "1e30"): FLOAT.format("scores"),
    ("nn/layers/augmentation.hpp", "1e300"): HOST,
    ("nn/layers/noise.hpp", "1e300"): HOST,
    ("nn/layers/group_normalization.hpp", "1e-12"): DOUBLE,
    ("nn/regularizer.hpp", "1e-12"): DOUBLE,
    ("nn/losses/ctc.hpp", "1e30"): FLOAT.format("outputs of models"),
    ("nn/optimizers/nadam.hpp", "1e-20"): HOST,
    ("nn/optimizers/schedules.hpp", "1e-9"): HOST,
    ("nn/optimizers/loss_scaling.hpp", "18446744073709551616.0"): FLOAT.format("the scale of a loss"),
    ("nn/optimizers/weight_average.hpp", "0x1p127"): HOST,
    ("ops/cumulative/wide_number.hpp", "0x1p200"): DOUBLE,
    ("ops/pooling/lp_pooling.hpp", "1e9"): HOST,
    ("ops/reduction/length.hpp", "0x1p-900"): DOUBLE,
    ("ops/reduction/length.hpp", "0x1p960"): DOUBLE,
    ("ops/random/random.hpp", "1e-30"): FLOAT.format("exponential numbers, which categorical draws in float"),
}

KERNEL = re.compile(r"(^|_)(cpu|kernel|kernels)(_|\.|$)")
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-fA-F.]+p[-+]?\d+|\d+\.?\d*(?:e[-+]?\d+)?)(?![\w.])", re.IGNORECASE)
MOST = 65520            # rounds to infinity from here on
LEAST = 2.0 ** -25      # and to 0 up to here


def without_comments(text):
    """The code alone, line by line."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)


def value_of(literal):
    if literal.lower().startswith("0x"):
        return float.fromhex(literal)
    return float(literal)


def main():
    errors, met = [], set()
    for path in sorted(path for folder in ("model", "nn", "ops", "train") for path in INCLUDE.glob(f"{folder}/**/*.hpp")):
        name = path.relative_to(INCLUDE).as_posix()
        if KERNEL.search(path.name):
            continue
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            for literal in NUMBER.findall(line):
                floating = any(c in literal.lower() for c in ".ep")
                if not floating or not (value_of(literal) >= MOST or 0 < value_of(literal) <= LEAST):
                    continue
                met.add((name, literal))
                if (name, literal) not in REASONS:
                    errors.append(f"include/tapegraph/{name}:{number}: {literal} is "
                                  f"{'infinite' if value_of(literal) > 1 else '0'} in half: compute in float, or say "
                                  "in tools/check_constants.py why it meets no half")
    for name, literal in sorted(REASONS.keys() - met):
        errors.append(f"tools/check_constants.py: include/tapegraph/{name} has no {literal}")
    for error in errors:
        print(error)
    print(f"check_constants.py: {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
