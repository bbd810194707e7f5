#!/usr/bin/env python3
"""Finds changes of the library that no test notices: makes one at a time, runs the smallest test
programs that cover the file, and prints the changes that survive.

    tools/mutate.py --list                       # the changes it knows, numbered
    tools/mutate.py ops/pooling/pooling ops/movement/padding      # those of some headers, names without .hpp
    tools/mutate.py --quick                      # those that can be selected at run time
    tools/mutate.py --sample 40 --seed 1         # a sample of all
    tools/mutate.py --only 'pooling.hpp:111'     # those whose line in --list matches
    tools/mutate.py --build FOLDER ir/simplify   # builds the programs with all their changes, once
    tools/mutate.py --built FOLDER --sample 300 --seed 1          # and tries a sample in them
    tools/mutate.py --tree FOLDER --sample 300   # writes a sample into another checkout
    tools/mutate.py --tree OLD --tree NEW        # or those that several checkouts have into each
    tools/mutate.py --suite FOLDER/build/default # and tries them with the whole suite built there

The changes, in the headers of the table PROGRAMS (tools/mutants.py):
    negated   a value that a vjp returns
    deleted   an assignment within a vjp, such as of an attribute of an operation that it calls
    default   the default of an option or of an operation's attribute: another number, the other truth value
    ignored   a use of an option, replaced by its default
    operator  in the formulas of losses and metrics: + for -, max for min, > for >=, and the other way round
    condition in passes (ir/, graph/): the opposite, while graphs are made at run time

Most changes can be selected at run time, because eager mode then runs the same functions as the
compiler does for graph mode: all of them are compiled into one program and tried one after another
(TAPEGRAPH_MUTANT). Derivatives of elementwise operations exist only at compile time; these and the
survivors are compiled one by one (not with --quick). Survivors of a header's first program are
tried with the next. Changes that do not compile are counted and left out; one that runs for more
than five minutes counts as noticed. Not every survivor is a gap: check whether users can see the
change. The tree is not modified. Run this by hand; all of it takes an hour or two."""

import argparse
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from mutants import CHOOSER, INCLUDE, PROGRAMS, ROOT, assertions_as_cases, common_mutants, mutants_of, source_of
from mutated_suite import try_suite

FLAGS = ["-std=c++20", "-w", "-DTG_INSTRUCTION_SETS=1", "-fconstexpr-ops-limit=2000000000",
         "-fconstexpr-loop-limit=10000000"]


class Builder:
    def __init__(self, folder):
        self.folder = folder
        self.plain = {}  # objects of the unchanged library

    def compile(self, test, to, overlay=None, optimization="-O0"):
        path = os.path.join(ROOT, "tests", test + ".cpp")
        command = ["g++", *FLAGS, optimization]
        if overlay:
            command.append("-I" + overlay)
        command += ["-I" + os.path.join(ROOT, d) for d in ("include", "tests", "examples", "cuda")]
        done = subprocess.run([*command, "-c", path, "-o", to], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.returncode == 0, done.stderr

    def plain_object(self, test):
        if test not in self.plain:
            self.plain[test] = os.path.join(self.folder, test.replace("/", "_") + ".o")
            ok, errors = self.compile(test, self.plain[test], optimization="-O1")
            if not ok:
                sys.exit(f"{test} does not compile:\n{errors}")
        return self.plain[test]

    def build(self, program, overlay=None, optimization="-O0"):
        """Returns the program's file, or None and the compiler's text if it does not build."""
        first = os.path.join(self.folder, "changed.o")
        ok, errors = self.compile(program[0], first, overlay, optimization)
        if not ok:
            return None, errors
        binary = os.path.join(self.folder, "program")
        # The changed object first: the linker takes its functions. Other operations are left out.
        objects = [first, self.plain_object("main")] + [self.plain_object(t) for t in program[1:]]
        linked = subprocess.run(["g++", "-no-pie", *objects, "-Wl,--unresolved-symbols=ignore-all", "-o", binary],
                                stderr=subprocess.PIPE, text=True)
        return (binary, "") if linked.returncode == 0 else (None, linked.stderr)

    @staticmethod
    def passes(program, binary, mutant=0):
        command = [binary, "--abort-after=1"]
        if program[0].startswith("operations/"):
            command.append("-tc=" + TABLE_CASES[program[0][len("operations/"):]])
        try:
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                                 env={**os.environ, "OMP_NUM_THREADS": "1", "TAPEGRAPH_MUTANT": str(mutant)})
        except subprocess.TimeoutExpired:
            return False
        return run.returncode == 0


