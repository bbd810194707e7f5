#!/usr/bin/env python3
"""Counts the instructions of value_and_gradient(f) and of the same gradient written by hand, from the object code of
scalar_gradient.cpp, and prints the table of docs/performance/scalar_gradients.md. Fails when a gradient calls anything.

    benchmarks/scalar_gradient.py [compiler ...]        default: g++ and clang++-16, where found
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
source = root / "benchmarks" / "scalar_gradient.cpp"
padding = re.compile(r"\b(nop\w*|xchg\s+%ax,%ax|data16|cs nop\w*|endbr64)\b")


def counted(compiler):
    """{function: (instructions, calls)} of one compiler's object code. A function of the same file that is called counts
    with its caller; calls are those that leave the file."""
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "scalar_gradient.o"
        subprocess.run([compiler, "-std=c++20", "-O2", f"-I{root / 'include'}", "-c", source, "-o", target],
                       check=True)
        text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", target], check=True, capture_output=True,
                              text=True).stdout
    own, called, name = {}, {}, None
    for line in text.splitlines():
        if match := re.match(r"[0-9a-f]+ <(.+)>:", line):
            name = match[1]
            own[name], called[name] = 0, []
        elif name and (match := re.search(r"\bR_X86_64_(?:PLT32|PC32)\s+(\S+)-0x4", line)):
            if calling:
                called[name].append(match[1])
        elif name and "\t" in line:
            instruction = line.split("\t", 1)[1].strip()
            if padding.match(instruction):
                continue
            own[name] += 1
            match = re.match(r"(?:call|jmp)\s+[0-9a-f]+ <([^+>]+)>$", instruction)
            calling = re.match(r"(call|jmp)\b", instruction)
            if match and match[1] != name:
                called[name].append(match[1])

    def total(function, seen):
        seen.add(function)
        instructions, calls = own[function], 0
        for callee in called[function]:
            if callee not in own:
                calls += 1
            elif callee not in seen:
                more, further = total(callee, seen)
                instructions, calls = instructions + more, calls + further
        return instructions, calls

    return {f: total(f, set()) for f in own if re.match(r"(library|hand)_", f)}


def main():
    compilers = sys.argv[1:] or [c for c in ("g++", "clang++-16") if shutil.which(c)]
    tables = [counted(c) for c in compilers]
    print("| gradient | " + " | ".join(f"{c}: library | by hand | ratio" for c in compilers) + " |")
    print("| --- | " + " | ".join("---: | ---: | ---:" for _ in compilers) + " |")
    failed = False
    for name in [n.removeprefix("library_") for n in tables[0] if n.startswith("library_")]:
        cells = []
        for counts in tables:
            (ours, calls), (hand, _) = counts["library_" + name], counts["hand_" + name]
            cells.append(f"{ours} | {hand} | {ours / hand:.2f}")
            if calls:
                failed = True
                print(f"{name}: {calls} calls", file=sys.stderr)
        print(f"| `{name}` | " + " | ".join(cells) + " |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
