#!/usr/bin/env python3
"""Checks who includes whom, and a few habits of the repository. Prints FILE:LINE: MESSAGE; exits 1 on any error.

Errors: an include against the directions below, headers that include each other in a circle, a header whose first
include is not the library's (so that core/config.hpp is read first), a library header that does not exist, one that
all.hpp does not reach, a device's kernel that no program includes, an umbrella by concern that reaches what it is to be
without, a header of others that the module's unit does not name, quotes instead of <>, no #pragma once, tabs, paths of one
machine, notes of unfinished work, a static constexpr array without a bound, OpenMP's pragmas, a header that makes files in a way of its own.
Warnings: files of more than 400 lines, heavy standard headers in folders that every program includes.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A folder of include/tapegraph (or cuda/tapegraph), or a room of one, and what its headers may include; always itself, too.
# "" is the umbrella. docs/design.md has the same table. In a room of ops/ the files that KERNEL_FILE matches are the
# operations' kernels; no operation that every program reads includes them.
DIRECTIONS = {
    "core": set(),
    "expr": {"core"},
    "cpu": {"core", "expr"},
    "scalar": {"core", "expr", "ops"},
    "minimizers": {"core", "expr", "scalar"},
    "ode": {"core", "expr", "scalar"},
    "scalar/program": {"core", "expr", "cpu", "ops", "scalar"},
    "scalar/sparse": {"core", "scalar", "scalar/program"},
    "scalar/tensors": {"core", "expr", "ops", "scalar", "eager"},
    "runtime": {"core", "expr", "cpu"},
    "ops": {"core", "expr"},
    "ops kernels": {"core", "expr", "cpu", "runtime", "ops"},
    "ir": {"core", "expr", "ops"},
    "graph": {"core", "expr", "runtime", "ops", "ops kernels", "ir"},
    "eager": {"core", "expr", "cpu", "runtime", "ops", "ops kernels", "ir"},
    "formats": {"core", "eager"},
    "cuda": {"core", "expr", "runtime", "ops", "ops kernels", "ir", "graph", "eager", "formats"},
    "data": {"core", "cpu", "eager", "formats"},
    "model": {"core", "expr", "ops", "ops kernels", "ir", "graph", "eager"},
    "nn/losses": {"core", "ops", "graph", "eager", "model"},
    "nn": {"core", "expr", "ops", "graph", "eager", "model", "nn/losses"},
    "nn/metrics": {"core", "ops", "eager", "model", "nn/losses"},
    "nn/layers": {"core", "expr", "ops", "ops kernels", "cuda", "model", "nn/losses", "nn"},
    "nn/optimizers": {"core", "expr", "runtime", "ops", "eager", "model"},
    "train": {"core", "minimizers", "cpu", "graph", "eager", "formats", "data", "model", "nn/losses", "nn", "nn/metrics", "nn/layers",
              "nn/optimizers"},
    "compile": {"core", "expr", "runtime", "ir", "graph", "eager", "data", "model", "nn/losses", "nn", "nn/metrics",
                "nn/layers", "nn/optimizers", "train"},
    "io": {"core", "ops", "ir", "graph", "eager", "formats", "data", "model", "nn/losses", "nn", "nn/metrics",
           "nn/layers", "nn/optimizers", "train", "compile"},
    "session": {"core", "runtime", "ir", "graph", "eager", "formats", "model", "nn/losses", "nn", "nn/metrics",
                "nn/layers", "nn/optimizers", "train", "compile", "io"},
    "cluster/ranks": {"core", "cpu"},
    "cluster": {"core", "cpu", "runtime", "ops", "graph", "eager", "formats", "data", "model", "nn/losses", "nn",
                "nn/metrics", "nn/layers", "nn/optimizers", "train", "compile", "io", "cluster/ranks"},
    "any_model": {"core", "data", "model", "nn/losses", "nn", "nn/metrics", "nn/layers", "nn/optimizers", "train",
                  "compile", "io"},
    "profile": {"core", "cpu", "runtime", "graph", "eager", "formats", "data", "model", "nn/losses", "nn", "nn/metrics",
                "nn/layers", "nn/optimizers", "train", "compile", "io"},
}
EVERYTHING = set(DIRECTIONS)
DIRECTIONS[""] = EVERYTHING
KERNEL_FILE = re.compile(r"tapegraph/ops/((?:kernels|compiled_kernels|compiled_regions)\.hpp|\w+/(cpu\w*|\w*kernel\w*|blas|\w*geometry)\.hpp)")

# What FIRST itself includes.
BEFORE_FIRST = ("tapegraph/core/agreement.hpp", "tapegraph/version.hpp")


def folder_of(name):
    """The folder of a header, as DIRECTIONS knows it."""
    parts = name.split("/")
    if KERNEL_FILE.fullmatch(name):
        return "ops kernels"
    room = "/".join(parts[1:3])  # of a folder whose rooms have an order
    return room if room in DIRECTIONS else parts[1] if len(parts) > 2 else ""


# Single files that may do what their folder may not: (file, folder or header). Operations that the umbrella does not have bring their
# kernels; those of the others it brings.
EXCEPTIONS = {("tapegraph/core/config.hpp", "tapegraph/version.hpp"),
              *((f"tapegraph/ops/recurrent/{name}.hpp", "tapegraph/ops/recurrent/layers_kernel.hpp")
                for name in ("lstm", "gru", "simple_rnn")),
              *(("tapegraph/ops/records/records.hpp", f"tapegraph/ops/records/{name}_kernel.hpp") for name in ("walk_trees", "couple_pairs")),
              ("tapegraph/cuda/nccl.cuh", "tapegraph/cluster/ranks/nccl_exchange.hpp")}

# The header that says what the compiler must be; every other one reads it first, by its first include or that one's.
FIRST = "tapegraph/core/config.hpp"
# What does not exist on purpose: the include that ends the compilation there.
NO_HEADER = "tapegraph/core/see_the_error_above"
# A header for this project's tests, and one for users of a library that ours does not need.
NOT_IN_ALL = {"tapegraph/graph/passes/verify.hpp", "tapegraph/scalar/eigen.hpp", "tapegraph/scalar/sparse/eigen.hpp"}

MODULE = "tapegraph/tapegraph.cppm"
WINDOWS = {"direct.h", "io.h"}  # headers of that system, on which there is no module
# Umbrellas by concern, and the folders that they must not reach.
WITHOUT = {"tapegraph/tensor.hpp": EVERYTHING - {"core", "expr", "cpu", "runtime", "ops", "ops kernels", "ir", "eager"}}

# Folders that every program includes stay light.
LIGHT = {"core", "expr", "ops", "ops kernels", "ir", "graph", "eager", "cpu", "runtime"}
HEAVY = {"iostream", "regex", "filesystem", "functional", "sstream", "thread", "random", "future", "map", "iomanip"}

LONG = 400
TEXT = {".hpp", ".cpp", ".cu", ".cuh", ".h", ".py", ".sh", ".cmake", ".in", ".md", ".txt", ".json", ""}
SKIP = {".git", "build", "results", "single_include", "__pycache__", "third_party", ".cache", ".vscode", ".idea"}

# Spelled in pieces, so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.\-/}])/(?:" + "work" + "|" + "root" + r")\b(?!-)")
UNFINISHED = re.compile(r"\b(?:" + "TO" + "DO|FIX" + "ME|X" + "XX" + r")\b")
# Where it is a member of a template, clang knows its bound only after the class and lets no declaration in it read the array.
NO_BOUND = re.compile(r"\bstatic constexpr [\w:<> ,]+\[\]")
INCLUDE_LINE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def library_files():
    for base in (ROOT / "include", ROOT / "cuda"):
        for path in sorted(base.rglob("*")):
            if path.suffix in {".hpp", ".cuh"}:
                yield base, path


def repository_files():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in SKIP and not name.startswith("build-"))
        yield from (pathlib.Path(folder) / name for name in sorted(names) if name not in SKIP)


def check_library(report):
    graph = {}
    known = {path.relative_to(base).as_posix(): path for base, path in library_files()}
    for name, path in known.items():
        folder = folder_of(name)
        if folder not in DIRECTIONS:
            report(path, 1, f"folder '{folder}' has no entry in DIRECTIONS of tools/check_includes.py")
        allowed = DIRECTIONS.get(folder, EVERYTHING) | {folder}
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^#pragma once$", text, re.MULTILINE):
            report(path, 1, "#pragma once is missing")
        first = INCLUDE_LINE.search(text)
        if path.is_relative_to(ROOT / "include") and name not in {FIRST, *BEFORE_FIRST} and not (
                first and first[2].startswith("tapegraph/")):
            report(path, 1, f"the first include must be one of the library's own, if only <{FIRST}>")
        graph[name] = []
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE_LINE.match(line)
            if not match:
                continue
            form, target = match.groups()
            if form == '"':
                report(path, number, f'write <...>, not "{target}"')
            if target.startswith("tapegraph/"):
                graph[name].append((target, number))
                target_folder = folder_of(target)
                excepted = (name, target) in EXCEPTIONS or (name, target_folder) in EXCEPTIONS
                if target_folder not in allowed and not excepted:
                    report(path, number, f"{folder or 'the umbrella'} may not include {target_folder or 'the umbrella'}"
                                         f" ({target})")
                # Headers of the GPU backend may be absent from a checkout and stand inside an #if.
                if target not in known and target_folder != "cuda" and target != NO_HEADER:
                    report(path, number, f"there is no header {target}")
            elif target in HEAVY and folder in LIGHT and (name, target) not in EXCEPTIONS:
                report(path, number, f"<{target}> is heavy for a header that every program includes", warning=True)
    check_circles(graph, known, report)
    check_everything(graph, known, report)
    check_parts(known, report)
    check_module(graph, known, report)
    for name, folders in WITHOUT.items():
        for other in sorted(reached_from(name, graph)):
            if folder_of(other) in folders:
                report(known[name], 1, f"reaches {other}; it is to be without {folder_of(other)}")


def check_module(graph, known, report):
    """The module's unit names every header of others that the umbrella reaches: in its purview they would become part of it."""
    path = ROOT / "include" / MODULE
    named = set(re.findall(r"^#include <(.+)>$", path.read_text(encoding="utf-8"), re.MULTILINE))
    # What headers of the GPU backend include, a program with it has; the module is one without.
    own = {name: targets for name, targets in graph.items() if known[name].is_relative_to(ROOT / "include")}
    for name in sorted(reached_from("tapegraph/tapegraph.hpp", own)):
        if name not in own:
            continue
        for number, line in enumerate(known[name].read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE_LINE.match(line)
            if match and not match[2].startswith("tapegraph/") and match[2] not in named | WINDOWS:
                report(known[name], number, f"<{match[2]}> is missing in the first part of include/{MODULE}")


def reached_from(start, graph):
    reached, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [target for target, _ in graph.get(name, [])]
    return reached


def check_everything(graph, known, report):
    """all.hpp reaches every header under include/, and every kernel of a device."""
    reached = reached_from("tapegraph/all.hpp", graph)
    for name, path in known.items():
        if path.is_relative_to(ROOT / "include") and name not in reached and name not in NOT_IN_ALL:
            report(path, 1, "tapegraph/all.hpp does not reach this header")
    # A device's kernel that no program includes is not missed: the operation runs on the CPU.
    for source in sorted((ROOT / "cuda/tapegraph/cuda/library").glob("*.cu")):
        for match in map(INCLUDE_LINE.match, source.read_text(encoding="utf-8").splitlines()):
            reached |= reached_from(match[2], graph) if match else set()
    for name, path in known.items():
        if name.startswith("tapegraph/cuda/ops/") and name not in reached:
            report(path, 1, "neither tapegraph/cuda/backend.cuh nor a layer includes this kernel")


def check_order(report):
    """The folders have an order: none may include one that may include it, by however many others."""
    done, path = set(), []

    def visit(folder):
        if folder in path:
            report(pathlib.Path(__file__).resolve(), 1, "DIRECTIONS has a circle: "
                   + " -> ".join([*path[path.index(folder):], folder]))
        elif folder not in done:
            path.append(folder)
            for other in sorted(DIRECTIONS[folder] - {folder}):
                visit(other)
            path.pop()
            done.add(folder)

    for folder in DIRECTIONS:
        visit(folder)


DEFINES = re.compile(r"\s*#\s*if TG_DEFINES(?:_FOR_HOST)?\((\w+)\)")


def included_always(path):
    """What a header includes wherever it is compiled, and in the component's part that it defines functions of."""
    found, conditions = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        if re.match(r"\s*#\s*if", line):
            conditions.append(bool(DEFINES.match(line)))
        elif re.match(r"\s*#\s*endif", line):
            conditions.pop()
        elif (match := INCLUDE_LINE.match(line)) and all(conditions):
            found.append((match[2], 0))
    return found


def check_parts(known, report):
    """A function of the component's is in the source of its part: otherwise programs that link it miss the function."""
    text = (ROOT / "cmake/tapegraph-kernels.cmake").read_text(encoding="utf-8")
    rooms = re.search(r"foreach\(room ([^)]*)\)", text)[1].split()
    headers = {room: ["tapegraph/ops/kernels.hpp"] for room in rooms}
    for part, names in re.findall(r"tapegraph_headers_of_(\w+)\s+([^)]*)\)", text):
        headers.setdefault(part, []).extend(f"tapegraph/{name}" for name in names.split())
    always = {name: included_always(path) for name, path in known.items() if path.suffix == ".hpp"}
    in_part = {part: set().union(*(reached_from(name, always) for name in names)) for part, names in headers.items()}
    for name, path in known.items():
        if name in always and "TG_DEFINITION" in path.read_text(encoding="utf-8"):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if (match := DEFINES.match(line)) and match[1] in in_part and name not in in_part[match[1]]:
                    report(path, number, f"the component's part {match[1]} does not include this header "
                                         "(tapegraph_headers_of_... in cmake/tapegraph-kernels.cmake)")


def check_circles(graph, known, report):
    done, path = set(), []

    def visit(name):
        if name in done or name not in graph:
            return
        path.append(name)
        for target, number in graph[name]:
            if target in path:
                report(known[name], number, "circle: " + " -> ".join([*path[path.index(target):], target]))
            else:
                visit(target)
        path.pop()
        done.add(name)

    for name in graph:
        visit(name)


# Headers that make files themselves: what must be whole or not at all, and what processes that are killed leave, is the first three's affair;
# the others write line by line, and a line that is cut is looked for when they go on, or are asked for by name once.
WRITES = re.compile(r'\bO_CREAT\b|\bstd::ofstream\b|\bmks?temp\b|\bmkdtemp\b|\btmpfile\b|\brename(at2?)?\(|fopen\([^;]*"[wa]')
WRITERS = {"tapegraph/formats/file.hpp", "tapegraph/formats/atomic_folder.hpp", "tapegraph/formats/folder_claim.hpp", "tapegraph/formats/csv.hpp",
           "tapegraph/formats/posix.hpp", "tapegraph/io/tensorboard/event_file.hpp", "tapegraph/train/callbacks/csv_logger.hpp", "tapegraph/train/history.hpp"}


def check_writers(report):
    for folder in (ROOT / "include", ROOT / "cuda"):
        for path in sorted(folder.rglob("*.hpp")):
            if str(path.relative_to(folder)) in WRITERS:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if WRITES.search(line.split("//")[0]):
                    report(path, number, "makes a file itself: io::atomic_file (formats/file.hpp) and io::atomic_folder leave nothing behind")


def check_habits(report):
    for path in repository_files():
        if path.suffix not in TEXT:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # data without a suffix
        source = path.suffix in {".hpp", ".cpp", ".cu", ".cuh", ".h", ".py"}
        lines = text.splitlines()
        if source and len(lines) > LONG:
            report(path, len(lines), f"{len(lines)} lines: look for the seam", warning=True)
        for number, line in enumerate(lines, 1):
            if source and "\t" in line:
                report(path, number, "tab")
            if MACHINE_PATH.search(line):
                report(path, number, "path of one machine")
            if UNFINISHED.search(line):
                report(path, number, "note of unfinished work")
            if path.suffix in {".hpp", ".cuh"} and line.lstrip().startswith("#pragma omp"):
                report(path, number, "OpenMP, which needs a flag of the compiler: TG_SIMD (core/config.hpp), cpu/parallel.hpp")
            if path.suffix in {".hpp", ".cuh"} and NO_BOUND.search(line):
                report(path, number, "static constexpr array without a bound, which clang lets no declaration of its class read")


def main():
    errors, warnings = [], []

    def report(path, line, message, warning=False):
        (warnings if warning else errors).append(
            f"{path.relative_to(ROOT)}:{line}: {'warning: ' if warning else ''}{message}")

    check_order(report)
    check_library(report)
    check_writers(report)
    check_habits(report)
    print("\n".join([*warnings, *errors, f"check_includes.py: {len(errors)} errors, {len(warnings)} warnings"]))
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
