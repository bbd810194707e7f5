#!/usr/bin/env python3
"""Combines the output of tests/gpu_plan.sh in a folder into one page, in Markdown: gpu_page.py
FOLDER > benchmarks/results/gpu-DATE-NAME.md"""

import pathlib
import re
import sys

FOLDER = pathlib.Path(sys.argv[1])


def lines(name):
    path = FOLDER / name
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("| " + " | ".join("---" if i == 0 else "---:" for i in range(len(head))) + " |")
    for row in rows:
        print("| " + " | ".join([*row, *[""] * (len(head) - len(row))][:len(head)]) + " |")
    print()


def print_stages(results):
    """Returns a line for each stage, and one for each that failed."""
    for stage in dict.fromkeys(row[0] for row in results):
        rows = [row for row in results if row[0] == stage and row[1] != "all"]
        good = [row for row in rows if row[2] == "ok"]
        counts = [sum(int(n) for row in good for n in re.findall(what + r": (\d+) \|", row[4])) for what in ("test cases", "assertions")]
        seconds = next((row[3] for row in results if row[0] == stage and row[1] == "all"), "?")
        if good:
            print(f"- {stage}: {len(good)} of {len(rows)} programs passed, with {counts[0]} cases and {counts[1]:,} assertions ({seconds} s)")
        left = [row[1] for row in rows if row[2].startswith("left out")]
        if left:
            print(f"- {stage}, left out for want of time: {', '.join(left)}")
        for row in rows:
            if row[2] != "ok" and not row[2].startswith("left out"):
                print(f"- {stage}, {row[1]}: {row[2]}" + (f"; {row[4].strip().replace(' |', ',')}" if row[4].strip() else ""))
    print()


def main():
    results, steps = lines("results.tsv"), lines("steps.tsv")
    about = (FOLDER / "gpu.txt").read_text(encoding="utf-8").splitlines() if (FOLDER / "gpu.txt").is_file() else ["a GPU"]
    print("\n\n".join([f"# {about[0]}", *about[1:]]) + "\n")
    if results:
        print("## What ran\n")
        print_stages([row for row in results if len(row) == 5])
    if len(steps) > 1:
        print("## Steps\n\nMicroseconds, medians of turns; floor: the products alone at the measured rate; ratio: the faster of PyTorch's "
              "two over graph mode (benchmarks/gpu_steps.py).\n")
        head = steps[0][:-1]
        table(head, [row for row in steps[1:] if len(row) >= len(head)])
        complaints = [f"- {row[0]}: {row[-1]}" for row in steps[1:] if row[-1] and (len(row) > len(head) or len(row) == 2)]
        print("\n".join(complaints) + "\n" if complaints else "")
    layers = FOLDER / "layers.md"
    if layers.is_file():
        print("## Kernels\n\n" + layers.read_text(encoding="utf-8"))


main()
