#!/usr/bin/env python3
"""Compiles every ```cpp block of README.md, CONTRIBUTING.md and docs/, and compares the printed
output with the pages.

    tools/check_snippets.py [--compiler g++] [--show] [--front-end] [--precompiled HEADER] [--component LIBRARY SETS]
                            [PAGE.md ...] [-- more compiler arguments]
    tools/check_snippets.py --ran SOURCE PROGRAM PAGE.md     runs a program and compares its output with the page

A page is one compilation; errors name its lines. HEADER includes the umbrella header, and pages
that do not run read HEADER.gch instead; pages that run link LIBRARY, the compiled component for the
instruction sets SETS. Words after `cpp` give the kind of a block:

    ```cpp                         declarations: in a namespace of their own
    ```cpp statements              the body of a function
    ```cpp continues               declarations that use those of the last block
    ```cpp continues statements    the same function goes on, or a function that uses the declarations above it
    ```cpp global                  declarations outside any namespace
    ```cpp refused                 (and the words above) the compiler must refuse it
    ```text output                 what the statements right above print; the page is then linked and run

    <!-- program examples/x.cpp -->   the program that the next blocks are excerpts of:
    ```cpp excerpt                 these lines occur in the program, which is compiled elsewhere
    ```text excerpt                the program prints these lines (checked with --ran)

In outputs `...` stands for anything in a line, or for any lines; in outputs of programs a number
with a decimal point also matches similar numbers. Code that a block needs and a reader does not
goes into a comment with the same words, which pages do not show:

    <!-- cpp statements
    tg::tensor<float> x, y;
    -->

Blocks may use everything in the umbrella header, as `tapegraph` and as `tg`; other headers are
included in a block of the page or in such a comment. Exits 1 if any page is wrong.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = {"statements", "continues", "global", "refused"}
OPENING = re.compile(r"^(?:```|<!-- )(cpp|text)\b(.*)$")
PROGRAM = re.compile(r"^<!-- program (\S+) -->$")
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
MARK, END = "\x1d", "\x1e"  # between the outputs of blocks, and after the last line of one


@dataclasses.dataclass
class Block:
    page: str
    line: int  # of the first line of code
    words: set
    code: list
    output: list = None
    output_line: int = 0


def is_hoisted(line):
    """Headers and macros must come before everything else."""
    return line.startswith(("#include", "#define"))


@dataclasses.dataclass
class Excerpt:
    page: str
    line: int
    program: str
    printed: bool  # it is output, not source
    lines: list


def blocks_of(page, text, report):
    """Returns the cpp blocks of a page, each with the output that follows it, and its excerpts of
    programs."""
    found, excerpts, named, lines, at = [], [], None, text.splitlines(), 0
    while at < len(lines):
        if program := PROGRAM.match(lines[at]):
            named = program[1]
            if not (ROOT / named).is_file():
                report(page, at + 1, f"there is no {named}")
        opening = OPENING.match(lines[at])
        if not opening:
            # A fence of another language may contain fences.
            if lines[at].startswith("```"):
                at += 1
                while at < len(lines) and not lines[at].startswith("```"):
                    at += 1
            at += 1
            continue
        hidden, start = lines[at].startswith("<!--"), at + 1
        end = start
        while end < len(lines) and not lines[end].startswith("-->" if hidden else "```"):
            end += 1
        words, code = set(opening[2].split()), lines[start:end]
        if "excerpt" in words:
            if named is None:
                report(page, start, "an excerpt of no program")
            else:
                excerpts.append(Excerpt(page, start + 1, named, opening[1] == "text", code))
        elif opening[1] == "text":
            if "output" in words:
                if found and "statements" in found[-1].words and found[-1].output is None:
                    found[-1].output, found[-1].output_line = code, start + 1
                else:
                    report(page, start, "no statements are right above this output")
        elif words - WORDS:
            report(page, start, f"unknown words after cpp: {' '.join(sorted(words - WORDS))}")
        else:
            found.append(Block(page, start + 1, words, code))
        at = end + 1
    return found, excerpts


def groups_of(blocks, report):
    """Returns lists of blocks that share a namespace."""
    groups = []
    for block in blocks:
        if "continues" not in block.words:
            groups.append([])
        elif not groups:
            report(block.page, block.line, "there is no block that this one could continue")
            groups.append([])
        groups[-1].append(block)
    return groups


def lines_of(block, output=False):
    code = [] if not output else [f'std::cout << "{MARK}{block.line}\\n";']
    code += [f'#line {block.line} "{block.page}"']
    code += ["" if is_hoisted(line) else line for line in block.code]
    if "statements" not in block.words:  # a whole program, in its namespace
        code = [line.replace("int main(", "void main_(") for line in code]
    return code + (['#line 1 "program"', f'std::cout << "{MARK}\\n";'] if output else [])


def program(groups, run, refused=None):
    """Returns the source of one compilation of groups. Blocks to be refused are left out, except
    one."""
    chosen = [[b for b in group if "refused" not in b.words or b is refused] for group in groups]
    if refused:
        chosen = [group for group in chosen if refused in group]
    includes = [f'#line {b.line + i} "{b.page}"\n{line.strip()}' for group in chosen for b in group
                for i, line in enumerate(b.code) if is_hoisted(line)]
    text = ["#include <tapegraph/tapegraph.hpp>", *(["#include <iostream>"] if run else []), *includes, "namespace tg = tapegraph;"]
    calls = []
    for number, group in enumerate(chosen):
        declarations = [b for b in group if "statements" not in b.words]
        statements = [b for b in group if "statements" in b.words]
        for b in declarations:
            if "global" in b.words:
                text += lines_of(b)
        text += [f"namespace snippet_{number} {{"]
        for b in declarations:
            if "global" not in b.words:
                text += lines_of(b)
        if statements:
            text += ['#line 1 "program"', "void statements() {"]
            for b in statements:
                text += lines_of(b, run and b.output is not None)
            text += ["}"]
            if any(b.output is not None for b in statements):
                calls.append(f"    snippet_{number}::statements();")
        text += ["}"]
    if run:
        text += ['#line 1 "program"', "int main() {", *calls, "}"]
    return "\n".join(text) + "\n"


def compile_text(command, text, libraries=()):
    linked = ["-x", "none", *libraries] if libraries else []  # clang warns if no file follows
    done = subprocess.run([*command, "-x", "c++", "-", *linked], input=text, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=ROOT, check=False)
    return done.returncode, done.stdout


def first_errors(output):
    errors = [line for line in output.splitlines() if re.search(r"error:|undefined reference", line)]
    return "\n    ".join(errors[:8] or output.splitlines()[:8])


def alike(wanted, got, near):
    """Whether a line of a page matches the printed one; with `near`, numbers with a point may
    differ a little."""
    if "..." in wanted:
        pattern = ".*".join(re.escape(part) for part in wanted.rstrip().split("..."))
        return re.fullmatch(pattern, got.rstrip()) is not None
    if not near:
        return wanted.rstrip() == got.rstrip()
    if NUMBER.sub("0", wanted).split() != NUMBER.sub("0", got).split():
        return False
    for a, b in zip(NUMBER.findall(wanted), NUMBER.findall(got)):
        if a != b and ("." not in a or abs(float(a) - float(b)) > 0.02 + 0.05 * abs(float(a))):
            return False
    return True


def begins_with(wanted, got, near):
    """Whether the first lines of `got` are the wanted ones; a line of three points is any number of
    lines."""
    if not wanted:
        return True
    if wanted[0].strip() == "...":
        return any(begins_with(wanted[1:], got[i:], near) for i in range(len(got) + 1))
    return bool(got) and alike(wanted[0], got[0], near) and begins_with(wanted[1:], got[1:], near)


def words(lines):
    """Splits code into words, however its lines are broken."""
    return " ".join(" ".join(lines).split())


def check_excerpts(excerpts, source, lines, printed, report):
    """Checks that excerpts of a program occur in its lines; excerpts of its output, each after the
    one before."""
    at = 0
    for excerpt in excerpts:
        if excerpt.program != source or excerpt.printed != printed:
            continue
        if not printed:
            if words(excerpt.lines) not in words(lines):
                report(excerpt.page, excerpt.line, f"{source} does not contain this")
            continue
        found = next((i for i in range(at, len(lines)) if begins_with(excerpt.lines, lines[i:], True)), None)
        if found is None:
            report(excerpt.page, excerpt.line, f"{source} does not print this here")
        else:
            at = found + 1


def compare(page, blocks, printed, report):
    """Compares what blocks printed with the page."""
    parts = dict(re.findall(f"{MARK}(\\d+)\n(.*?){MARK}\n", printed, re.DOTALL))
    for block in blocks:
        if block.output is None:
            continue
        got = parts.get(str(block.line))
        if got is None:
            report(page, block.output_line, "the program did not get here")
            continue
        got = got.splitlines()
        if not begins_with(block.output + [END], got + [END], False):
            report(page, block.output_line, "the program prints\n    " + "\n    ".join(got))


def check_page(page, text, options, given):
    errors = []

    def report(name, line, message):
        errors.append(f"{name}:{line}: {message}")

    blocks, excerpts = blocks_of(page, text, report)
    for source in {excerpt.program for excerpt in excerpts}:
        if (ROOT / source).is_file():
            check_excerpts(excerpts, source, (ROOT / source).read_text(encoding="utf-8").splitlines(), False, report)
    groups = groups_of(blocks, report)
    run = not given.front_end and any(b.output is not None for b in blocks)
    if not blocks:
        return len(excerpts), errors
    source = program(groups, run)
    if given.show:
        print(source)
    opinion = [*options, "-fsyntax-only", *(["-include", given.precompiled] if given.precompiled else [])]
    if not run:
        code, output = compile_text(opinion, source)
        if code:
            report(page, 1, f"does not compile\n    {first_errors(output)}")
    else:
        with tempfile.TemporaryDirectory() as folder:
            binary = os.path.join(folder, "page")
            as_built = ["-O1", "-DTG_INSTRUCTION_SETS=1"]
            if given.component:
                library, sets = given.component
                as_built = ["-O0", "-DTG_COMPONENT=1", f"-DTG_INSTRUCTION_SETS={sets}"]
            code, output = compile_text([*options, *as_built, "-o", binary], source, [library] if given.component else [])
            if code:
                report(page, 1, f"does not compile\n    {first_errors(output)}")
            else:
                done = subprocess.run([binary], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, text=True,
                                      check=False)
                if done.returncode:
                    report(page, 1, f"the program ends with {done.returncode}: {done.stdout[-300:]}")
                compare(page, blocks, done.stdout, report)
    for block in blocks:
        if "refused" in block.words and compile_text(opinion, program(groups, False, block))[0] == 0:
            report(page, block.line, "compiles, but says that it is refused")
    return len(blocks) + len(excerpts), errors


def check_run(source, binary, page):
    """Compares the output of a program with the page."""
    errors = []

    def report(name, line, message):
        errors.append(f"{name}:{line}: {message}")

    _, excerpts = blocks_of(str(page), page.read_text(encoding="utf-8"), report)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([pathlib.Path(binary).resolve()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              cwd=folder, check=False)
    print(done.stdout)
    if done.returncode:
        report(page, 1, f"{source} ends with {done.returncode}")
    check_excerpts(excerpts, source, done.stdout.splitlines(), True, report)
    return sum(e.printed and e.program == source for e in excerpts), errors


def main():
    arguments, more = sys.argv[1:], []
    if "--" in arguments:
        more = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--show", action="store_true", help="print the programs that pages become")
    parser.add_argument("--front-end", action="store_true", help="compile pages that say what is printed, too, but do not run them")
    parser.add_argument("--precompiled", metavar="HEADER")
    parser.add_argument("--component", nargs=2, metavar=("LIBRARY", "SETS"))
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--ran", nargs=2, metavar=("SOURCE", "PROGRAM"))
    given = parser.parse_args(arguments)
    if given.ran:
        count, errors = check_run(*given.ran, given.pages[0])
        print("\n".join([*errors, f"check_snippets.py: {count} outputs, {len(errors)} errors"]))
        sys.exit(1 if errors or not count else 0)
    pages = given.pages or [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    options = [given.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter",
               "-Wno-pass-failed", *[f"-I{ROOT / folder}" for folder in ("include", "cuda", "tests", "examples")], *more]

    def check(page):
        page = page.resolve()
        name = str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else str(page)
        return check_page(name, page.read_text(encoding="utf-8"), options, given)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # The longest first, so that no thread waits for one at the end.
        longest = sorted(pages, key=lambda page: -page.stat().st_size)
        of_page = dict(zip(longest, pool.map(check, longest)))
    results = [of_page[page] for page in pages]
    errors = [error for _, found in results for error in found]
    print("\n".join([*errors, f"check_snippets.py: {sum(count for count, _ in results)} blocks, {len(errors)} errors"]))
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
