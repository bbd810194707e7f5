#!/usr/bin/env python3
"""Writes include/tapegraph/ops/compiled_regions.hpp: the fused regions that tapegraph::kernels
holds, which are those of vocabulary.cpp in this folder.

    tools/compiled_regions/collect.py [--compiler g++] [--check]

Regions are types, and the result of fusing a formula cannot be guessed. So the vocabulary is
compiled, without the component and for one instruction set, and the regions are read from its
symbols. With --check nothing is written; it exits with 1 if the header does not match the
vocabulary. A header that is out of date costs seconds of compiling, not correctness.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = ROOT / "include/tapegraph/ops/compiled_regions.hpp"
TYPES = ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "boolean"]
SYMBOL = re.compile(r" void tapegraph::cpu::on<tapegraph::cpu::baseline>::run<tapegraph::cpu::in_whole_vectors<"
                    r"tapegraph::cpu::(merged_|)region_body<(tapegraph::region<.*?>) *> *>, tapegraph::cpu::tile const\*>")

BEGIN = """#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/region.hpp>
#include <tapegraph/ops/ops.hpp>

/// Fused regions that many programs have, held by the component (core/component.hpp). Written by
/// tools/compiled_regions/collect.py; do not edit.

namespace tapegraph::cpu {

// clang-format off
#define TG_F32(operation, ...) instruction<operation, dtype::f32, __VA_ARGS__>
#define TG_BOOL(operation, ...) instruction<operation, dtype::boolean, __VA_ARGS__>
/// REGION(slots, results, instructions) of each, MERGED of those whose results are computed at once.
#define TG_COMPILED_REGIONS(REGION, MERGED) \\
"""
END = """
// clang-format on

#ifdef TG_COMPONENT
#define TG_REGION(...) TG_COMPILED(regions, void evaluate_tile<region<__VA_ARGS__>>(const tile&))
#define TG_MERGED_REGION(...) TG_COMPILED(regions, void evaluate_merged_tile<region<__VA_ARGS__>>(const tile&))
TG_COMPILED_REGIONS(TG_REGION, TG_MERGED_REGION)
#undef TG_REGION
#undef TG_MERGED_REGION
#endif

} // namespace tapegraph::cpu
"""


def regions(compiler):
    """Returns the lines of the header."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "vocabulary.o"
        subprocess.run([compiler, "-std=c++20", "-O1", "-DTG_INSTRUCTION_SETS=1", f"-I{ROOT / 'include'}", "-c",
                        str(pathlib.Path(__file__).parent / "vocabulary.cpp"), "-o", str(program)], check=True)
        symbols = subprocess.run(["nm", "-C", str(program)], check=True, capture_output=True, text=True).stdout
    found = set()
    for match in SYMBOL.finditer(symbols):
        text = match[2].replace("tapegraph::", "")
        text = re.sub(r"\(dtype\)(\d+)", lambda m: "dtype::" + TYPES[int(m[1])], text)
        text = text.removeprefix("region<")[:-1].rstrip()
        text = re.sub(r"(, -1)+>", ">", text)  # the defaults of operands
        text = re.sub(r"instruction<([\w:]+(?:<\w+>)?), dtype::f32, ([\d, ]+)>", r"TG_F32(\1, \2)", text)
        text = re.sub(r"instruction<([\w:]+(?:<\w+>)?), dtype::boolean, ([\d, ]+)>", r"TG_BOOL(\1, \2)", text)
        text = text.replace("detail::", "tapegraph::detail::")
        found.add((bool(match[1]), text))
    lines = sorted(found, key=lambda region: (region[0], len(region[1]), region[1]))
    return " \\\n".join(f"{'MERGED' if merged else 'REGION'}({text})" for merged, text in lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = BEGIN + regions(options.compiler) + END
    if not options.check:
        HEADER.write_text(text)
        return 0
    if HEADER.exists() and HEADER.read_text() == text:
        return 0
    print(f"{HEADER.relative_to(ROOT)} is not what the vocabulary gives: run tools/compiled_regions/collect.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
