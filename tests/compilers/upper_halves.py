#!/usr/bin/env python3
"""What kernels are where a program is compiled with little optimization.

    tests/compilers/upper_halves.py COMPILER INCLUDE

A function that leaves the upper halves of vectors in use makes every later call of libm many times
slower, and a product without fused multiply-adds has half the rate and other bits. The products'
kernels and one by dispatch() are compiled with -O1, -Os and -O2. Exits 1 with the functions that
have vectors of more than 16 bytes and no vzeroupper, and if no function fuses.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = """\
#include <tapegraph/cpu/gemm.hpp>
#include <tapegraph/profile/peaks.hpp>
namespace cpu = tapegraph::cpu;
struct scale_body {
    template <class Isa>
    TG_INLINE static void run(float* x) {
        using v = cpu::vector<float, Isa::vector_bytes>;
        typename v::type a;
        v::load(a, x);
        v::store(x, a + a);
    }
};
void product(const cpu::gemm_arguments<float>& g, void* work) { cpu::gemm(g, work); }
void scale(float* x) { cpu::dispatch<scale_body>(x); }
void chains(float* x) { tapegraph::profiling::detail::run_chains(x, 9); }
"""


def functions(compiler, include, level):
    """The instructions of each function, by name."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernels.cpp"
        source.write_text(SOURCE, encoding="utf-8")
        result = subprocess.run([compiler, "-std=c++20", level, "-DTG_INSTRUCTION_SETS=6", f"-I{include}", "-S", "-o", "-",
                                 str(source)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(result.stderr)
    bodies, name = {}, ""
    for line in result.stdout.splitlines():
        label = re.match(r"(_Z\w+):", line)
        if label:
            name = label[1]
        bodies.setdefault(name, []).append(line)
    return {name: "\n".join(lines) for name, lines in bodies.items()}


def main():
    errors = 0
    for level in ("-O1", "-Os", "-O2"):
        wide = {name: body for name, body in functions(*sys.argv[1:3], level).items() if re.search(r"%[yz]mm", body)}
        for name, body in wide.items():
            if "vzeroupper" not in body:
                errors += 1
                print(f"{level}: {name} leaves the upper halves of vectors in use")
        if not any("vfmadd" in body for body in wide.values()):
            errors += 1
            print(f"{level}: no product fuses its multiply-adds")
        if len(wide) < 4:
            errors += 1
            print(f"{level}: only {len(wide)} functions have wide vectors")
    print(f"upper_halves.py: {errors} errors")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
