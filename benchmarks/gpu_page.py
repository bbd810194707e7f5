#!/usr/bin/env python3
"""Puts what tests/gpu_plan.sh left in a folder into one page, in Markdown: gpu_page.py FOLDER > benchmarks/results/gpu-DATE-NAME.md"""

import pathlib
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


def main():
    results, steps = lines("results.tsv"), lines("steps.tsv")
    print(f"# {(FOLDER / 'gpu.txt').read_text(encoding='utf-8').strip() if (FOLDER / 'gpu.txt').is_file() else 'a GPU'}\n")
    if results:
        print("## What ran\n")
        table(["stage", "what", "how it ended", "seconds", "figures"], results)
    if len(steps) > 1:
        print("## Steps\n\nMicroseconds, medians of turns; floor: the products alone at the measured rate; ratio: the faster of PyTorch's "
              "two over graph mode (benchmarks/gpu_steps.py).\n")
        head, complaints = steps[0][:-1], []
        table(head, [row for row in steps[1:] if len(row) >= len(head)])
        complaints = [f"- {row[0]}: {row[-1]}" for row in steps[1:] if row[-1] and (len(row) > len(head) or len(row) == 2)]
        print("\n".join(complaints) + "\n" if complaints else "")
    layers = FOLDER / "layers.md"
    if layers.is_file():
        print("## Kernels\n\n" + layers.read_text(encoding="utf-8"))


main()
