#!/usr/bin/env python3
"""Other machines and standard libraries: cross-compiles, runs where an emulator is here, and compares the bits.

    tests/machines/machines.py [--only REGEX] [--programs NAME ...] [--keep FOLDER]     compile, run, compare with this machine
    tests/machines/machines.py --claims [--update]                     whether docs/platforms.md has these rows; writes them

Each machine of MACHINES takes the programs of PROGRAMS. Where it can run them, it must print what this machine prints: the losses
and the bits of every variable of a CNN, in both modes. Others are compiled only. Programs built with -O2 are compared with this
machine's of -O2, which needs AVX2 for it: products fuse multiplication and addition then, those of -O1 with its -O1.
Exits 1 where something is refused or differs, 77 where of the machines asked for none has its compiler here; what is missing is said.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "platforms.md"
PROGRAMS = ["examples/first_program.cpp", "tests/machines/weights.cpp"]
GCC = ["-std=c++20", "-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=10000000"]
CLANG = ["-std=c++20", "-fconstexpr-steps=50000000", "-fbracket-depth=1024"]
ZIG = [sys.executable, "-m", "ziglang", "c++", "-target"]
HERE = ("x86-64, Linux, glibc", ["g++", *GCC, "-pthread"], [])

# A name, the compiler's call, what runs its programs (None: they are compiled only), and what of Debian or PyPI it needs.
MACHINES = [
    ("AArch64, Linux", ["aarch64-linux-gnu-g++", *GCC, "-O2", "-static"], ["qemu-aarch64"], "g++-aarch64-linux-gnu qemu-user"),
    ("s390x, Linux (big-endian)", ["s390x-linux-gnu-g++", *GCC, "-O2", "-static"], ["qemu-s390x"], "g++-s390x-linux-gnu qemu-user"),
    ("ARMv7, Linux (32 bits)", ["arm-linux-gnueabihf-g++", *GCC, "-O1", "-static", "-mfpu=neon-vfpv4"], ["qemu-arm", "-cpu", "max"],
     "g++-arm-linux-gnueabihf qemu-user"),
    ("x86-64, Windows, MinGW", ["x86_64-w64-mingw32-g++-posix", *GCC, "-O1", "-static"], ["wine64"], "g++-mingw-w64-x86-64-posix wine64"),
    ("x86-64, Linux, clang, libc++", ["clang++-16", *CLANG, "-O2", "-stdlib=libc++", "-pthread"], [], "clang-16 libc++-16-dev libc++abi-16-dev"),
    ("AArch64, macOS, libc++", [*ZIG, "aarch64-macos", *CLANG, "-O1"], None, "ziglang"),
    ("x86-64, macOS, libc++", [*ZIG, "x86_64-macos", *CLANG, "-O1"], None, "ziglang"),
    ("x86-64, Linux, musl, libc++", [*ZIG, "x86_64-linux-musl", *CLANG, "-O1"], None, "ziglang"),
]
HEAD = "| machine | what was done | compiler and runner | needs |\n| --- | --- | --- | --- |\n"


def rows():
    for name, command, runner, needs in MACHINES:
        done = "compiled" if runner is None else "built, run, the same bits"
        called = "`" + " ".join("python3" if word == sys.executable else word for word in command if not word.startswith(("-f", "-std="))) + "`"
        yield f"| {name} | {done} | {called}{', `' + ' '.join(runner) + '`' if runner else ''} | {needs} |\n"


def claims(update):
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(re.escape(HEAD) + r"((?:\|.*\n)*)", text)
    wanted = "".join(rows())
    if found is None:
        sys.exit(f"{PAGE.relative_to(ROOT)}: there is no table of machines")
    if update:
        PAGE.write_text(text[:found.start(1)] + wanted + text[found.end(1):], encoding="utf-8")
    elif found[1] != wanted:
        sys.exit(f"{PAGE.relative_to(ROOT)}: of machines it is to say (tests/machines/machines.py --claims --update)\n{wanted}and says\n{found[1]}")


def level_of(command):
    return next(word for word in command if word.startswith("-O"))


def missing(command, runner):
    """What of a machine's tools is not here."""
    lacking = [word for word in (command[0], *(runner or [])[:1]) if shutil.which(word) is None and not pathlib.Path("/usr/lib/wine", word).exists()]
    if command[:2] == [sys.executable, "-m"] and subprocess.run([*command[:3], "version"], capture_output=True, check=False).returncode != 0:
        lacking.append(command[2])
    return lacking


def printed(source, command, runner, folder):
    """What a program prints, after carriage returns; None if it is compiled only. Raises RuntimeError with the output of what failed."""
    program = folder / ("program.exe" if runner and runner[0].startswith("wine") else "program")
    output = ["-c", "-o", str(folder / "program.o")] if runner is None else ["-o", str(program)]
    done = subprocess.run([*command, f"-I{ROOT / 'include'}", str(source), *output], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"refused\n{done.stderr[:8000]}")
    if runner is None:
        return None
    called = [shutil.which(runner[0]) or f"/usr/lib/wine/{runner[0]}", *runner[1:]] if runner else []
    done = subprocess.run([*called, str(program)], capture_output=True, text=True, check=False, timeout=600,
                          env={**os.environ, "WINEDEBUG": "-all"})
    if done.returncode != 0:
        raise RuntimeError(f"ends with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.replace("\r", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the programs")
    parser.add_argument("--claims", action="store_true")
    parser.add_argument("--update", action="store_true")
    given = parser.parse_args()
    if given.claims:
        return claims(given.update)
    asked = [one for one in MACHINES if re.search(given.only, one[0])]
    if not asked:
        sys.exit(f"machines.py: no machine is named {given.only}")
    here = []
    for name, command, runner, needs in asked:
        lacking = missing(command, runner)
        if lacking:
            print(f"{name}: left out, this machine lacks {', '.join(lacking)} ({needs})", flush=True)
        else:
            here.append((name, command, runner))
    if not here:
        sys.exit(77)
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for program in given.programs:
            source, expected = ROOT / program, {}
            levels = dict.fromkeys(level_of(one[1]) for one in here if one[2] is not None)
            references = [(f"{HERE[0]}, {level}", [*HERE[1], level], HERE[2]) for level in levels]
            for name, command, runner in references + here:
                folder = (given.keep or pathlib.Path(temporary)) / re.sub(r"\W+", "_", name) / source.stem
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    text = printed(source, command, runner, folder)
                except (RuntimeError, subprocess.TimeoutExpired) as why:
                    wrong += 1
                    print(f"{program}, {name}: {why}", flush=True)
                    continue
                level = level_of(command)
                if (name, command, runner) in references:
                    expected[level] = text
                    print(f"{program}, {name}:\n{text}", flush=True)
                elif text is None:
                    print(f"{program}, {name}: compiled", flush=True)
                elif text == expected.get(level):
                    print(f"{program}, {name}: the same {len(text.splitlines())} lines", flush=True)
                else:
                    wrong += 1
                    print(f"{program}, {name}: DIFFERS\n{text}", flush=True)
    print(f"machines.py: {len(here)} machines, {len(given.programs)} programs, {wrong} errors")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
