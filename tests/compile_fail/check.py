#!/usr/bin/env python3
"""Compiles one file and compares the compiler's opinion with what the file's comments expect.

usage: check.py FILE.cpp -- COMPILER FLAGS...

Comments at the start of a line, anywhere in the file:
    // expect: TEXT          compilation fails and TEXT is in the output (several lines: all of them, in any order)
    // expect-gcc: TEXT      the same, for g++ only; expect-clang likewise
    // expect-errors: N      (or expect-errors-gcc, -clang) and with no more and no fewer errors: what a mistake entails is not reported beside it
    // expect-lines: N       and the compiler says it in at most N lines
    // expect-success        compilation succeeds
    // expect-object: N      and gives an object file of at most N bytes
    // flags: -DX -fopenmp   more flags for this file; flags-gcc, flags-clang for one compiler
"""

import os
import re
import subprocess
import sys
import tempfile


def compiler_kind(compiler):
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    return "clang" if "clang" in version else "gcc"


def flat(text):
    """Compilers wrap and quote differently; compare with single spaces and plain quotes."""
    text = text.replace("\u2018", "'").replace("\u2019", "'")
    return re.sub(r"\s+", " ", text)


def main():
    source, separator, compile_command = sys.argv[1], sys.argv[2], sys.argv[3:]
    if separator != "--" or not compile_command:
        sys.exit(__doc__)
    with open(source, encoding="utf-8") as file:
        lines = file.read().splitlines()

    texts, errors, most_lines, most_bytes, success, flags = [], None, None, None, False, []
    kind = compiler_kind(compile_command[0])
    for line in lines:
        if match := re.match(r"// expect(?:-(gcc|clang))?: *(.*\S)", line):
            if match[1] in (None, kind):
                texts.append(match[2])
        elif match := re.match(r"// expect-errors(?:-(gcc|clang))?: *(\d+)", line):
            errors = int(match[2]) if match[1] in (None, kind) else errors
        elif match := re.match(r"// expect-lines: *(\d+)", line):
            most_lines = int(match[1])
        elif match := re.match(r"// expect-object: *(\d+)", line):
            most_bytes = int(match[1])
        elif re.match(r"// expect-success\b", line):
            success = True
        elif match := re.match(r"// flags(?:-(gcc|clang))?: *(.*)", line):
            flags += match[2].split() if match[1] in (None, kind) else []
    if success == bool(texts):
        sys.exit(f"{source}: names no expectation for {kind}" if not texts else f"{source}: expects both outcomes")

    command = compile_command + flags + [source]
    environment = dict(os.environ, LC_ALL="C")
    size = 0
    with tempfile.TemporaryDirectory() as folder:
        if most_bytes is not None:
            command.remove("-fsyntax-only")
            command += ["-c", "-o", os.path.join(folder, "object.o")]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
        if most_bytes is not None and result.returncode == 0:
            size = os.path.getsize(os.path.join(folder, "object.o"))
    output = result.stdout + result.stderr

    complaints = []
    if success and result.returncode != 0:
        complaints.append("should have compiled")
    elif not success and result.returncode == 0:
        complaints.append("compiled, but should not have")
    if not success and "internal compiler error" in output:
        complaints.append("the compiler crashed")
    seen = flat(output)
    complaints += [f"expected, but not in the output: {text}" for text in texts if flat(text) not in seen]
    found = len(re.findall(r"^\S+:\d+:\d+: error: ", output, re.MULTILINE))
    if errors not in (None, found):
        complaints.append(f"{found} errors, expected {errors}")
    lines_said = len(output.splitlines())
    if most_lines is not None and lines_said > most_lines:
        complaints.append(f"{lines_said} lines of output, at most {most_lines} expected")
    if most_bytes is not None and size > most_bytes:
        complaints.append(f"the object has {size} bytes, at most {most_bytes} expected")
    if complaints:
        print(output)
        print("command:", " ".join(command))
        for complaint in complaints:
            print(f"{source}: {complaint}")
        sys.exit(1)


if __name__ == "__main__":
    main()
