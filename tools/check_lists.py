#!/usr/bin/env python3
"""Checks that tests which go through all of a kind (every loss, every schedule, ...) name all that the headers have,
and that tools/mutate.py names tests that exist.

Prints FILE: MESSAGE for each name that is missing in its test's list; exits 1 if there is any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NN = "include/tapegraph/nn/"
OPS = "include/tapegraph/ops/"


def public_part(text):
    """A header without what stands in namespace detail."""
    return re.sub(r"^namespace detail \{$.*?^\} // namespace detail$", "", text, flags=re.DOTALL | re.MULTILINE)


def structures(having=""):
    """Names of public structures whose text has `having`, and of public aliases."""
    def find(text):
        text = public_part(text)
        names = re.findall(r"^using (\w+) =", text, re.MULTILINE)
        for match in re.finditer(r"^struct (\w+)[^;]*?\{$(.*?)^\};$", text, re.DOTALL | re.MULTILINE):
            if having in match[2]:
                names.append(match[1])
        return names
    return find


def layers_of_masked_values(text):
    """Functions that have a form for masked values, and names that the header's macros give such a form."""
    text = public_part(text)
    names = re.findall(r"^constexpr auto (\w+)\([^()]*\bmasked<", text, re.MULTILINE)
    names += re.findall(r"^TG_(?:KEEPS|STEPS_OVER)_MASK\((\w+),", text, re.MULTILINE)
    names += re.findall(r"requires detail::one_masked<Q, V>\nconstexpr auto (\w+)", text)
    return names


SAME = {"silu"}  # other names of what has one already


def functions(like=""):
    """Names of public functions that a pattern is found in."""
    def find(text):
        names = re.findall(r"^(?:TG_INLINE )?constexpr auto (\w+)\(", public_part(text), re.MULTILINE)
        return [name for name in dict.fromkeys(names) if re.search(like, name) and name not in SAME]
    return find


# What the names are of; the headers that have them; how they are found there; the files one of which has to say tg::NAME or "NAME". The rows
# below the first four are of what is tried where formulas are joined (seams): derivatives to the third against differences from both sides.
LOSSES = [NN + "losses.hpp", NN + "losses/*.hpp"]
LISTS = [
    ("loss", LOSSES, structures("string_view name"), ["tests/nn/every_loss.hpp"]),
    ("metric", [NN + "metrics/*.hpp"], structures("string_view name"), ["tests/nn/every_loss.hpp"]),
    ("schedule", [NN + "optimizers/schedules.hpp"], structures("operator()(std::int64_t"), ["tests/nn/every_schedule.hpp"]),
    ("layer with a mask", [NN + "layers/masking.hpp"], layers_of_masked_values, ["tests/nn/every_masked_layer.hpp"]),
    ("loss", LOSSES, structures("string_view name"), ["tests/nn/losses_seams_test.cpp", "tests/nn/loss_seams_test.cpp"]),
    ("activation", [OPS + "elementwise/activation.hpp", OPS + "elementwise/gated_activation.hpp"], functions(),
     ["tests/operations/activation.cpp", "tests/operations/function.cpp", "tests/operations/elementwise.cpp", "tests/operations/selection.cpp"]),
    ("pooling", [OPS + "pooling/*.hpp"], functions("pooling"), ["tests/operations/pooling.cpp"]),
    ("norm", [OPS + "reduction/norm.hpp", OPS + "reduction/moments.hpp"], functions(), ["tests/operations/reduction.cpp"]),
    ("normalization", [NN + "layers/*.hpp"], functions("normaliz"), ["tests/nn/normalization_seams_test.cpp"]),
]


def main():
    errors = []
    for what, patterns, find, tests in LISTS:
        text = "".join((ROOT / test).read_text(encoding="utf-8") for test in tests)
        listed = set(re.findall(r"(?:\btg::|\bTG_KEPT\(|\")(\w+)", text))
        names = [(name, path) for pattern in patterns for path in sorted(ROOT.glob(pattern))
                 for name in find(path.read_text(encoding="utf-8"))]
        if not names:
            errors.append(f"tools/check_lists.py: no {what} was found in {', '.join(patterns)}")
        errors += [f"{path.relative_to(ROOT)}: the {what} {name} is missing in {' or '.join(tests)}"
                   for name, path in names if name not in listed]
    tool = (ROOT / "tools" / "mutate.py").read_text(encoding="utf-8")
    errors += [f"tools/mutate.py: there is no tests/{name}.cpp" for name in sorted(set(re.findall(r'"([\w/]+/\w+_test)"', tool)))
               if not (ROOT / "tests" / f"{name}.cpp").exists()]
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
