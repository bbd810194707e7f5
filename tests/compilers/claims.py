#!/usr/bin/env python3
"""Whether the pages claim those compilers that built.json says were built with, no more and no fewer.

    tests/compilers/claims.py [--update] [--absent NAMES] [--record FILE]

`front_ends.py --record` writes built.json; README.md's table has a row for each compiler of it (--update writes them). The oldest
of each kind is the one that core/config.hpp demands and CONTRIBUTING.md names, and docs/installing.md has the options that CMake gives
and the tests take. --absent: the compilers that this machine lacks, to be said.
"""

import argparse
import json
import pathlib
import re
import sys

from front_ends import BUDGETS, RECORD, ROOT

HEAD = "| compiler | has built | of |\n| --- | --- | --- |\n"
BUILT = {
    "everything": "everything here: `tests/run.sh --all`",
    "the suite of CI": "the suite of CI, which it built and ran: `TAPEGRAPH_PRESET=oldest_clang tests/run.sh --ci`",
    "all front ends": "programs of this page and the tutorial, and all tests, by its front end",
    "front ends": "programs of this page and the tutorial, and a test of each folder, by its front end",
    "programs": "programs of this page and the tutorial, by its front end",
}


def rows_of(record):
    return "".join(f"| {one['compiler']} {one['version']} | {BUILT[one['built']]} | {one['where']} |\n" for one in record)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--absent", default="")
    parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    given = parser.parse_args()
    errors = []
    record = json.loads(given.record.read_text(encoding="utf-8"))
    page = ROOT / "README.md"
    text = page.read_text(encoding="utf-8")
    found = re.search(re.escape(HEAD) + r"((?:\|.*\n)*)", text)
    if found is None:
        errors.append("README.md: there is no table of compilers")
    elif given.update:
        page.write_text(text[:found.start(1)] + rows_of(record) + text[found.end(1):], encoding="utf-8")
    elif found[1] != rows_of(record):
        errors.append(f"README.md: of compilers it is to say (tests/compilers/claims.py --update)\n{rows_of(record)}and says\n{found[1]}")

    oldest = {}
    for one in record:
        major = int(one["version"].split(".")[0])
        oldest[one["compiler"]] = min(major, oldest.get(one["compiler"], major))
    for name, pattern in (("include/tapegraph/core/config.hpp", r"needs g\+\+ (\d+) or clang (\d+) at least"),
                          ("README.md", r"g\+\+ (\d+) and newer, clang (\d+) and newer"),
                          ("CONTRIBUTING.md", r"g\+\+ (\d+) \(or clang\+\+ (\d+)\) at least"),
                          ("CONTRIBUTING.md", r"C\+\+20, g\+\+ (\d+) and clang\+\+ (\d+),")):
        claim = re.search(pattern, " ".join((ROOT / name).read_text(encoding="utf-8").split()))
        if claim is None or (int(claim[1]), int(claim[2])) != (oldest.get("g++"), oldest.get("clang")):
            errors.append(f"{name}: the oldest compilers are {claim[0] if claim else 'not named'}, "
                          f"built were g++ {oldest.get('g++')} and clang {oldest.get('clang')}")
    for name in ("docs/installing.md", "CMakeLists.txt"):
        words = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        for kind, options in BUDGETS.items():
            if " ".join(options) not in words and ";".join(options) not in words:
                errors.append(f"{name}: {' '.join(options)} for {kind} is missing")
    if given.absent:
        print(f"claims.py: left out, for this machine lacks them: {given.absent}")
    print("\n".join([*errors, f"claims.py: {len(record)} compilers, {len(errors)} errors"]))
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
