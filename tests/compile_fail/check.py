#!/usr/bin/env python3
"""Compiles one file and compares the compiler's opinion with what the file's comments expect.

A mistake is one error of at most 12 lines and 2,000 characters, and the file with the mistake is named first: by the first line that
the compiler prints, and by the error.

usage: check.py [--umbrella HEADER] FILE.cpp -- COMPILER FLAGS...

HEADER includes the umbrella header and is precompiled (HEADER.gch). It is read first by files that include the umbrella and have
neither macros nor flags of their own, unless they are a control, which is compiled as users compile.

Comments at the start of a line, anywhere in the file:
    // expect: TEXT          compilation fails and TEXT is in the output (several lines: all of them, in any order)
    // expect-gcc: TEXT      the same, for g++ only; expect-clang likewise
    // expect-errors: N      errors, where it is not one (or expect-errors-gcc, -clang)
    // expect-elsewhere: WHY the error is not in this file
    // expect-longer: WHY    more lines or characters than a mistake may take
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


MOST_LINES, MOST_CHARACTERS = 12, 2000
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def flat(text):
    """Compilers wrap and quote differently; compare with single spaces and plain quotes. A text that is continued in the next
    argument, because clang would abbreviate it, ends with a space."""
    text = text.replace("\u2018", "'").replace("\u2019", "'")
    text = re.sub(r"\s+", " ", text)
    return re.sub(r' "\}, [\w:]*(<\d+>)?\{"', " ", text)


def place_complaints(source, output):
    """Who is named first must be the file with the mistake."""
    name = os.path.basename(source)
    first = re.match(r"(\S+?):", output)
    error = re.search(r"^(\S+?):\d+:\d+: (?:fatal )?error: ", output, re.MULTILINE)
    for what, found in (("line", first), ("error", error)):
        if found is None or os.path.basename(found[1]) != name:
            yield f"the first {what} names {found[1] if found else 'no file'}, not {name}"


def may_begin_with_umbrella(source, lines):
    return ("#include <tapegraph/tapegraph.hpp>" in lines and not any(re.match(r"#(?!include)|// flags", line) for line in lines)
            and not os.path.basename(source).startswith("control_"))


def main():
    umbrella, arguments = None, sys.argv[1:]
    if arguments[:1] == ["--umbrella"]:
        umbrella, arguments = arguments[1], arguments[2:]
    source, separator, compile_command = *(arguments + ["", ""])[:2], arguments[2:]
    if separator != "--" or not compile_command:
        sys.exit(__doc__)
    with open(source, encoding="utf-8") as file:
        lines = file.read().splitlines()

    texts, errors, most_bytes, success, elsewhere, longer, flags = [], 1, None, False, False, False, []
    kind = compiler_kind(compile_command[0])
    for line in lines:
        if match := re.match(r"// expect(?:-(gcc|clang))?: *(.*\S)", line):
            if match[1] in (None, kind):
                texts.append(match[2])
        elif match := re.match(r"// expect-errors(?:-(gcc|clang))?: *(\d+)", line):
            errors = int(match[2]) if match[1] in (None, kind) else errors
        elif match := re.match(r"// expect-elsewhere(?:-(gcc|clang))?: *\S", line):
            elsewhere |= match[1] in (None, kind)
        elif match := re.match(r"// expect-longer(?:-(gcc|clang))?: *\S", line):
            longer |= match[1] in (None, kind)
        elif match := re.match(r"// expect-object: *(\d+)", line):
            most_bytes = int(match[1])
        elif re.match(r"// expect-success\b", line):
            success = True
        elif match := re.match(r"// flags(?:-(gcc|clang))?: *(.*)", line):
            flags += match[2].split() if match[1] in (None, kind) else []
    if success == bool(texts):
        sys.exit(f"{source}: names no expectation for {kind}" if not texts else f"{source}: expects both outcomes")

    if umbrella and may_begin_with_umbrella(source, lines):
        flags = ["-include", umbrella]
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
    if not success:
        found = len(re.findall(r"^\S+:\d+:\d+: error: ", output, re.MULTILINE))
        if found != errors:
            complaints.append(f"{found} errors, expected {errors}")
        count = len(re.sub(r"^\d+ errors? generated\.\n", "", output, flags=re.MULTILINE).splitlines()) # clang's last line
        if not longer and count > MOST_LINES:
            complaints.append(f"{count} lines of output, at most {MOST_LINES} expected")
        characters = len(output.replace(ROOT + "/", "")) # wherever the repository lies
        if not longer and characters > MOST_CHARACTERS:
            complaints.append(f"{characters} characters of output, at most {MOST_CHARACTERS} expected")
        if not elsewhere:
            complaints += place_complaints(source, output)
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
