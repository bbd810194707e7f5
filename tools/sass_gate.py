#!/usr/bin/env python3
"""Reads the machine code of GPU kernels and rejects kernels that would be slow, or wait, on any
device.

  sass_gate.py SOURCE.cu [--architectures 75,80,...] [--nvcc NVCC] [--nvdisasm NVDISASM] [--keep FOLDER] -- FLAG...

Compiles the device half of SOURCE for each architecture, as many at once as there are processors,
and checks every kernel:

  spills     none: nothing is read from or written to a thread's local memory
  share      of the issue slots of its main loop that multiply: of the instructions of the innermost loop with most of them, on
             the shortest path that has all multiplications and copies. On tensor cores an instruction takes several cycles:
             there it is the part of the peak that is left if every other instruction takes one. A warpgroup's (HGMMA) must
             not wait for one another, except once per iteration
  fences     MEMBAR inside any loop: at most as many as the table says
  width      bytes of a warp's shared memory reads in the main loop, on average, per lane

The TABLE below has the requirements by kernel. A kernel that matches no line must only have no
spills; a line that matches nothing is an error. nvdisasm is the toolkit's or nvidia-cuda-nvdisasm
of PyPI, which --fetch FOLDER downloads there once; without it the tool says so and exits with 77.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import fetch_package
import kernel_report

SKIPPED = 77
NVDISASM = "nvidia-cuda-nvdisasm==13.5.37"


@dataclasses.dataclass
class Demand:
    """The requirements for kernels whose readable name matches, on `architectures` (a first and a
    last one)."""

    kernel: str
    unit: str = ""  # the multiplying instruction: FFMA or HMMA
    share: float = 0.0  # of the main loop's issue slots, or of the tensor cores' time
    fences: int = 0
    width: float = 0.0
    architectures: tuple = (75, 999)
    source: str = "kernels"  # the file it is in


TABLE = [
    # Blocks of a grid synchronise by a release at device scope: one fence per step. A cluster needs
    # none.
    Demand(r"recurrent_\w+_resident<.*grid_exchange", "FFMA", 0.0, fences=1),
    Demand(r"recurrent_\w+_resident<.*cluster_exchange", "FFMA", 0.0, fences=0, architectures=(90, 999)),
    Demand(r"implicit_gemm<forward_problem", "FFMA", 0.78, width=16),
    Demand(r"implicit_gemm<input_gradient_problem", "FFMA", 0.75, width=16),
    Demand(r"implicit_gemm<filter_gradient_problem", "FFMA", 0.68, width=15),
    # A transposed matrix is read in pieces of 4 bytes, because the load cannot transpose it.
    Demand(r"tensor_gemm<forward_problem<.*\)0>", "HMMA", 0.70, width=7),
    Demand(r"tensor_gemm<input_gradient_problem", "HMMA", 0.70, width=12),
    Demand(r"tensor_gemm<filter_gradient_problem<float", "HMMA", 0.55, width=4),
    Demand(r"tensor_gemm<filter_gradient_problem<bfloat16", "HMMA", 0.60, width=12),
    Demand(r"tensor_gemm<forward_problem<.*\)1>", "HMMA", 0.50, width=6),
    # With few units a step's tiles are small: copies from the L2 cache bound them, not issue slots.
    Demand(r"tensor_step<tensor_forward_step", "HMMA", 0.60, width=6),
    Demand(r"tensor_step<tensor_backward_step", "HMMA", 0.30, width=10),
    Demand(r"warpgroup_convolution<float", "HGMMA", 0.99, source="warpgroups"),
    Demand(r"warpgroup_convolution<bfloat16", "HGMMA", 0.99, source="warpgroups"),
]

# Cycles that the tensor cores of a quarter of a multiprocessor are busy with an instruction, by
# architecture and shape: NVIDIA's peaks of dense products divided by multiprocessors and clock
# (A100, GA102, AD102, H100; 10.0 and 12.0 are assumed to be like their predecessors).
HMMA_CYCLES = {
    "1688.F32.TF32": {80: 8, 86: 16, 89: 16, 90: 4, 100: 4, 120: 16},
    "16816.F32": {80: 8, 86: 16, 89: 16, 90: 4, 100: 4, 120: 16},
}

# The same for a warpgroup's products on sm_90a, per column: 64 rows by 32 bytes of k take half a
# cycle of the whole multiprocessor.
HGMMA = re.compile(r"HGMMA\.64x(\d+)x(?:8\.F32\.TF32|16\.F32)")

INSTRUCTION = re.compile(r"^\s+(?:/\*[0-9a-f]+\*/)?\s*(?:\{\s*)?(@!?U?P\w+\s+)?([A-Z][A-Za-z0-9_.]*)\b(.*)")
LABEL = re.compile(r"^(\.L_\w+):")
TARGET = re.compile(r"`\((\.L_\w+)\)")
READ_WIDTH = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def find_tool(name, given):
    """Finds a program by its path, in PATH, or in a Python package of NVIDIA's."""
    if given:
        return given if pathlib.Path(given).is_file() else None
    if found := shutil.which(name):
        return found
    for root in {sysconfig.get_paths()["purelib"], *sys.path}:
        for candidate in sorted(pathlib.Path(root).glob(f"nvidia/*/bin/{name}")) if root else []:
            if os.access(candidate, os.X_OK):
                return str(candidate)
    return None