def write_overlay(folder, texts):
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in texts.items():
        path = os.path.join(folder, "tapegraph", name + ".hpp")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)


def write_choosable(overlay, mutants, include=INCLUDE):
    """Headers in which each change is chosen by its number, counted from 1; returns the programs with the stage of each."""
    left = {number: m for number, m in enumerate(mutants, 1)}
    texts = {"mutation": CHOOSER.replace("COUNT", str(len(mutants)))}
    for header in {m.header for m in mutants}:
        text = source_of(header, include)
        mine = sorted(((number, m) for number, m in left.items() if m.header == header), key=lambda each: -each[1].begin)
        for number, m in mine:
            text = text[:m.begin] + m.choosable(number) + text[m.end:]
        texts[header] = text.replace("#pragma once\n", "#pragma once\n#include <tapegraph/mutation.hpp>\n", 1)
    write_overlay(overlay, texts)
    programs = []
    for stage in range(max(len(p) for p in PROGRAMS.values())):
        for m in mutants:
            if stage < len(PROGRAMS[m.header]) and (stage, PROGRAMS[m.header][stage]) not in programs:
                programs.append((stage, PROGRAMS[m.header][stage]))
    return programs


def checked_by(program, stage, numbered):
    return [n for n, m in numbered.items() if len(PROGRAMS[m.header]) > stage and PROGRAMS[m.header][stage] == program]


def try_together(builder, overlay, mutants, report):
    """Compiles all into their programs and reports those that are noticed; returns the others."""
    left = {number: m for number, m in enumerate(mutants, 1)}
    for stage, program in write_choosable(overlay, mutants):
        mine = checked_by(program, stage, left)
        if not mine:
            continue
        binary, errors = builder.build(program, overlay, "-O1")
        if not binary or not builder.passes(program, binary):
            print(f"{program[0]} {'fails unchanged' if binary else 'cannot be compiled with all changes'}: left out\n"
                  + "\n".join(line for line in errors.split("\n") if "error" in line)[:2000], flush=True)
            continue
        for number in mine:
            if not builder.passes(program, binary, number):
                report("noticed", left.pop(number))
    return list(left.values())


def build_all(builder, overlay, mutants, folder):
    """Builds the programs with all changes that can be chosen, and keeps them with a list of what they hold."""
    os.makedirs(folder, exist_ok=True)
    numbered, programs = dict(enumerate(mutants, 1)), []
    for stage, program in write_choosable(overlay, mutants):
        binary, errors = builder.build(program, overlay, "-O1")
        if binary and builder.passes(program, binary):
            file = os.path.join(folder, str(len(programs)))
            shutil.copy(binary, file)
            programs.append({"program": program, "file": file, "changes": checked_by(program, stage, numbered)})
        print(f"{program[0]}: {'built' if binary else errors[:2000]}", flush=True)
        with open(os.path.join(folder, "built.json"), "w") as out:  # after each, so that what is built can be used
            json.dump({"changes": [m.label for m in mutants], "programs": programs}, out)


def try_built(folder, options):
    """Tries a sample of the changes in programs that --build has kept; nothing is compiled."""
    with open(os.path.join(folder, "built.json")) as file:
        kept = json.load(file)
    checked = {n for each in kept["programs"] for n in each["changes"]}
    known = [(n, label) for n, label in enumerate(kept["changes"], 1) if re.search(options.only, label) and n in checked]
    chosen = sampled(known, options)
    count = {"noticed": 0, "survived": 0}
    for number, label in chosen:
        noticed = any(number in each["changes"] and not Builder.passes(each["program"], each["file"], number)
                      for each in kept["programs"])
        verdict = "noticed" if noticed else "survived"
        count[verdict] += 1
        print(f"{sum(count.values())}/{len(chosen)} {verdict}: {label}", flush=True)
    print(f"\n{count['noticed']} noticed, {count['survived']} survived, of {len(known)} that can be tried")
    return 0


