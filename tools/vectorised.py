#!/usr/bin/env python3
"""Checks that the compiler vectorises the loop of every elementwise operation.

    tools/vectorised.py [--compiler g++] [--chains 24] [--seed 1] [--verbose] [more compiler arguments]

Kernels are scalar code that must vectorise at -O2 (docs/design.md); a branch or a struct in the
wrong place silently makes one ten times slower. For every `struct NAME : map_op<N>` (or series_op,
predicate_op) of include/tapegraph/ops a region with that one operation is compiled for AVX2 and
AVX-512, in float and double, and the assembly of its loop is checked. The same is done for regions
of random chains of operations, which combine conditionals. For the cells of recurrent layers g++
reports which loops after TG_SIMD it has vectorised. Prints what is not vectorised; exits 1 if there is
any. --verbose lists instructions in each vector loop.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPERATION = re.compile(r"^struct (\w+)\s*:\s*(map_op|series_op|predicate_op)<(\d)>", re.MULTILINE)
# Built on libm's fmod, which is exact and scalar.
SCALAR = {"floor_divide_op", "remainder_op"}
# Operations on conditions, and those that exist only for other element types.
BOOLEAN = re.compile(r"static constexpr int condition_operands = (\d)")


def operations():
    """Returns (name, operands, leading conditions) of every elementwise operation that is not a
    template."""
    for path in sorted((ROOT / "include" / "tapegraph" / "ops").rglob("*.hpp")):
        text = path.read_text()
        for match in OPERATION.finditer(text):
            body = text[match.end():text.index("\n};", match.end())]
            conditions = BOOLEAN.search(body)
            if "value(bool" in body and not conditions:
                continue  # logic: operands and result are bytes
            if match.group(1) in SCALAR or "template" in text[max(0, match.start() - 40):match.start()].split("}")[-1]:
                continue
            yield match.group(1), int(match.group(3)), int(conditions.group(1)) if conditions else 0, match.group(2)


def source(names):
    lines = ["#include <tapegraph/cpu/region.hpp>", "#include <tapegraph/ops/ops.hpp>", "using namespace tapegraph;",
             "using namespace tapegraph::detail;",
             # Without the code around a loop (cpu/tile.hpp).
             "template <class Body> struct loops_of {",
             "    template <class Isa> TG_INLINE static void run(const cpu::tile* t) { Body::template run<1>(*t); }",
             "};"]
    for name, operands, conditions, base in names:
        for element in ("f32", "f64"):
            slots = ", ".join(f"dtype::{'boolean' if i < conditions else element}" for i in range(operands))
            arguments = ", ".join(str(i) for i in range(operands))
            result = "boolean" if base == "predicate_op" else element
            region = (f"region<slots<{slots}>, results<{operands}>, "
                      f"instruction<{name}, dtype::{result}, {arguments}>>")
            for isa in ("avx2", "avx512"):
                lines.append(f"template void cpu::on<cpu::{isa}>::run<loops_of<cpu::region_body<{region}>>>(const cpu::tile*);")
    return "\n".join(lines) + "\n"


def chains(names, count, seed):
    """Returns regions of two to four operations and selections, each reading the one before: a
    struct `chainN` each."""
    draw = random.Random(seed)
    usual = [n for n in names if n[3] != "predicate_op" and n[2] == 0 and not n[0].startswith("logical")]
    conditional = [n for n in usual if n[0].split("_")[0] in {"maximum", "minimum", "relu", "clip", "abs", "sign", "exp"}]
    lines, described = [], []
    for chain in range(count):
        element = draw.choice(["f32", "f32", "f64"])
        slots = draw.randint(1, 3)
        kinds, steps = [element] * slots, []
        for _ in range(draw.randint(2, 4)):
            numbers = [i for i, kind in enumerate(kinds) if kind == element]
            if draw.random() < 0.3:
                steps.append(("greater_op", "boolean", [numbers[-1], draw.choice(numbers)]))
                kinds.append("boolean")
                steps.append(("where_op", element, [len(kinds) - 1, numbers[-1], draw.choice(numbers)]))
            else:
                name, operands, *_ = draw.choice(usual if draw.random() < 0.5 else conditional)
                steps.append((name, element, [numbers[-1]] + [draw.choice(numbers) for _ in range(operands - 1)]))
            kinds.append(element)
        spelled = ", ".join(f"instruction<{name}, dtype::{kind}, {', '.join(map(str, at))}>" for name, kind, at in steps)
        # Every other one has everything that it computes as its results.
        numbers = [i for i, kind in enumerate(kinds) if kind == element and i >= slots]
        body, wanted = ("merged_region_body", numbers) if chain % 2 else ("region_body", numbers[-1:])
        lines.append(f"struct chain{chain}z : loops_of<cpu::{body}<region<slots<{', '.join(['dtype::' + element] * slots)}>, "
                     f"results<{', '.join(map(str, wanted))}>, {spelled}>>> {{}};")
        lines.append(f"template void cpu::on<cpu::avx512>::run<chain{chain}z>(const cpu::tile*);")
        described.append(f"{element}, {slots} operands, {len(wanted)} results: " + "; ".join(f"{name} {at}" for name, _, at in steps))
    for element, number in (("f32", "float"), ("f64", "double")):  # what an accuracy counts
        tests = ", ".join(f"instruction<{name}_op, dtype::boolean, {at}>" for name, at in (("greater", "0, 1"), ("greater", "2, 3"), ("equal", "4, 5")))
        lines.append(f"struct chain{len(described)}z : loops_of<cpu::region_body<region<slots<{', '.join(['dtype::' + element] * 4)}>, "
                     f"results<7>, {tests}, instruction<cast_op<{number}>, dtype::{element}, 6>>>> {{}};")
        lines.append(f"template void cpu::on<cpu::avx512>::run<chain{len(described)}z>(const cpu::tile*);")
        described.append(f"{element}: equal answers of two comparisons as numbers")
    return "\n".join(lines) + "\n", described


def loops(assembly):
    """Returns (function, instructions, vector instructions) of the shortest vectorised loop of each
    function."""
    label = re.compile(r"^(\.L\w+):")
    jump = re.compile(r"^\s+j\w+\s+(\.L\w+)")
    for function in re.split(r"^(?=_ZN?\w+:)", assembly, flags=re.MULTILINE)[1:]:
        name = function[:function.index(":")]
        lines = function.split("\n")
        places, best = {}, (0, 0)
        for i, line in enumerate(lines):
            if m := label.match(line):
                places[m.group(1)] = i
            elif (m := jump.match(line)) and m.group(1) in places:
                part = [s for s in lines[places[m.group(1)]:i + 1] if re.match(r"\s+[a-z]", s)]
                wide = sum(bool(re.search(r"%[yz]mm\d", s)) for s in part)
                if wide > 0 and (best[1] == 0 or len(part) < best[0]):
                    best = (len(part), wide)
        yield name, *best


def cells(compiler, more):
    """Returns (cell, function, whether its loop is vectorised) for every loop after TG_SIMD of a step
    of every recurrent cell."""
    header = ROOT / "include" / "tapegraph" / "ops" / "recurrent" / "cpu_step.hpp"
    text = header.read_text().split("\n")
    pragmas = [i + 1 for i, line in enumerate(text) if line.strip() == "TG_SIMD"]
    for cell in ("lstm_cell", "gru_cell<true>", "gru_cell<false>", "simple_rnn_cell"):
        program = f"""