def fetched_nvdisasm(folder):
    """Returns the program from PyPI's package, downloaded to FOLDER once; None and the reason if
    pip or its registry is not available."""
    found, why = fetch_package.fetch(NVDISASM, folder, "nvidia/cu13/bin/")
    if found is None:
        return None, why
    program = found / "nvdisasm"
    program.chmod(0o755)
    return str(program), ""


def functions_of(listing):
    """Returns {mangled name: [(opcode, rest of the line) or label]}, from the output of nvdisasm
    -c."""
    functions, current = {}, None
    for line in listing.splitlines():
        if line.startswith(".text."):
            current = functions.setdefault(line[6:].split(":")[0], [])
        elif line.startswith("\t.section"):
            current = None
        elif current is not None:
            if label := LABEL.match(line):
                current.append(label[1])
            elif instruction := INSTRUCTION.match(line):
                current.append((instruction[2], ("?" if instruction[1] else "") + instruction[3]))
    return functions


def loops_of(code):
    """Returns (first, last) positions of the code between a label and a later branch back to it."""
    places, loops = {}, set()
    for at, entry in enumerate(code):
        if isinstance(entry, str):
            places[entry] = at
        elif entry[0].startswith("BRA") and (target := TARGET.search(entry[1])) and target[1] in places:
            loops.add((places[target[1]], at))
    # A loop with two back edges counts once.
    return [loop for loop in loops if not any(o[0] == loop[0] and o[1] > loop[1] for o in loops)]


def opcodes(code, loop):
    return [entry[0] for entry in code[loop[0] : loop[1] + 1] if not isinstance(entry, str) and entry[0] != "NOP"]


def common_way(code, loop, unit):
    """Returns the opcodes of the shortest path through a loop that has all the multiplications and
    copies that a path can have: what happens only once in many iterations, such as going to the
    next tap, is left out. Inner loops are passed once."""
    first, last = loop
    places = {entry: at for at, entry in enumerate(code) if isinstance(entry, str)}
    best = {first: (0, 0, None)}  # at an entry: (-work, instructions, the entry before)
    for at in range(first, last + 1):
        if at not in best:
            continue
        work, length, _ = best[at]
        entry, following = code[at], [at + 1]
        if not isinstance(entry, str):
            name, rest = entry
            if name != "NOP":
                length += 1
                work -= name.startswith((unit, "LDGSTS") if unit == "HMMA" else (unit, "LDG", "LDS", "STS"))
            if name.startswith(("BRA", "EXIT", "BRX")):
                target = TARGET.search(rest)
                following = [places.get(target[1], -1)] if target else []
                if rest.startswith("?"):  # only if a predicate holds
                    following.append(at + 1)
        for to in following:
            if to > at and (to not in best or (work, length) < best[to][:2]):
                best[to] = (work, length, at)
    way, at = [], last
    if last not in best:
        return opcodes(code, loop)
    while at is not None:
        if not isinstance(code[at], str) and code[at][0] != "NOP":
            way.append(code[at][0])
        at = best[at][2]
    return way[::-1]


