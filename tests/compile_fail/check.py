#!/usr/bin/env python3
"""Compiles files and compares the compiler's opinion of each with what the file's comments expect.

A mistake is one error of at most 12 lines and 2,000 characters, and the file with the mistake is named first: by the first line that
the compiler prints, and by the error.

usage: check.py [--umbrella HEADER] FILE.cpp... -- COMPILER FLAGS...

HEADER includes the umbrella header and is precompiled (HEADER.gch). It is read first by files that include the umbrella and have
neither macros nor flags of their own, unless they are a control, which is compiled as users compile. Several such files are one
compilation, each in a namespace of its own, and what the compiler prints is dealt out to them (together.py); a file that this does
not suit is compiled by itself, which decides.

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

from together import opinions_together


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


class Expectation:
    """What the comments of one file say."""

    def __init__(self, source, kind):
        self.source = source
        with open(source, encoding="utf-8") as file:
            self.lines = file.read().splitlines()
        self.texts, self.errors, self.flags, self.most_bytes = [], 1, [], None
        self.success = self.elsewhere = self.longer = False
        for line in self.lines:
            if match := re.match(r"// expect(?:-(gcc|clang))?: *(.*\S)", line):
                if match[1] in (None, kind):
                    self.texts.append(match[2])
            elif match := re.match(r"// expect-errors(?:-(gcc|clang))?: *(\d+)", line):
                self.errors = int(match[2]) if match[1] in (None, kind) else self.errors
            elif match := re.match(r"// expect-elsewhere(?:-(gcc|clang))?: *\S", line):
                self.elsewhere |= match[1] in (None, kind)
            elif match := re.match(r"// expect-longer(?:-(gcc|clang))?: *\S", line):
                self.longer |= match[1] in (None, kind)
            elif match := re.match(r"// expect-object: *(\d+)", line):
                self.most_bytes = int(match[1])
            elif re.match(r"// expect-success\b", line):
                self.success = True
            elif match := re.match(r"// flags(?:-(gcc|clang))?: *(.*)", line):
                self.flags += match[2].split() if match[1] in (None, kind) else []
        if self.success == bool(self.texts):
            sys.exit(f"{source}: names no expectation for {kind}" if not self.texts else f"{source}: expects both outcomes")

    def may_begin_with_umbrella(self):
        own_settings = any(re.match(r"#(?!include)|// flags", line) for line in self.lines)
        control = os.path.basename(self.source).startswith("control_")
        return "#include <tapegraph/tapegraph.hpp>" in self.lines and not own_settings and not control

    def may_stand_with_others(self):
        return self.may_begin_with_umbrella() and not self.success

    def complaints(self, output, failed, size=0):
        """What is not as expected in the compiler's output about this file."""
        if self.success and failed:
            yield "should have compiled"
        elif not self.success and not failed:
            yield "compiled, but should not have"
        if not self.success and "internal compiler error" in output:
            yield "the compiler crashed"
        seen = flat(output)
        yield from (f"expected, but not in the output: {text}" for text in self.texts if flat(text) not in seen)
        if not self.success:
            found = len(re.findall(r"^\S+:\d+:\d+: error: ", output, re.MULTILINE))
            if found != self.errors:
                yield f"{found} errors, expected {self.errors}"
            count = len(re.sub(r"^\d+ errors? generated\.\n", "", output, flags=re.MULTILINE).splitlines()) # clang's last line
            if not self.longer and count > MOST_LINES:
                yield f"{count} lines of output, at most {MOST_LINES} expected"
            characters = len(output.replace(ROOT + "/", "")) # wherever the repository lies
            if not self.longer and characters > MOST_CHARACTERS:
                yield f"{characters} characters of output, at most {MOST_CHARACTERS} expected"
            if not self.elsewhere:
                yield from self.place_complaints(output)
        if self.most_bytes is not None and size > self.most_bytes:
            yield f"the object has {size} bytes, at most {self.most_bytes} expected"

    def place_complaints(self, output):
        """Who is named first must be the file with the mistake."""
        name = os.path.basename(self.source)
        first = re.match(r"(\S+?):", output)
        error = re.search(r"^(\S+?):\d+:\d+: (?:fatal )?error: ", output, re.MULTILINE)
        for what, found in (("line", first), ("error", error)):
            if found is None or os.path.basename(found[1]) != name:
                yield f"the first {what} names {found[1] if found else 'no file'}, not {name}"


def compiled_alone(expectation, umbrella, compile_command):
    """Compiles the file by itself and prints what is not as expected; whether everything is."""
    flags = ["-include", umbrella] if umbrella and expectation.may_begin_with_umbrella() else expectation.flags
    command = compile_command + flags + [expectation.source]
    size = 0
    with tempfile.TemporaryDirectory() as folder:
        if expectation.most_bytes is not None:
            command.remove("-fsyntax-only")
            command += ["-c", "-o", os.path.join(folder, "object.o")]
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=dict(os.environ, LC_ALL="C"))
        if expectation.most_bytes is not None and result.returncode == 0:
            size = os.path.getsize(os.path.join(folder, "object.o"))
    output = result.stdout + result.stderr
    complaints = list(expectation.complaints(output, result.returncode != 0, size))
    if complaints:
        print(output)
        print("command:", " ".join(command))
        for complaint in complaints:
            print(f"{expectation.source}: {complaint}")
    return not complaints


def main():
    umbrella, arguments = None, sys.argv[1:]
    if arguments[:1] == ["--umbrella"]:
        umbrella, arguments = arguments[1], arguments[2:]
    if "--" not in arguments:
        sys.exit(__doc__)
    place = arguments.index("--")
    sources, compile_command = arguments[:place], arguments[place + 1:]
    if not sources or not compile_command:
        sys.exit(__doc__)
    kind = compiler_kind(compile_command[0])
    rest = [Expectation(source, kind) for source in sources]
    suitable = [each for each in rest if each.may_stand_with_others()] if umbrella and kind == "gcc" else []
    if len(suitable) > 1:
        opinions = opinions_together([each.source for each in suitable], [*compile_command, "-include", umbrella])
        as_expected = [each for each in suitable
                       if each.source in opinions and not list(each.complaints(opinions[each.source], failed=True))]
        rest = [each for each in rest if each not in as_expected]
        print(f"{len(as_expected)} of {len(sources)} files as one compilation;",
              "by themselves:", *(os.path.basename(each.source) for each in rest))
    if not all([compiled_alone(each, umbrella, compile_command) for each in rest]):
        sys.exit(1)


if __name__ == "__main__":
    main()
