#!/usr/bin/env python3
"""Compares the cost of compiling the programs of benchmarks/compile_time with
tools/compile_budget.json, and fails where it has grown by more than a tenth. For intended growth
run it with --update and commit the file, with the reason.

usage: compile_budget.py [--compiler g++] [--update] [--only PROGRAM | --short]

Seconds are printed, but not compared, because they differ by more than that between machines and
over time. Compared are figures that hardly depend on either: functions and bytes of code at -O0,
where nothing is optimized away again, and the memory that g++ takes when it never collects garbage
(its own report, -ftime-report, would double the time). These belong to a major version of g++; with
another one the tool says so and exits with 77. --short leaves out the dear programs that define
what the component has: others of the same sources link it.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGET = ROOT / "tools/compile_budget.json"
LINKED = "_linked"  # compiled like programs that link the compiled component
SHORT = ("tensor", "umbrella", "eager_script" + LINKED, "cnn_graph" + LINKED)
PROGRAMS = ("tensor", "umbrella", "perceptron", "eager_script", "cnn_graph", "eager_script" + LINKED, "cnn_graph" + LINKED)
MEASURES = {"functions": "functions", "code": "KB of code", "memory": "MB of memory"}
# A tenth, and what an empty program may gain unreported.
TOLERANCE = 1.1
SLACK = {"functions": 20, "code": 5, "memory": 0}
NO_GARBAGE = ("--param", "ggc-min-heapsize=8388608")  # below so many KB
NO_BUDGET = 77  # tells ctest that the test was skipped


def measure(compiler, program, folder):
    """Returns the cost of a program, and processor seconds."""
    target = pathlib.Path(folder) / f"{program}.o"
    command = [compiler, "-std=c++20", "-O0", "-c", "-DTG_INSTRUCTION_SETS=1", *NO_GARBAGE, f"-I{ROOT / 'include'}",
               str(ROOT / f"benchmarks/compile_time/{program.removesuffix(LINKED)}.cpp"), "-o", str(target)]
    if program.endswith(LINKED):
        command.append("-DTG_COMPONENT=1")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"})
    report = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}\n{report[:2000]}")
    symbols = subprocess.run(["nm", "--defined-only", str(target)], capture_output=True, text=True, check=True).stdout
    sections = subprocess.run(["size", "-A", str(target)], capture_output=True, text=True, check=True).stdout
    code = sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", sections, re.MULTILINE))
    cost = {"functions": len(re.findall(r" [tTwW] ", symbols)), "code": round(code / 1000),
            "memory": round(usage.ru_maxrss / 1000)}
    return cost, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--update", action="store_true", help="writes what was measured")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--only", choices=PROGRAMS, help="one of the programs")
    chosen.add_argument("--short", action="store_true", help="the cheap ones")
    parser.add_argument("--budget", type=pathlib.Path, default=BUDGET)
    arguments = parser.parse_args()

    version = subprocess.run([arguments.compiler, "--version"], capture_output=True, text=True, check=True).stdout
    major = subprocess.run([arguments.compiler, "-dumpversion"], capture_output=True, text=True, check=True).stdout.strip().split(".")[0]
    budget = json.loads(arguments.budget.read_text(encoding="utf-8")) if arguments.budget.is_file() else {}
    name = f"g++ {major}"
    if "clang" in version or not (arguments.update or name in budget):
        print(f"there is no budget for {version.splitlines()[0]}")
        sys.exit(NO_BUDGET)

    programs = (arguments.only,) if arguments.only else SHORT if arguments.short else PROGRAMS
    with tempfile.TemporaryDirectory(prefix="compile_budget_") as folder:
        with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            results = dict(zip(programs, pool.map(lambda program: measure(arguments.compiler, program, folder), programs)))
    if arguments.update:
        budget.setdefault(name, {}).update({program: cost for program, (cost, _) in results.items()})
        arguments.budget.write_text(json.dumps(budget, indent=2) + "\n", encoding="utf-8")
        print(f"{arguments.budget} is written")

    exceeded = []
    for program, (cost, seconds) in results.items():
        allowed = budget[name].get(program)
        if allowed is None:
            exceeded.append(f"{program}: {arguments.budget.name} has no line for it")
            continue
        words = []
        for which, unit in MEASURES.items():
            words.append(f"{cost[which]} {unit} ({cost[which] - allowed[which]:+})")
            if cost[which] > TOLERANCE * allowed[which] + SLACK[which]:
                exceeded.append(f"{program}: {cost[which]} {unit}, the budget is {allowed[which]}")
        print(f"{program}: {seconds:.1f} s; {', '.join(words)}")
    for line in exceeded:
        print(line)
    if exceeded:
        print("If that is meant, run tools/compile_budget.py --update and say why in the commit.")
    sys.exit(1 if exceeded else 0)


if __name__ == "__main__":
    main()
