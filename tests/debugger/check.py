#!/usr/bin/env python3
"""Compares what gdb and lldb show of a program's variables with the `// shown:` lines of its source.

    tests/debugger/check.py SOURCE COMPILER [ARGUMENTS ...]

Exits 77, skipped, where there is no debugger, or none that may run programs.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PRINTERS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "debugger_printers.py"


def commands(program):
    if gdb := shutil.which("gdb"):
        yield [gdb, "-nx", "-batch", "-ex", "set print elements 0", "-ex", f"source {PRINTERS}", "-ex", "break stop", "-ex", "run",
               "-ex", "up", "-ex", "info locals", str(program)]
    for name in ("lldb", "lldb-19", "lldb-18", "lldb-17", "lldb-16"):
        if lldb := shutil.which(name):
            yield [lldb, "-x", "-b", "-o", f"command script import {PRINTERS}", "-o", "breakpoint set -n stop", "-o", "run",
                   "-o", "up", "-o", "frame variable", str(program)]
            return


def main():
    source, compiler = pathlib.Path(sys.argv[1]), sys.argv[2:]
    expected = re.findall(r"^// shown: (.*)$", source.read_text(encoding="utf-8"), re.MULTILINE)
    wrong, looked = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        subprocess.run([*compiler, "-g", "-O0", str(source), "-o", str(program)], check=True)
        for command in commands(program):
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                      text=True, timeout=120, check=False)
            except subprocess.TimeoutExpired:
                print(f"{command[0]}: no answer")
                continue
            lines = done.stdout.splitlines()
            name = expected[0].split(" = ")[0]
            if not any(re.search(rf"\b{name} = ", line) for line in lines):  # the program was not run, or it has no Python
                print(f"{command[0]} did not run it:\n{done.stdout}")
                continue
            looked += 1
            for text in expected:
                if not any(line.endswith(text) for line in lines):
                    wrong += 1
                    print(f"{command[0]} does not show: {text}")
            if wrong:
                print(done.stdout)
    sys.exit(1 if wrong else 0 if looked else 77)


if __name__ == "__main__":
    main()
