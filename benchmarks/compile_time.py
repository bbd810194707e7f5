#!/usr/bin/env python3
"""What compiling costs: seconds of processor time and peak memory of the compiler for programs that use the library,
beside the goals, as a Markdown table.

    benchmarks/compile_time.py [--cxx g++] [--clang clang++-16] [--repeat 1] [--only TEXT]

Processor time (user and system) is what is compared: it hardly depends on what else the machine is doing. Wall-clock time
is printed beside it. With --repeat the least of several compilations counts.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"

TRAINING = """#include "{header}"
namespace tg = tapegraph;
int main() {{
    auto model = tg::compile<tg::{mode}{constant}>({argument}tg::spec<float, tg::dyn, {extents}>{{}}, tg::sigmoid_cross_entropy{{}},
                                            tg::{optimizer}{{}});
    const auto x = tg::zeros<float>({{1, {extents}}}), y = tg::zeros<float>({{1, 1}});
    return model.train_on_batch(x, y).loss < 0;
}}
"""


# The program of a study: an epoch over a data set in memory.
FIT = """#include "{header}"
namespace tg = tapegraph;
int main() {{
    auto model = tg::compile<tg::{mode}{constant}>({argument}tg::spec<float, tg::dyn, {extents}>{{}}, tg::sigmoid_cross_entropy{{}},
                                            tg::{optimizer}{{}});
    const auto records = static_cast<std::size_t>(tg::shape{{4, {extents}}}.size().value);
    tg::data::dataset set;
    set.add("x", std::vector<float>(records), {{{extents}}});
    set.add("y", std::vector<float>(4), {{1}});
    return model.fit(set, {{.epochs = 1, .batch_size = 2}}).epochs[0].loss < 0;
}}
"""


def training(header, model, extents, mode="graph", optimizer="adam", program=TRAINING):
    """A program that trains a model. A model with parameters, `name{...}`, is passed as a constant."""
    constant = "{." in model
    return program.format(
        header=ROOT / header,
        mode=mode,
        constant=f", models::{model}" if constant else "",
        argument="" if constant else f"models::{model}{{}}, ",
        extents=extents,
        optimizer=optimizer,
    )


CNN = training("examples/models/cats_and_dogs.hpp", "cats_and_dogs", "50, 50, 3", optimizer="sgd")
CNN_EAGER = training("examples/models/cats_and_dogs.hpp", "cats_and_dogs", "50, 50, 3", "eager", "sgd")
LARGE = training("examples/models/conv1d_large.hpp", "conv1d_large", "14000, 30")
CNN_FIT = training("examples/models/cats_and_dogs.hpp", "cats_and_dogs", "50, 50, 3", optimizer="sgd", program=FIT)
LARGE_FIT = training("examples/models/conv1d_large.hpp", "conv1d_large", "14000, 30", program=FIT)
RECURRENT_FIT = training("examples/models/recurrent_medium.hpp", "recurrent_medium", "400, 16", program=FIT)
RESIDUAL = training("benchmarks/models/residual.hpp", "residual{.blocks = 60}", "32, 32, 3", optimizer="sgd")


# What the CMake target passes on, for large graphs.
LIMITS = {"g++": ("-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=10000000"),
          "clang": ("-fconstexpr-steps=50000000", "-fbracket-depth=1024")}


def layers(count):
    return training("benchmarks/models/layers.hpp", "layers{.count = %d}" % count, "32")


class Compiler:
    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="compile_time_"))
        self.count = 0

    def run(self, command):
        """(processor seconds, wall seconds, peak MB, text) of a compiler run; text is None when it succeeded."""
        start = time.monotonic()
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - start
            log.seek(0)
            text = log.read().decode(errors="replace")
        return (usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, text if process.returncode else None)

    def compile(self, source, cxx=None, flags=("-O2",), link=False):
        cxx = cxx or self.options.cxx
        self.count += 1
        file = self.folder / f"program{self.count}.cpp"
        file.write_text(source)
        output = file.with_suffix("" if link else ".o")
        command = [cxx, "-std=c++20", "-fopenmp" if "clang" not in cxx else "-fopenmp-simd", f"-I{INCLUDE}", *flags,
                   str(file), "-o", str(output)]
        if not link:
            command.insert(1, "-c")
        best = None
        for _ in range(self.options.repeat):
            result = self.run(command)
            if best is None or result[0] < best[0]:
                best = result
        if best[3] is not None:
            errors = [line for line in best[3].splitlines() if "error" in line]
            print(f"\n{' '.join(command)}\n" + "\n".join(errors[:3]), file=sys.stderr)
        return best, output


def standard_headers(cxx):
    """A program of the standard headers that the umbrella reaches."""
    found = subprocess.run([cxx, "-std=c++20", "-fopenmp", f"-I{INCLUDE}", "-M", str(INCLUDE / "tapegraph/tapegraph.hpp")],
                           capture_output=True, text=True, check=True).stdout
    headers = set()
    for path in found.replace("\\\n", " ").split():
        if path.startswith(str(INCLUDE)):
            headers |= set(re.findall(r"^#include <([a-z_0-9.]+)>", pathlib.Path(path).read_text(), re.MULTILINE))
    return "".join(f"#include <{header}>\n" for header in sorted(headers) if not header.startswith("stb"))


def row(name, result, goal="", verdict=None):
    processor, wall, memory, error = result
    if error is not None:
        verdict = False
        cells = ["does not compile", "", ""]
    else:
        cells = [f"{processor:.1f}", f"{wall:.1f}", f"{memory:.0f}"]
    word = "" if verdict is None else ("yes" if verdict else "NO")
    print(f"| {name} | {' | '.join(cells)} | {goal} | {word} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--clang", default="clang++-16")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", default="", help="only the groups whose name holds this text: headers, cnn, large, "
                                                   "studies, residual, nodes, clang, binary")
    options = parser.parse_args()
    compiler = Compiler(options)
    clang = options.clang if shutil.which(options.clang) else None
    wanted = lambda group: options.only in group
    version = subprocess.run([options.cxx, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    print(f"{version}; load average {os.getloadavg()[0]:.1f}\n")
    print("| program | processor s | wall s | peak MB | goal | reached |")
    print("| --- | ---: | ---: | ---: | --- | --- |")

    if wanted("headers"):
        plain, _ = compiler.compile(standard_headers(options.cxx))
        umbrella, _ = compiler.compile("#include <tapegraph/tapegraph.hpp>\n")
        row("the standard headers the umbrella needs", plain)
        more = umbrella[0] - plain[0]
        row("the umbrella header", umbrella, f"at most 0.8 s more (+{more:.2f})", more <= 0.8)
    cnn = None
    if wanted("cnn") or wanted("large"):
        cnn, _ = compiler.compile(CNN)
        row("CNN, training step, graph mode", cnn, "15 s, 1,500 MB", cnn[0] <= 15 and cnn[2] <= 1500)
    if wanted("cnn"):
        row("CNN, training step, eager mode", compiler.compile(CNN_EAGER)[0])
    if wanted("large"):
        large, _ = compiler.compile(LARGE)
        row("Conv1D large (45 convolutions), Adam", large, f"at most 10 s more than the CNN ({large[0] - cnn[0]:+.1f})",
            large[0] - cnn[0] <= 10)
    if wanted("studies"):
        fit, _ = compiler.compile(CNN_FIT)
        row("CNN, fit", fit)
        for name, source, goal in (("Conv1D large, Adam, fit", LARGE_FIT, 10),
                                   ("recurrent medium (3 LSTMs), Adam, fit", RECURRENT_FIT, 20)):
            study, _ = compiler.compile(source)
            more = study[0] - fit[0]
            row(name, study, f"at most {goal} s more than the CNN ({more:+.1f})", more <= goal)
    if wanted("residual"):
        row("60 residual blocks, -O2", *with_goal(compiler.compile(RESIDUAL, flags=("-O2", *LIMITS["g++"]))[0]))
        row("60 residual blocks, -g -O0", *with_goal(compiler.compile(RESIDUAL, flags=("-g", "-O0", *LIMITS["g++"]))[0]))
        if clang:
            row(f"60 residual blocks, {clang}, -O2",
                *with_goal(compiler.compile(RESIDUAL, clang, flags=("-O2", *LIMITS["clang"]))[0]))
    if wanted("nodes"):
        few, _ = compiler.compile(layers(13), flags=("-O0",))
        many, _ = compiler.compile(layers(63), flags=("-O0",))
        row("600 nodes (13 dense layers, Adam), -O0", few)
        ratio = many[0] / few[0]
        row("2,500 nodes (63 dense layers), -O0", many, f"at most 6 times as much ({ratio:.1f})", ratio <= 6)
    if wanted("clang") and clang:
        row(f"CNN, {clang}, its default constant-evaluation limit", *with_goal(compiler.compile(CNN, clang)[0]))
    print()
    if wanted("binary"):
        result, binary = compiler.compile(CNN, link=True)
        if result[3] is None:
            subprocess.run(["strip", str(binary)], check=True)
            size = binary.stat().st_size
            text = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True).stdout
            libraries = sorted({line.split()[0] for line in text.splitlines()})
            allowed = re.compile(r"linux-vdso|ld-linux|/lib.*/ld-|libc\.|libm\.|libgcc_s\.|libstdc\+\+\.|libgomp\.")
            extra = [name for name in libraries if not allowed.search(name)]
            print(f"The CNN's training binary, stripped: {size / 1e6:.2f} MB (goal: under 2 MB, "
                  f"{'reached' if size < 2e6 else 'NOT reached'}). It links {', '.join(libraries)}"
                  f"{'' if not extra else '; NOT expected: ' + ', '.join(extra)}.")
    shutil.rmtree(compiler.folder)


def with_goal(result):
    return result, "compiles", result[3] is None


if __name__ == "__main__":
    main()
