#!/usr/bin/env python3
"""clang++ of the ziglang package of PyPI, with the standard library of this machine's g++.

    pip install ziglang==0.17.1
    tests/compilers/front_ends.py tests/compilers/ziglang_clang.py           # clang 22.1.8

The package holds a newer clang than most distributions' archives. It brings C++ headers of its own (libc++'s, tests/machines takes them);
this names g++'s instead. TAPEGRAPH_ZIGLANG names the package's folder where this Python does not find it. Exits 77 where the package
or g++ is missing.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys


def folders_of_gcc():
    """Where g++ looks for headers, in its order, without its own folder of intrinsics, which are for g++ alone."""
    log = subprocess.run([os.environ.get("GXX", "g++"), "-x", "c++", "-E", "-v", "-"], input="", capture_output=True, text=True, check=True).stderr
    listed = re.search(r"search starts here:\n(.*?)End of search list", log, re.DOTALL)[1]
    folders = [line.strip() for line in listed.splitlines() if line.startswith(" ")]
    return [folder for folder in folders if not re.search(r"/lib/gcc/.*/include(-fixed)?$", folder)]


def folder_of_package():
    named = os.environ.get("TAPEGRAPH_ZIGLANG")
    if named:
        return pathlib.Path(named) if (pathlib.Path(named) / "zig").exists() else None
    found = importlib.util.find_spec("ziglang")
    return pathlib.Path(found.origin).parent if found else None


def main():
    package = folder_of_package()
    if package is None:
        print("ziglang_clang.py: this Python has no package ziglang, and TAPEGRAPH_ZIGLANG does not name its folder", file=sys.stderr)
        return 77
    try:
        folders = folders_of_gcc()
    except (OSError, subprocess.CalledProcessError) as why:
        print(f"ziglang_clang.py: g++'s headers are not found: {why}", file=sys.stderr)
        return 77
    # C++ headers, then clang's intrinsics, then C's, in which order their #include_next want them.
    ours = [folder for folder in folders if "c++" in folder]
    theirs = [folder for folder in folders if "c++" not in folder]
    system = [argument for folder in [*ours, str(package / "lib" / "include"), *theirs] for argument in ("-isystem", folder)]
    command = [str(package / "zig"), "clang", "--driver-mode=g++", "-nostdinc", "-nostdinc++", *system, *sys.argv[1:]]
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
