#!/usr/bin/env python3
"""What compiling costs: the programs in benchmarks/compile_time/ and README.md's first one, as a Markdown table of processor
seconds (user and system, of the compiler and what it starts), peak memory and the size of the object.

    benchmarks/compile_time.py [--compiler g++] [--rounds 3] [--only REGEX] [--list]
    benchmarks/compile_time.py --define TG_COMPONENT=1 --include DIR       header-only and, in turns, with these
    benchmarks/compile_time.py --precompiled                            and with a precompiled umbrella header

Whatever is compared is compiled in turns, round by round, and medians are printed: processor seconds hardly depend on how long
others keep the processor busy, but they do depend on what these do to its caches and clock.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
PROGRAMS = ROOT / "benchmarks/compile_time"

# What the CMake target passes on, for large graphs.
LIMITS = {"gcc": ["-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=10000000"],
          "clang": ["-fconstexpr-steps=50000000", "-fbracket-depth=1024"]}

# (row, file or README.md, flags), in the order in which they are printed.
ROWS = [
    ("an empty program with `tensor.hpp`", "tensor.cpp", ["-O2"]),
    ("an empty program with `tapegraph.hpp`", "umbrella.cpp", ["-O2"]),
    ("the same and `io/weights.hpp`", "weights.cpp", ["-O2"]),
    ("a tensor to a file and back", "weights_used.cpp", ["-O2"]),
    ("README's first program, both modes", "README.md", ["-O2"]),
    ("README's first program, both modes, -O0", "README.md", ["-O0"]),
    ("a CNN's training, graph mode", "cnn_graph.cpp", ["-O2"]),
    ("a CNN's training, eager mode", "cnn_eager.cpp", ["-O2"]),
    ("a transformer's training, graph mode", "transformer_graph.cpp", ["-O2"]),
    ("a transformer's training, eager mode", "transformer_eager.cpp", ["-O2"]),
    ("a perceptron by `tg::function`", "perceptron.cpp", ["-O2"]),
    ("an eager script of ten operations", "eager_script.cpp", ["-O2"]),
    ("60 residual blocks, graph mode", "residual.cpp", ["-O2"]),
]


def first_program():
    """The first block of C++ in README.md."""
    return re.search(r"^```cpp\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "a processor without a name"


class Compiler:
    def __init__(self, command, folder):
        self.command = command
        self.folder = folder
        self.version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
        kind = "clang" if "clang" in self.version else "gcc"
        self.flags = ["-std=c++20", "-fopenmp" if kind == "gcc" else "-fopenmp-simd", f"-I{INCLUDE}", *LIMITS[kind]]

    def run(self, source, flags, output):
        """(processor seconds, peak MB, KB of the object); ends the program where the compiler fails."""
        command = [self.command, *self.flags, *flags, str(source), "-o", str(output)]
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            log.seek(0)
            text = log.read().decode(errors="replace")
        if process.returncode:
            errors = [line for line in text.splitlines() if "error" in line]
            sys.exit(" ".join(command) + "\n" + "\n".join(errors[:5] or text.splitlines()[:5]))
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.path.getsize(output) / 1024

    def precompile(self, flags):
        """Flags that use a precompiled umbrella header, compiled with `flags`. The folder is as the header is named, so that
        g++, too, takes it from there."""
        name = "_".join(re.sub(r"\W", "", flag) for flag in flags)
        header = self.folder / name / "umbrella.hpp"
        if not header.exists():
            header.parent.mkdir()
            header.write_text("#pragma once\n#include <tapegraph/tapegraph.hpp>\n")
            seconds, _, size = self.run(header, [*flags, "-x", "c++-header"], header.with_suffix(".hpp.gch"))
            print(f"The precompiled header ({' '.join(flags)}): {seconds:.1f} s once, {size / 1024:.0f} MB.", file=sys.stderr)
        gch = header.with_suffix(".hpp.gch")
        return ["-include-pch", str(gch)] if "clang" in self.version else ["-include", str(header), "-Werror=invalid-pch"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++", help="a g++ or clang++")
    parser.add_argument("--rounds", type=int, default=3, help="compilations of each program, of which the median counts")
    parser.add_argument("--only", default="", help="only the rows that this regular expression finds")
    parser.add_argument("--list", action="store_true", help="names the rows and compiles nothing")
    parser.add_argument("--define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro of the other form")
    parser.add_argument("--include", action="append", default=[], metavar="DIR", help="a folder of headers of the other form")
    parser.add_argument("--precompiled", action="store_true", help="also with a precompiled umbrella header")
    options = parser.parse_args()

    rows = [row for row in ROWS if re.search(options.only, row[0])]
    if not rows:
        sys.exit("no row of that name; see --list")
    if options.list:
        print("\n".join(name for name, _, _ in rows))
        return
    other = [f"-D{macro}" for macro in options.define] + [f"-I{folder}" for folder in options.include]

    with tempfile.TemporaryDirectory(prefix="compile_time_") as name:
        folder = pathlib.Path(name)
        compiler = Compiler(options.compiler, folder)
        (folder / "README.cpp").write_text(first_program(), encoding="utf-8")

        forms = [("header-only", lambda flags: flags)]
        if other:
            forms.append((" ".join(other), lambda flags: [*flags, *other]))
        if options.precompiled:
            forms.append(("precompiled", lambda flags: [*flags, *compiler.precompile(flags)]))

        print(f"{compiler.version}; {processor()}; medians of {options.rounds}; "
              f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        print("| program | " + " | ".join(f"{form} s, MB, object KB" for form, _ in forms) + (" | ratio" * (len(forms) - 1)) + " |")
        print("| --- |" + " ---: |" * (2 * len(forms) - 1), flush=True)
        measured = {}
        for _ in range(options.rounds):
            for row, file, flags in rows:
                source = folder / "README.cpp" if file == "README.md" else PROGRAMS / file
                for form, change in forms:
                    measured.setdefault((row, form), []).append(compiler.run(source, ["-c", *change(flags)], folder / "object.o"))
        for row, _, _ in rows:
            medians = [[statistics.median(column) for column in zip(*measured[row, form])] for form, _ in forms]
            cells = [f"{seconds:.1f}, {memory:.0f}, {size:.0f}" for seconds, memory, size in medians]
            ratios = [f"{m[0] / medians[0][0]:.2f}" for m in medians[1:]]
            print("| " + " | ".join([row, *cells, *ratios]) + " |")


if __name__ == "__main__":
    main()
