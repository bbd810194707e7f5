#!/usr/bin/env python3
"""Checks that the tests on the imitated device notice kernels that are off by one. Makes one change
of a device header at a time (an end, a part of k, a number of steps, a group of copies that is not
waited for), compiles a test of that kernel with g++, runs it, and prints the changes that survive.

    tools/mutate_kernels.py --list               # the changes it knows
    tools/mutate_kernels.py                      # all of them: about a minute each
    tools/mutate_kernels.py --only tensor_gemm   # those whose line in --list matches

Barriers, loads past the cache, releases, fragments and the zeros after an operand's end are left
out while a test runs (tests/simt/mutation.hpp), in every run of the tests. The changes here are
made in the text, because the end of a loop is text. The tree itself is not modified. Run this by
hand."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KERNELS = os.path.join("cuda", "tapegraph", "cuda", "kernels")
FLAGS = ["-std=c++20", "-O1", "-w", "-ffp-contract=off", "-DTG_INSTRUCTION_SETS=1",
         "-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=10000000"]
SECONDS = 300  # a test that runs longer has noticed the change

# Header, the text to replace, which occurs once, its replacement, the test that should notice.
CONVOLUTION, RECURRENT, STEPS = "convolution_kernels_test", "lstm_test", "gru_test"
CHANGES = [
    ("operand", "end = limit < k ? limit : k;", "end = limit < k ? limit : k - 1;", "convolution_test"),
    ("operand", "end = limit < k ? limit : k;", "end = limit < k ? limit - 1 : k;", "convolution_test"),
    ("operand_walk", "const unsigned there = step_ < left ? inside_ : 0;",
     "const unsigned there = step_ <= left ? inside_ : 0;", CONVOLUTION),
    ("operand_walk", "const unsigned there = step_ < left ? inside_ : 0;",
     "const unsigned there = step_ + 1 < left ? inside_ : 0;", CONVOLUTION),
    ("operand_walk", "left = static_cast<int>(all * (split + 1) / p.splits) - begin;",
     "left = static_cast<int>(all * (split + 1) / p.splits) - begin - 1;", CONVOLUTION),
    ("operand_walk", "if (at < p.inner()) return false;", "if (at <= p.inner()) return false;", CONVOLUTION),
    ("tensor_gemm", "step < longest_chain / depth && (step < 0 || done < loaded)",
     "step < longest_chain / depth && (step < 0 || done + 1 < loaded)", CONVOLUTION),
    ("tensor_gemm", "wait_copies<Stages - 2>();", "wait_copies<Stages - 1>();", CONVOLUTION),
    ("tensor_gemm", "stage = stage + 1 == Stages ? 0 : stage + 1;", "stage = stage == Stages - 2 ? 0 : stage + 1;",
     CONVOLUTION),
    ("implicit_gemm", "for (int i = 0; i < BK; ++i) {", "for (int i = 0; i + 1 < BK; ++i) {", CONVOLUTION),
    ("step_gemm", "for (int k = 0, buffer = 0; k < end; k += Tile::BK, buffer ^= 1) {",
     "for (int k = 0, buffer = 0; k + 1 < end; k += Tile::BK, buffer ^= 1) {", RECURRENT),
    ("step_gemm", "for (int i = 0; i < Tile::BK; ++i) {", "for (int i = 0; i + 1 < Tile::BK; ++i) {", RECURRENT),
    ("recurrent_resident", "for (int step = 0; step < s.time; ++step) {",
     "for (int step = 0; step + 1 < s.time; ++step) {", RECURRENT),
    ("recurrent_resident", "return k < s.units && u < s.units && gate >= 0", "return k + 1 < s.units && u < s.units && gate >= 0",
     STEPS),
]


def described(change):
    header, before, after, test = change
    return f"{header}.cuh: {before.strip()} -> {after.strip()} ({test})"


def survives(change, folder, main):
    """Returns True, False, or what does not compile."""
    header, before, after, test = change
    source = os.path.join(ROOT, KERNELS, header + ".cuh")
    with open(source, encoding="utf-8") as file:
        text = file.read()
    if text.count(before) == 0:
        return f"'{before}' is not in {header}.cuh"
    tree = os.path.join(folder, "cuda")
    if not os.path.exists(tree):
        shutil.copytree(os.path.join(ROOT, "cuda"), tree)
    target = os.path.join(folder, KERNELS, header + ".cuh")
    with open(target, "w", encoding="utf-8") as file:
        file.write(text.replace(before, after, 1))
    try:
        program = os.path.join(folder, "program")
        built = subprocess.run(["g++", *FLAGS, "-I", os.path.join(ROOT, "include"), "-I", tree, "-I", os.path.join(ROOT, "tests"),
                                "-I", os.path.join(ROOT, "examples"), os.path.join(ROOT, "tests", "cuda", test + ".cpp"), main,
                                "-o", program], capture_output=True, text=True, check=False)
        if built.returncode != 0:
            return "does not compile: " + next((l for l in built.stderr.splitlines() if "error" in l), "?")
        try:
            run = subprocess.run([program, "--abort-after=1"], capture_output=True, timeout=SECONDS, check=False)
            return run.returncode == 0
        except subprocess.TimeoutExpired:
            return False
    finally:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression")
    options = parser.parse_args()
    changes = [c for c in CHANGES if re.search(options.only, described(c))]
    if options.list:
        print("\n".join(described(c) for c in changes))
        return 0
    survived = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "main.o")
        subprocess.run(["g++", *FLAGS, "-I", os.path.join(ROOT, "tests"), "-c", os.path.join(ROOT, "tests", "main.cpp"), "-o", program],
                       check=True)
        for change in changes:
            found = survives(change, folder, program)
            survived += found is True
            failed += isinstance(found, str)
            word = found if isinstance(found, str) else "SURVIVES" if found else "noticed"
            print(f"{word}: {described(change)}", flush=True)
    print(f"{len(changes)} changes, {survived} survived, {failed} could not be made")
    return 1 if survived or failed else 0


if __name__ == "__main__":
    sys.exit(main())
