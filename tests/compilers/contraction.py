#!/usr/bin/env python3
"""Where clang may contract a * b + c of the library's kernels to one rounding.

    tests/compilers/contraction.py COMPILER INCLUDE

clang contracts within one source expression where the instruction set has FMA, so that a kernel
with such an expression gives other bits on other sets. All registered kernels are compiled without
optimization, which leaves llvm.fmuladd in each function that has one. Those below may have it, for
the reason beside them; others stand between TG_ROUNDS_EACH_BEGIN and TG_ROUNDS_EACH_END, or compute
the product by math::detail::product. Exits 1 with the names of other functions, and of those that
have it no more.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = """\
#include <tapegraph/graph/library_kernels.hpp>
#include <tapegraph/ops/recurrent/gru.hpp>
#include <tapegraph/ops/recurrent/lstm.hpp>
#include <tapegraph/ops/recurrent/simple_rnn.hpp>
const void* registered() { return &tapegraph::ir::kernel_registry::instance(); }
"""
ALLOWED = {
    r"tapegraph::math::(asin|atan2|erfc)<": "multiplies by 2 or by a sign, which is exact",
    r"real_fourier<.*::(join|part)_thirds": "multiplies by a half, which is exact",
    r"line_tiles::line_tiles|steady_seconds": "costs and times",
}


def contracted(compiler, include):
    """The names of functions with llvm.fmuladd."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernels.cpp"
        source.write_text(SOURCE, encoding="utf-8")
        result = subprocess.run(
            [compiler, "-std=c++20", "-O1", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm",
             "-DTG_INSTRUCTION_SETS=4", f"-I{include}", "-o", "-", str(source)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(result.stderr)
    names, function = set(), ""
    for line in result.stdout.splitlines():
        if line.startswith("define"):
            function = re.search(r'@"?([\w.$]+)', line)[1]
        elif "call" in line and "llvm.fmuladd" in line:
            names.add(function)
    shown = subprocess.run(["c++filt"], input="\n".join(sorted(names)), capture_output=True, text=True, check=True)
    return shown.stdout.splitlines()


def main():
    names = contracted(*sys.argv[1:3])
    errors = 0
    for name in names:
        if not any(re.search(pattern, name) for pattern in ALLOWED):
            errors += 1
            print(f"{name}: has a * b + c in one expression")
    for pattern in ALLOWED:
        if not any(re.search(pattern, name) for name in names):
            errors += 1
            print(f"'{pattern}' allows what no function has any more")
    print(f"contraction.py: {len(names)} functions contract, {errors} errors")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