def write_trees(trees, options):
    """Puts the changes that all these checkouts have, or a sample, into the headers of each, and a list of them beside it; what
    their tests assert when they are compiled becomes test cases."""
    of_each = common_mutants(trees, options.headers or PROGRAMS)
    numbers = [n for n, m in enumerate(of_each[0]) if re.search(options.only, m.label)]
    numbers = sorted(sampled(numbers, options))
    for tree, mutants in zip(trees, of_each):
        mutants = [mutants[n] for n in numbers]
        with tempfile.TemporaryDirectory(prefix="mutate") as folder:
            write_choosable(folder, mutants, os.path.join(tree, "include", "tapegraph"))
            shutil.copytree(os.path.join(folder, "tapegraph"), os.path.join(tree, "include", "tapegraph"), dirs_exist_ok=True)
        for test in glob.glob(os.path.join(tree, "tests", "**", "*_test.cpp"), recursive=True):
            with open(test, "r+") as file:
                source = file.read()
                file.seek(0)
                file.write(assertions_as_cases(source))
                file.truncate()
        with open(os.path.join(tree, "changes.json"), "w") as out:
            json.dump([m.label for m in mutants], out)
        print(f"{len(mutants)} changes of {len(of_each[0])}; build the suite in {tree}")
    return 0


def sampled(all_of_them, options):
    if not options.sample:
        return all_of_them
    return random.Random(options.seed).sample(all_of_them, min(options.sample, len(all_of_them)))


def try_alone(builder, overlay, m, sound):
    write_overlay(overlay, {m.header: m.applied(source_of(m.header))})
    for program in PROGRAMS[m.header]:
        if program not in sound:
            binary, _ = builder.build(program)
            sound[program] = binary is not None and builder.passes(program, binary)
            if not sound[program]:
                print(f"{program[0]} does not pass as it is and is left out", flush=True)
        if sound[program]:
            binary, _ = builder.build(program, overlay)
            if binary is None:
                return "not built"
            if not builder.passes(program, binary):
                return "noticed"
    return "survived"


# The test case of table_test.cpp that runs a file of operations.
TABLE_CASES = {}
for rows_file in re.finditer(r'X\((\w+), "([^"]+)", (?:true|false)\)',
                             open(os.path.join(ROOT, "tests", "operations", "operation.hpp")).read()):
    TABLE_CASES[rows_file.group(1)] = "table: " + rows_file.group(2).replace(",", "?")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headers", nargs="*", help="as ops/pooling; by default all of PROGRAMS")
    parser.add_argument("--list", action="store_true", help="print the changes and make none")
    parser.add_argument("--only", default="", help="a regular expression that a change's line must match")
    parser.add_argument("--sample", type=int, default=0, help="so many of them, drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="only what can be chosen at run time, and only so")
    parser.add_argument("--build", metavar="FOLDER", help="build the test programs with all changes that can be chosen, and keep them")
    parser.add_argument("--built", metavar="FOLDER", help="try a sample in the programs that --build has kept")
    parser.add_argument("--tree", metavar="FOLDER", action="append", help="write all changes that can be chosen into this checkout; "
                        "of several checkouts, those that all have, numbered alike")
    parser.add_argument("--suite", metavar="BUILD", help="try a sample with the test programs of a suite built in such a checkout")
    options = parser.parse_args()
    if options.suite:
        return try_suite(options.suite, options, sampled)
    if options.built:
        return try_built(options.built, options)
    for header in options.headers:
        if header not in PROGRAMS:
            sys.exit(f"no test programs are known of '{header}': add a line to PROGRAMS")
    if options.tree:
        return write_trees(options.tree, options)
    mutants = [m for h in options.headers or PROGRAMS for m in mutants_of(h)]
    mutants = [m for m in mutants if re.search(options.only, m.label)]
    if not options.build:
        mutants = sampled(mutants, options)
    if options.list:
        for number, m in enumerate(mutants, 1):
            print(f"{number:4} {m.label}")
        return 0

    counts, survivors = {"noticed": 0, "not built": 0, "survived": 0}, []

    def report(verdict, m):
        counts[verdict] += 1
        if verdict == "survived":
            survivors.append(m)
        print(f"{sum(counts.values())}/{len(mutants)} {verdict}: {m.label}", flush=True)

    with tempfile.TemporaryDirectory(prefix="mutate") as folder:
        builder, overlay = Builder(folder), os.path.join(folder, "overlay")
        alone = [m for m in mutants if not m.together]
        together = [m for m in mutants if m.together]
        if options.build:
            build_all(builder, overlay, together, options.build)
            return 0
        if together:
            left = try_together(builder, overlay, together, report)
            if options.quick:
                for m in left:
                    report("survived", m)
            else:
                alone += left
        sound = {}  # programs that pass unchanged
        for m in [] if options.quick else alone:
            report(try_alone(builder, overlay, m, sound), m)
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    for m in survivors:
        print("  " + m.label)
    return 0


if __name__ == "__main__":
    sys.exit(main())
