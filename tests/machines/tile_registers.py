#!/usr/bin/env python3
"""Whether the tiles of products stay in an AArch64 processor's registers, read from the machine code: no such machine is needed.

    tests/machines/tile_registers.py [--compiler aarch64-linux-gnu-g++] [--least 16] [ARGUMENT ...]

Compiles cpu/gemm_kernel.hpp with -O2 and the arguments. For each tile it prints the multiply-adds of its inner loop, their
accumulators, and the accesses of the stack there, each of which is a spill. Exits 1 where a tile spills, where its multiply-adds are
not rows times vectors, or where the largest has fewer than --least accumulators; 77 where there is no such compiler.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = """#include <tapegraph/cpu/gemm_kernel.hpp>
template const tapegraph::cpu::tile_kernels<float>& tapegraph::cpu::active_tile_kernels<float>();
template const tapegraph::cpu::tile_kernels<double>& tapegraph::cpu::active_tile_kernels<double>();
"""
FUNCTION = re.compile(r"^[0-9a-f]+ <void .*::run<(float|double), (\d+), (\d+)>\(")
INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\s+(\S+)\s*([^/<]*)")


def inner_loop(body):
    """The instructions of the loop without another one in it that has the most multiply-adds."""
    best = []
    for at, (_, name, operands) in enumerate(body):
        target = re.search(r"\b([0-9a-f]+)\s*$", operands) if name.startswith(("b.", "cbnz", "tbnz")) or name == "b" else None
        begin = next((i for i in range(at) if target and body[i][0] == int(target[1], 16)), None)
        if begin is None:
            continue
        loop = body[begin:at + 1]
        if sum(one[1] == "fmla" for one in loop) > sum(one[1] == "fmla" for one in best) or not best:
            best = loop
    return best


def tiles(listing):
    found, body = {}, None
    for line in listing.splitlines():
        if line.endswith(">:"):
            match = FUNCTION.match(line)
            body = found.setdefault((match[1], int(match[2]), int(match[3])), []) if match else None
        elif body is not None and (match := INSTRUCTION.match(line)):
            body.append((int(match[1], 16), match[2], match[3].strip()))
    return {tile: inner_loop(body) for tile, body in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="aarch64-linux-gnu-g++")
    parser.add_argument("--least", type=int, default=16)
    given, more = parser.parse_known_args()
    if shutil.which(given.compiler) is None:
        print(f"tile_registers.py: there is no {given.compiler}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "tiles.cpp"
        source.write_text(SOURCE, encoding="utf-8")
        subprocess.run([given.compiler, "-std=c++20", "-O2", f"-I{ROOT / 'include'}", "-c", str(source), "-o", f"{folder}/tiles.o", *more],
                       check=True)
        dump = given.compiler.replace("g++", "objdump")
        listing = subprocess.run([dump, "-d", "-C", "--no-show-raw-insn", f"{folder}/tiles.o"], capture_output=True, text=True,
                                 check=True).stdout
    errors, most = 0, {}
    for (kind, rows, vectors), loop in sorted(tiles(listing).items()):
        sums = [operands.split(".")[0] for _, name, operands in loop if name == "fmla"]
        stack = sum("[sp" in operands or "[x29" in operands for _, _, operands in loop)
        wrong = len(sums) != rows * vectors or len(set(sums)) != len(sums) or stack > 0
        errors += wrong
        most[kind] = max(most.get(kind, 0), len(set(sums)))
        print(f"{kind:6} {rows:2} rows x {vectors}: {len(loop):3} instructions, {len(sums):2} multiply-adds, "
              f"{len(set(sums)):2} accumulators, {stack} accesses of the stack{'  WRONG' if wrong else ''}")
    for kind in ("float", "double"):
        if most.get(kind, 0) < given.least:
            errors += 1
            print(f"{kind}: {most.get(kind, 0)} accumulators at most, {given.least} expected")
    print(f"tile_registers.py: {errors} errors")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
