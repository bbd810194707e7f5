#!/usr/bin/env python3
"""Reports registers, spills and shared memory of GPU kernels, from the output of ptxas -v.

  kernel_report.py compile [--device] LOG -- COMMAND...   runs a compiler and keeps the output of ptxas in LOG; with
                                                          --device nvcc compiles the device's half alone
  kernel_report.py report LOG... [--ptx FILE...] [--products REGEX]

The report fails when a kernel spills registers, or when one whose name matches REGEX multiplies
floats without fusing (kernels are compiled without contraction, so a product that does not use fma
runs at half its speed).
"""

import argparse
import pathlib
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")
MULTIPLICATION = re.compile(r"\bmul(?:\.rn)?(?:\.ftz)?\.f(?:32|64)\b")
FUSED = re.compile(r"\bfma\.rn(?:\.ftz)?\.f(?:32|64)\b")


def compile_and_keep(log, command):
    """Runs the command; lines of ptxas go to the log, everything else to stderr."""
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    kept = []
    for line in done.stderr.splitlines(keepends=True):
        # Function properties are on a line of their own, without the prefix.
        about_kernels = line.startswith("ptxas info") or SPILLS.search(line)
        (kept.append if about_kernels else sys.stderr.write)(line)
    pathlib.Path(log).write_text("".join(kept), encoding="utf-8")
    return done.returncode


def kernels_of(log):
    """Returns one (name, architecture, registers, spilled bytes, stack, shared) per kernel of a
    log."""
    found, name, architecture, spilled, stack = [], None, None, 0, 0
    for line in pathlib.Path(log).read_text(encoding="utf-8").splitlines():
        if entry := ENTRY.search(line):
            name, architecture = entry.groups()
            spilled = stack = 0
        elif numbers := SPILLS.search(line):
            stack = int(numbers[1])
            spilled = int(numbers[2]) + int(numbers[3])
        elif (used := USED.search(line)) and name:
            found.append((name, architecture, int(used[1]), spilled, stack, int(used[2] or 0)))
            name = None
    return found


def readable(names):
    """Returns mangled names as C++ without our namespaces; unchanged if there is no c++filt."""
    try:
        text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return dict(zip(names, names))
    short = {}
    for name, line in zip(names, text.splitlines()):
        line = re.sub(r"tapegraph::(?:cuda::)?(?:kernels::)?", "", line.removeprefix("void "))
        depth = 0
        for at, letter in enumerate(line):  # the parameters begin at the first parenthesis outside of <>
            depth += (letter == "<") - (letter == ">")
            if letter == "(" and depth == 0 and at > 0:
                line = line[:at]
                break
        short[name] = line
    return short


def unfused(ptx, pattern, names):
    """Returns kernels of a PTX file that match and have more multiplications than a product may."""
    text = pathlib.Path(ptx).read_text(encoding="utf-8")
    parts = re.split(r"^\.visible \.entry |^\.entry ", text, flags=re.MULTILINE)[1:]
    mangled = [part.split("(", 1)[0].strip() for part in parts]
    names.update(readable(mangled))
    matched, bad = 0, []
    for name, part in zip(mangled, parts):
        if not re.search(pattern, names[name]):
            continue
        matched += 1
        single, fused = len(MULTIPLICATION.findall(part)), len(FUSED.findall(part))
        if 4 * single > fused:
            bad.append(f"{names[name]}: {single} float multiplications stand alone beside {fused} fused ones")
    return matched, bad


def report(arguments):
    rows, names, errors = [], {}, []
    for missing in [file for file in arguments.logs + arguments.ptx if not pathlib.Path(file).is_file()]:
        errors.append(f"{missing} is not there: was it compiled?")
    for log in filter(lambda file: pathlib.Path(file).is_file(), arguments.logs):
        kernels = kernels_of(log)
        if not kernels:
            errors.append(f"{log}: no kernels")
        rows += kernels
    names.update(readable(sorted({row[0] for row in rows})))
    print(f"{'registers':>9} {'spilled':>8} {'stack':>6} {'shared':>7}  {'device':7} kernel")
    for name, architecture, registers, spilled, stack, shared in sorted(rows, key=lambda row: (names[row[0]], row[1])):
        print(f"{registers:9} {spilled:8} {stack:6} {shared:7}  {architecture:7} {names[name]}")
        if spilled:
            errors.append(f"{names[name]} for {architecture} spills {spilled} bytes of registers")
    for ptx in filter(lambda file: pathlib.Path(file).is_file(), arguments.ptx):
        matched, bad = unfused(ptx, arguments.products, names)
        errors += bad
        if not matched:
            errors.append(f"{ptx}: no kernel matches '{arguments.products}'")
    for error in errors:
        print(f"error: {error}")
    print(f"kernel_report.py: {len(rows)} kernels, {len(errors)} errors")
    return 1 if errors else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    mode = modes.add_parser("compile")
    mode.add_argument("--device", action="store_true")
    mode.add_argument("log")
    mode.add_argument("command", nargs=argparse.REMAINDER)
    mode = modes.add_parser("report")
    mode.add_argument("logs", nargs="+")
    mode.add_argument("--ptx", nargs="*", default=[])
    mode.add_argument("--products", default="gemm")
    arguments = parser.parse_args()
    if arguments.mode == "compile":
        command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
        if arguments.device:
            command = ["-fatbin" if word == "-c" else word for word in command]
        sys.exit(compile_and_keep(arguments.log, command))
    sys.exit(report(arguments))


if __name__ == "__main__":
    main()