def main_loop(code, unit):
    """Returns the innermost loop with most instructions of a kind; the shortest, if the code that
    waits is after the kernel and branches back."""
    best, most = None, 0
    for loop in loops_of(code):
        inside = sum(op.startswith(unit) for op in opcodes(code, loop))
        inner = any(o != loop and loop[0] <= o[0] and o[1] <= loop[1] and
                    2 * sum(op.startswith(unit) for op in opcodes(code, o)) > inside for o in loops_of(code))
        shorter = best is not None and loop[1] - loop[0] < best[1] - best[0]
        if (inside > most or (inside == most and shorter)) and not inner:
            best, most = loop, inside
    return best


def share_of(ops, unit, architecture):
    """Returns the part of the issue slots, or of the tensor cores' time, that multiplies."""
    count = sum(op.startswith(unit) for op in ops)
    if unit == "HGMMA":
        cycles = sum(int(HGMMA.match(op)[1]) / 2 for op in ops if op.startswith(unit))
        return cycles / max(cycles, len(ops))
    if unit != "HMMA":
        return count / len(ops)
    cycles = 0
    for op in ops:
        if op.startswith("HMMA"):
            shape = next((s for s in HMMA_CYCLES if s in op), None)
            if shape is None:
                raise SystemExit(f"sass_gate.py: no cycles are known of {op}")
            cycles += HMMA_CYCLES[shape].get(architecture, 4)
    return cycles / max(cycles, len(ops))


def width_of(ops):
    """Returns the bytes that a lane reads from shared memory at once, on average; ldmatrix reads 4
    for each of its matrices."""
    widths = []
    for op in ops:
        if op.startswith("LDSM"):
            widths.append(4 * int(op.rsplit(".", 1)[-1]) if op[-1].isdigit() and not op.endswith("88") else 4)
        elif op.startswith("LDS"):
            parts = [p for p in op.split(".") if p.lstrip("US") in READ_WIDTH]
            widths.append(READ_WIDTH[parts[0].lstrip("US")] if parts else 4)
    return sum(widths) / len(widths) if widths else 0.0


def look_at(name, code, architecture, source):
    """Returns a line for the report, and what is wrong."""
    errors = []
    ops = [entry[0] for entry in code if not isinstance(entry, str)]
    spills = sum(op.startswith(("STL", "LDL")) for op in ops)
    if spills:
        errors.append(f"{spills} accesses to local memory: it spills registers")
    fences = max((sum(op.startswith("MEMBAR") for op in opcodes(code, loop)) for loop in loops_of(code)), default=0)
    demands = [d for d in TABLE if d.source == source and re.search(d.kernel, name)
               and d.architectures[0] <= architecture <= d.architectures[1]]
    line = ""
    for demand in demands:
        if fences > demand.fences:
            errors.append(f"{fences} MEMBAR in a loop, at most {demand.fences} may be there")
        loop = main_loop(code, demand.unit)
        if loop is None:
            errors.append(f"no loop with {demand.unit}")
            continue
        inside = common_way(code, loop, demand.unit)
        share, width = share_of(inside, demand.unit, architecture), width_of(inside)
        line = f"{sum(op.startswith(demand.unit) for op in inside):5} {demand.unit} of {len(inside):5} {share:5.0%} {width:5.1f}"
        if demand.unit == "HGMMA" and (waits := sum(op.startswith("WARPGROUP.DEPBAR") for op in inside)) != 1:
            errors.append(f"its main loop waits {waits} times for products, once is demanded")
        if share < demand.share:
            errors.append(f"{share:.0%} of the main loop multiplies, {demand.share:.0%} is demanded")
        if width < demand.width:
            errors.append(f"its main loop reads {width:.1f} bytes of shared memory at once, {demand.width:g} are demanded")
    return f"{line:31} {fences:6} {spills:6}", [d.kernel for d in demands], errors


