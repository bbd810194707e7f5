#!/usr/bin/env python3
"""What compiling costs: the programs in benchmarks/compile_time/ and README.md's first one, as a Markdown table of processor
seconds (user and system, of the compiler and what it starts), peak memory and the size of the object.

    benchmarks/compile_time.py [--compiler g++] [--rounds 3] [--only REGEX] [--list]
    benchmarks/compile_time.py --define TG_COMPONENT=1 --include DIR       header-only and, in turns, with these
    benchmarks/compile_time.py --precompiled                            and with a precompiled umbrella header
    benchmarks/compile_time.py --against TREE                           and those of another checkout, each form in turns
    benchmarks/compile_time.py --headers [--rounds 5] [--only REGEX]    what each header beyond the umbrella adds to a source

Whatever is compared is compiled in turns, and medians are printed, row by row: processor seconds hardly depend on how long
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
PROGRAMS = "benchmarks/compile_time"  # of a tree

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
    ("README's first model, traced when the program runs", "first_traced.cpp", ["-O2"]),
    ("the same, -O0", "first_traced.cpp", ["-O0"]),
    ("60 residual blocks, traced", "residual_traced.cpp", ["-O2"]),
    ("24 transformer blocks, traced", "transformer_traced.cpp", ["-O2"]),
]


def first_program(tree):
    """The first block of C++ in a tree's README.md."""
    return re.search(r"^```cpp\n(.*?)^```$", (tree / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]


def program(tree, file, folder):
    """A row's source in a tree; README.md's is written into the folder. None where the tree has no such program."""
    if file != "README.md":
        source = tree / PROGRAMS / file
        return source if source.exists() else None
    source = folder / f"README_{abs(hash(tree))}.cpp"
    source.write_text(first_program(tree), encoding="utf-8")
    return source


# Headers that all.hpp names besides the library itself: the umbrella header's own are not beyond it, and what these headers
# include comes with them. More that no list names: users include these by name.
LISTS = ["nn.hpp", "data.hpp", "io.hpp"]
MORE = ["nn.hpp", "data.hpp", "io.hpp", "distributed.hpp", "interop.hpp"]


def user_headers():
    named = [name for file in LISTS
             for name in re.findall(r"^#include <tapegraph/(\S+)>", (INCLUDE / "tapegraph" / file).read_text(encoding="utf-8"), re.MULTILINE)]
    inside = {"core/shown_errors.hpp", "tapegraph.hpp", "tensor.hpp"}
    return sorted(set(named) - inside, key=lambda name: (name.count("/") == 0, name)) + [n for n in MORE if n not in named]


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
        self.flags = ["-std=c++20", *LIMITS[kind]]

    def run(self, source, flags, output, tree=ROOT):
        """(processor seconds, peak MB, KB of the object); ends the program where the compiler fails."""
        command = [self.command, *self.flags, f"-I{tree / 'include'}", *flags, str(source), "-o", str(output)]
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            log.seek(0)
            text = log.read().decode(errors="replace")
        if process.returncode:
            errors = [line for line in text.splitlines() if "error" in line]
            sys.exit(" ".join(command) + "\n" + "\n".join(errors[:5] or text.splitlines()[:5]))
        size = os.path.getsize(output) / 1024 if os.path.exists(output) else 0
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, size

    def memory_taken(self, source, flags):
        """MB that g++ took in all for a source, which no load changes; none where it fails."""
        report = subprocess.run([self.command, *self.flags, f"-I{INCLUDE}", *flags, "-fsyntax-only", "-ftime-report", "--param", "ggc-min-heapsize=2000000",
                                 str(source)], capture_output=True, text=True, check=False)
        found = re.search(r"^ TOTAL .*?(\d+)M$", report.stderr, re.MULTILINE)
        return int(found[1]) if found and report.returncode == 0 else None

    def user_seconds(self, source, flags):
        """Of the user alone, without an object; none where the compiler fails."""
        process = subprocess.Popen([self.command, *self.flags, f"-I{INCLUDE}", *flags, str(source)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime if process.returncode == 0 else None

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


def headers_table(compiler, folder, options):
    """What a source with the umbrella header and one more takes beyond one with the umbrella header alone: memory that g++ asked
    for in all, which hardly depends on the machine, and user seconds, the least of the rounds of each (--rounds 0: memory alone). g++ collects garbage when its heap has grown to a bound, and the umbrella header ends a little below one:
    whatever comes next pays for a collection of it all. So there is a column with collections put off."""
    names = [name for name in user_headers() if re.search(options.only, name)]
    if not names:
        sys.exit("no header of that name")
    if options.list:
        print("\n".join(names))
        return
    forms = [("`-fsyntax-only`", ["-fsyntax-only"]), ("`-O2 -c`", ["-O2", "-c", "-o", str(folder / "object.o")])]
    if "clang" not in compiler.version:
        forms.insert(1, ("the same, no collection", ["-fsyntax-only", "--param", "ggc-min-heapsize=2000000"]))
    third_party = [flag for path in ("/usr/include/hdf5/serial",) if os.path.isdir(path) for flag in ("-isystem", path)]
    umbrella = "#include <tapegraph/tapegraph.hpp>\n"
    best, taken = {}, {}
    if "clang" not in compiler.version:
        for name in ["", *names]:
            source = folder / "header.cpp"
            source.write_text(umbrella + (f"#include <tapegraph/{name}>\n" if name else ""), encoding="utf-8")
            taken[name] = compiler.memory_taken(source, third_party)
    for _ in range(options.rounds):
        for name in ["", *names]:
            source = folder / "header.cpp"
            source.write_text(umbrella + (f"#include <tapegraph/{name}>\n" if name else ""), encoding="utf-8")
            for form, flags in forms:
                seconds = compiler.user_seconds(source, [*flags, *third_party])
                best[name, form] = min(best.get((name, form), seconds), seconds) if seconds is not None else None
    print(f"{compiler.version}; {processor()}; least of {options.rounds}; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    if options.rounds == 0:
        forms = []
    memory = ["MB"] if taken else []
    print("| " + " | ".join(["header beyond the umbrella", *memory, *(form for form, _ in forms)]) + " |")
    print("| --- |" + " ---: |" * (len(forms) + len(memory)))
    alone = [str(taken[""])] * len(memory) + [f"{best['', form]:.2f}" for form, _ in forms]
    print("| " + " | ".join(["(the umbrella alone)", *alone]) + " |")
    for name in names:
        cells = ["-" if taken[name] is None else str(taken[name] - taken[""])] * len(memory)
        cells += ["-" if best[name, form] is None else f"{best[name, form] - best['', form]:.2f}" for form, _ in forms]
        print(f"| `{name}` | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++", help="a g++ or clang++")
    parser.add_argument("--rounds", type=int, default=3, help="compilations of each program, of which the median counts")
    parser.add_argument("--only", default="", help="only the rows that this regular expression finds")
    parser.add_argument("--list", action="store_true", help="names the rows and compiles nothing")
    parser.add_argument("--define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro of the other form")
    parser.add_argument("--include", action="append", default=[], metavar="DIR", help="a folder of headers of the other form")
    parser.add_argument("--against", type=pathlib.Path, metavar="TREE", help="another checkout, whose headers and programs are compiled, too")
    parser.add_argument("--headers", action="store_true", help="a table of the headers beyond the umbrella")
    parser.add_argument("--precompiled", action="store_true", help="also with a precompiled umbrella header")
    options = parser.parse_args()

    if options.against and (options.headers or options.precompiled):
        parser.error("--against goes with programs that are compiled whole")
    if options.headers:
        with tempfile.TemporaryDirectory(prefix="compile_time_") as name:
            headers_table(Compiler(options.compiler, pathlib.Path(name)), pathlib.Path(name), options)
        return
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

        ways = [("header-only", lambda flags: flags)]
        if other:
            ways.append((" ".join(other), lambda flags: [*flags, *other]))
        if options.precompiled:
            ways.append(("precompiled", lambda flags: [*flags, *compiler.precompile(flags)]))
        # (title, tree, how flags change, column whose seconds are the ratio's denominator): the same way in the other tree, or the first.
        forms = []
        for way, change in ways:
            if options.against:
                forms.append((f"{way}, against", options.against.resolve(), change, None))
                forms.append((way, ROOT, change, len(forms) - 1))
            else:
                forms.append((way, ROOT, change, 0 if forms else None))

        print(f"{compiler.version}; {processor()}; medians of {options.rounds}; "
              f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        titles = [cell for title, _, _, base in forms for cell in [f"{title} s, MB, object KB", *(["ratio"] if base is not None else [])]]
        print("| program | " + " | ".join(titles) + " |")
        print("| --- |" + " ---: |" * len(titles), flush=True)
        for row, file, flags in rows:
            measured = [[] for _ in forms]
            for _ in range(options.rounds):
                for found, (_, tree, change, _) in zip(measured, forms):
                    if source := program(tree, file, folder):
                        found.append(compiler.run(source, ["-c", *change(flags)], folder / "object.o", tree))
            medians = [[statistics.median(column) for column in zip(*found)] for found in measured]
            cells = []
            for median, (_, _, _, base) in zip(medians, forms):
                cells.append("{:.1f}, {:.0f}, {:.0f}".format(*median) if median else "-")
                if base is not None:
                    cells.append(f"{median[0] / medians[base][0]:.2f}" if median and medians[base] else "-")
            print("| " + " | ".join([row, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
