#!/usr/bin/env python3
"""Which public names have no comment: tools/site/comments.py [--list] [--check] [FOLDER ...]

Counts classes, concepts, enumerations, functions and methods of namespace tapegraph outside `detail` and the namespaces
of the implementation (INTERNAL in tools/site/api.py); --check demands a comment of each. One comment is enough for
overloads; a class's comment says how objects are made; members that a protocol demands (PROTOCOLS there) and operators that
mean what C++ says are explained once. Needs Doxygen (the program that the environment variable DOXYGEN names, if any).
"""

import argparse
import collections
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import api  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNTED = {"class", "function", "concept", "enumeration"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", help="of include/tapegraph, say nn/layers")
    parser.add_argument("--list", action="store_true", help="each name without a comment")
    parser.add_argument("--check", action="store_true", help="lists them and exits 1 if there are any, 77 without Doxygen")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another tree with include/ and cuda/")
    arguments = parser.parse_args()
    if shutil.which(os.environ.get("DOXYGEN", "doxygen")) is None:
        print("comments: there is no doxygen")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        folder = api.doxygen(arguments.root.resolve(), pathlib.Path(work) / "doxygen")
        found = [each for each in api.names(folder) if each.kind in COUNTED]
    by_folder = collections.defaultdict(list)
    for each in found:
        by_folder[each.folder() or "."].append(each)
    missing = 0
    for name, entries in sorted(by_folder.items()):
        if arguments.folders and not any(name == f or name.startswith(f + "/") for f in arguments.folders):
            continue
        bare = [each for each in entries if not each.documented()]
        missing += len(bare)
        print(f"{name}: {len(entries) - len(bare)} of {len(entries)}")
        if arguments.list or arguments.check:
            for each in bare:
                print(f"  {each.file}:{each.line}: {each.kind} {each.scope}::{each.name}")
    done = sum(each.documented() for each in found)
    print(f"comments: {done} of {len(found)} public names ({100 * done / max(1, len(found)):.1f} %)")
    sys.exit(1 if arguments.check and missing else 0)


if __name__ == "__main__":
    main()