def compile_one(arguments, architecture, folder):
    """Returns the machine code for an architecture, or what went wrong."""
    cubin = pathlib.Path(folder) / f"sm_{architecture}.cubin"
    made = subprocess.run([arguments.nvcc, "-cubin", f"-arch=sm_{architecture}", *arguments.flags, arguments.source,
                           "-o", str(cubin)], capture_output=True, text=True)
    if made.returncode != 0:
        return None, made.stderr
    read = subprocess.run([arguments.nvdisasm, "-c", str(cubin)], capture_output=True, text=True)
    return (read.stdout, "") if read.returncode == 0 else (None, read.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--architectures", default="75,80,86,89,90,100,120")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--nvdisasm")
    parser.add_argument("--fetch", metavar="FOLDER", help="where nvdisasm is kept if it has to be downloaded")
    parser.add_argument("--keep", help="a folder for the machine code as text")
    before, _, flags = sys.argv[1:], None, []
    if "--" in before:
        flags = before[before.index("--") + 1 :]
        before = before[: before.index("--")]
    arguments = parser.parse_args(before)
    arguments.flags = flags
    arguments.nvdisasm = find_tool("nvdisasm", arguments.nvdisasm)
    why = ""
    if arguments.nvdisasm is None and arguments.fetch:
        arguments.nvdisasm, why = fetched_nvdisasm(arguments.fetch)
    if arguments.nvdisasm is None:
        print(f"sass_gate.py: skipped, there is no nvdisasm (pip install {NVDISASM})" + (f": {why}" if why else ""))
        return SKIPPED
    architectures = arguments.architectures.split(",")  # "90a" is a 90 with features that later ones lack
    number_of = {a: int(a.rstrip("af")) for a in architectures}
    source = pathlib.Path(arguments.source).stem
    errors, matched = [], set()
    print(f"{'device':7} {'multiplying':18} {'share':>5} {'width':>6} {'fences':>6} {'spills':>6}  kernel")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda a: compile_one(arguments, a, folder), architectures)
        for architecture, (listing, problem) in zip(architectures, results):
            if listing is None:
                errors.append(f"sm_{architecture}: {problem.strip()}")
                continue
            if arguments.keep:
                pathlib.Path(arguments.keep).mkdir(parents=True, exist_ok=True)
                (pathlib.Path(arguments.keep) / f"sm_{architecture}.sass").write_text(listing, encoding="utf-8")
            functions = functions_of(listing)
            names = kernel_report.readable(sorted(functions))
            if not functions:
                errors.append(f"sm_{architecture}: no kernels")
            for mangled, code in sorted(functions.items(), key=lambda f: names[f[0]]):
                line, demands, wrong = look_at(names[mangled], code, number_of[architecture], source)
                matched.update(demands)
                print(f"sm_{architecture:<4} {line}  {names[mangled]}")
                errors += [f"{names[mangled]} for sm_{architecture}: {w}" for w in wrong]
    reached = [d for d in TABLE if d.source == source
               and any(d.architectures[0] <= a <= d.architectures[1] for a in number_of.values())]
    errors += [f"no kernel matches '{d.kernel}'" for d in reached if d.kernel not in matched]
    for error in errors:
        print(f"error: {error}")
    print(f"sass_gate.py: {len(architectures)} architectures, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