#include <tapegraph/ops/recurrent/cpu_{cell.split('_cell')[0]}_cell.hpp>
#include <tapegraph/ops/recurrent/cpu.hpp>
namespace tapegraph::cpu {{
template void recurrent_forward<{cell}, float>(const recurrent_shape<float>&, step_rows<const float>,
                                               const recurrent_results<float>&, void*);
template void recurrent_backward<{cell}, float>(const recurrent_shape<float>&, const recurrent_gradients<float>&, void*);
}}"""
        done = subprocess.run([compiler, "-std=c++20", "-O2", "-DTG_INSTRUCTION_SETS=4", "-fopt-info-vec",
                               f"-I{ROOT / 'include'}", "-x", "c++", "-S", "-o", "/dev/null", "-", *more],
                              input=program, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr[:4000])
        found = {int(line) for line in re.findall(header.name + r":(\d+):.*vectorized using (?:32|64) byte", done.stderr)}
        for first, end in zip(pragmas, [*pragmas[1:], len(text)]):
            function = next(m.group(1) for line in reversed(text[:first]) if (m := re.search(r"\bvoid (\w+)\(", line)))
            if function != "reset_row" or cell == "gru_cell<false>":
                yield cell, function, any(first < line < end for line in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--chains", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options, more = parser.parse_known_args()
    names = list(operations())
    command = [options.compiler, "-std=c++20", "-O2", f"-I{ROOT / 'include'}", "-x", "c++", "-S", "-o", "-",
               "-", *more]
    more_source, described = chains(names, options.chains, options.seed)
    done = subprocess.run(command, input=source(names) + more_source, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr[:4000])
    bad = total = 0
    for function, count, wide in loops(done.stdout):
        if chain := re.search(r"chain(\d+)z", function):
            total += 1
            if wide == 0:
                bad += 1
                print(f"not vectorised: {described[int(chain.group(1))]}")
            continue
        operation = next((n for n, *_ in sorted(names, key=lambda n: -len(n[0])) if f"{len(n)}{n}" in function), None)
        if operation is None:
            continue
        total += 1
        # With both element types in the name, "Lh0" is f32 and "Lh1" is f64.
        element = "double" if "LNS_5dtypeE1E" in function else "float"
        isa = "avx512" if "avx512" in function else "avx2"
        if wide == 0:
            bad += 1
            print(f"not vectorised: {operation} {element} {isa}")
        elif options.verbose:
            print(f"{operation:24} {element:6} {isa:6} {count:4} instructions, {wide} of them on vectors")
    if "clang" not in pathlib.Path(options.compiler).name:
        for cell, function, vectorised in cells(options.compiler, more):
            total += 1
            if not vectorised:
                bad += 1
                print(f"not vectorised: {function} of {cell}")
    print(f"{total - bad} of {total} loops are vectorised")
    return 1 if bad or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
