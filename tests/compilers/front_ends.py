#!/usr/bin/env python3
"""What a compiler's front end says of the library: the programs and blocks of README.md and the tutorial, and a test of each folder of
tests/.

    tests/compilers/front_ends.py [--programs | --all | --only REGEX | --file SOURCE] [--share K/N] [--jobs N]
                                  [--include DIRECTORY ...] [--record WHERE] COMPILER [ARGUMENT ...]

Nothing is linked or run, but everything is instantiated and every model evaluated, which is where compilers differ. A warning is an error.
Of a folder the smallest file is taken that brings something to compile (CHOSEN says where another one does), with --all every file. One
that includes a header of others that this machine lacks gives way to the next, and of each is said what was left out. --programs is
without the tests. --share deals all this out to N compilers, of which this is the K-th: README.md's first program to each,
of the rest every N-th. --record writes into built.json that this compiler takes all that was asked, on the system named.
Exits 1 where anything was refused, 77 where there is no such compiler.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "tests"
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
RECORD = pathlib.Path(__file__).resolve().parent / "built.json"
# compile_fail is to be refused, the projects of consume are whole builds, and cute wants nvcc's half of CuTe.
NOT_FOLDERS = {"compile_fail", "compilers", "consume", "cute"}
SMALLEST = 1000  # bytes: what is shorter includes the test of another folder, or does nothing else
CHOSEN = {"cuda": "cuda/widened_test.cpp", "io": "io/include_order_test.cpp", "nccl": "nccl/sums.cpp", "nn": "nn/initializers_test.cpp",
          "ops": "ops/stored_elementwise_test.cpp", "profile": "profile/counters_test.cpp", "session": "session/session_variables_test.cpp",
          "train": "train/history_file_test.cpp"}
SAYS_NOTHING_NEW = {"direct_convolution"} # a model like those of the programs, for another kernel; --all takes it
FOR_EACH = "examples/first_program.cpp" # of --share: what every compiler takes
OPTIONS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# What README.md tells users of large models to give; those of CMakeLists.txt.
BUDGETS = {"clang": ["-fconstexpr-steps=50000000", "-fbracket-depth=1024"],
           "g++": ["-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=10000000"]}
# Newer clangs say that std::stable_sort of libstdc++ 12 calls what that library itself calls deprecated, and from 22 on that doctest's
# __COUNTER__ is an extension (the library's headers have none); older ones do not know that warning.
NOT_OURS = ["-Wno-deprecated-declarations", "-Wno-unknown-warning-option", "-Wno-c2y-extensions"]
FOLDERS = ["include", "cuda", "tests", "examples"]
# One instruction set where tests are compiled; README's program has all of them, as users' programs do.
ONE_SET = "-DTG_INSTRUCTION_SETS=4"
# What programs, pages and most tests include is read, and instantiated, once for all of them: two precompiled umbrella headers, one
# with the options of tests. A source that defines a macro of the library's before it includes it reads everything itself.
UMBRELLA_FOLDERS = re.search(r"set\(tapegraph_folders_of_umbrella ([^)]*)\)",
                             (TESTS / "CMakeLists.txt").read_text(encoding="utf-8"))[1].split()
UMBRELLAS = {"tests": "#include <doctest/doctest.h>\n#include <tapegraph/tapegraph.hpp>\n",
             "programs": "#include <tapegraph/tapegraph.hpp>\n"}
OWN_MACRO = re.compile(r"^#define TG_|^#include <(?:cuda|simt)/", re.MULTILINE)
MISSING = re.compile(r"fatal error: '?([^'\s:]+)'?(?: file not found|: No such file)")


class Compiler:
    def __init__(self, command, includes):
        def says(*arguments):
            done = subprocess.run([*command, *arguments], input="", capture_output=True, text=True, check=False)
            return done.returncode == 0, done.stdout

        predefined = says("-x", "c++", "-E", "-dM", "-")[1]
        value = dict(re.findall(r"^#define (\w+) (.*)$", predefined, re.MULTILINE))
        self.name = "clang" if "__clang__" in value else "g++"
        keys = ["__clang_major__", "__clang_minor__", "__clang_patchlevel__"] if self.name == "clang" else [
            "__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"]
        self.version = ".".join(value.get(key, "?") for key in keys)
        self.called = command
        self.budgets = BUDGETS[self.name]
        self.command = [*command, *OPTIONS, *NOT_OURS, *self.budgets, *(f"-I{ROOT / folder}" for folder in FOLDERS),
                        *(argument for folder in includes for argument in ("-isystem", folder))]
        self.umbrellas = {}

    def precompile(self, folder, kind):
        """Makes one of UMBRELLAS; without it, where the compiler refuses it, every source reads the headers."""
        header = pathlib.Path(folder, f"{kind}.hpp")
        header.write_text(UMBRELLAS[kind], encoding="utf-8")
        made = f"{header}.{'pch' if self.name == 'clang' else 'gch'}"
        language = ["-x", "c++-header", *(["-fpch-instantiate-templates"] if self.name == "clang" else [])]
        options = [option for option in self.command if option != "-fsyntax-only"] + ([ONE_SET] if kind == "tests" else [])
        code, output, seconds = ran([*options, *language, str(header), "-o", made])
        if code == 0:
            self.umbrellas[kind] = str(header)
        return f"{seconds:6.1f} s  precompiled umbrella of {kind}" + ("" if code == 0 else f": refused\n{output}"), code == 0


def candidates():
    """The files of each folder of tests/ that has some, the one to be taken first."""
    found = {}
    for folder in sorted(path for path in TESTS.iterdir() if path.is_dir() and path.name not in NOT_FOLDERS):
        files = list(folder.rglob("*_test.cpp")) or list(folder.rglob("*.cpp"))
        files.sort(key=lambda path: (path.stat().st_size < SMALLEST, path.stat().st_size))
        name = CHOSEN.get(folder.name)
        if name:
            files.sort(key=lambda path: path.relative_to(TESTS).as_posix() != name)
        if files:
            found[folder.name] = files
    return found


def ran(command):
    """Exit status, output and seconds of processor time."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output, used.ru_utime + used.ru_stime


def compiled(compiler, source, more=(), kind="programs"):
    """The output of the front end, None where it has nothing to say; its seconds."""
    before = 0
    if kind in compiler.umbrellas:
        code, _, before = ran([*compiler.command, *more, "-include", compiler.umbrellas[kind], str(source)])
        if code == 0:
            return None, before
    code, output, seconds = ran([*compiler.command, *more, str(source)]) # which decides
    return None if code == 0 else output or f"ends with {code}\n", before + seconds


def reads_umbrella(source):
    text = source.read_text(encoding="utf-8")
    given = source.relative_to(TESTS).parts[0] in UMBRELLA_FOLDERS or "#include <tapegraph/tapegraph.hpp>" in text
    return given and not OWN_MACRO.search(text)


def missing_header(output):
    """A header of others that the machine lacks."""
    found = MISSING.search(output)
    return found[1] if found and not any((ROOT / folder / found[1]).is_file() for folder in FOLDERS) else None


def first_of(compiler, files):
    """The first file for which nothing is missing: what to print, whether it compiled."""
    lacking = []
    for source in files:
        name = source.relative_to(ROOT).as_posix()
        output, seconds = compiled(compiler, source, [ONE_SET], "tests" if reads_umbrella(source) else "")
        if output is None:
            return f"{seconds:6.1f} s  {name}", True
        missing = missing_header(output)
        if missing is None:
            return f"{seconds:6.1f} s  {name}: refused\n{output}", False
        lacking.append(f"{name} (<{missing}>)")
    return f"  left out  {', '.join(lacking)}: not found", True


def programs():
    """The programs of which the pages show excerpts."""
    named = {name for page in PAGES for name in re.findall(r"^<!-- program (\S+) -->$", page.read_text(encoding="utf-8"), re.MULTILINE)}
    return [ROOT / name for name in sorted(named | {FOR_EACH})]


def program(compiler, source):
    output, seconds = compiled(compiler, source)
    name = source.relative_to(ROOT).as_posix()
    return f"{seconds:6.1f} s  {name}" + ("" if output is None else f": refused\n{output}"), output is None


def blocks(compiler, page):
    """The blocks of a page that are no excerpts."""
    def checked(*more):
        return ran([sys.executable, str(ROOT / "tools" / "check_snippets.py"), "--front-end", "--compiler", compiler.called[0],
                    *more, str(page), "--", *compiler.called[1:], *NOT_OURS, *compiler.budgets])

    code, before = 1, 0
    if "programs" in compiler.umbrellas:
        code, output, before = checked("--precompiled", compiler.umbrellas["programs"])
    seconds = 0
    if code:
        code, output, seconds = checked()
    return f"{before + seconds:6.1f} s  {page.relative_to(ROOT)}: {output.strip()}", code == 0


def record(compiler, what, where):
    """Keeps what a compiler of this version has built; more than it had, never less."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else []
    known = [one for one in known if (one["compiler"], one["version"]) != (compiler.name, compiler.version)]
    known.append({"compiler": compiler.name, "version": compiler.version, "where": where, "built": what})
    known.sort(key=lambda one: (one["compiler"] != "g++", [int(part) for part in one["version"].split(".")]))
    RECORD.write_text("[\n" + ",\n".join("    " + json.dumps(one) for one in known) + "\n]\n", encoding="utf-8")


def share_of(text):
    """K and N of "K/N"."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no K/N with K from 1 to N")
    return int(found[1]), int(found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", action="store_true", help="without the tests")
    parser.add_argument("--all", action="store_true", help="every test, not one of each folder")
    parser.add_argument("--only", metavar="REGEX", help="of all tests these, and no page")
    parser.add_argument("--file", metavar="SOURCE", type=pathlib.Path, help="this file alone")
    parser.add_argument("--share", metavar="K/N", type=share_of, default=(1, 1), help="every N-th, from the K-th on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--include", action="append", default=[], help="a folder of headers of others")
    parser.add_argument("--record", metavar="WHERE", help="the system, as in Debian 12")
    parser.add_argument("compiler", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if not given.compiler or shutil.which(given.compiler[0]) is None:
        print(f"front_ends.py: there is no {' '.join(given.compiler) or 'compiler named'}")
        sys.exit(77)
    compiler = Compiler(given.compiler, given.include)
    print(f"front_ends.py: {compiler.name} {compiler.version}", flush=True)
    folders = candidates()
    tasks = [(program, given.file.resolve())] if given.file else [] if given.only else [(program, source) for source in programs()] + [(blocks, page) for page in PAGES]
    if given.all or given.only:
        # The second of every folder comes before the third of any.
        ranked = sorted((rank, source) for files in folders.values() for rank, source in enumerate(files))
        tasks += [(first_of, [source]) for _, source in ranked
                  if re.search(given.only or "", source.relative_to(ROOT).as_posix())]
    elif not given.programs and not given.file:
        tasks += [(first_of, files) for name, files in folders.items() if name not in SAYS_NOTHING_NEW]
    part, parts = given.share
    everyones = [task for task in tasks if task[1] == ROOT / FOR_EACH]
    tasks = everyones + [task for task in tasks if task not in everyones][part - 1::parts]
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        if len(tasks) > 2:
            for done in pool.map(lambda kind: compiler.precompile(folder, kind), UMBRELLAS):
                print(done[0], flush=True)
                failed += not done[1]
        waiting = [pool.submit(task, compiler, argument) for task, argument in tasks]
        for done in concurrent.futures.as_completed(waiting):
            text, good = done.result()
            failed += not good
            print(text, flush=True)
    if given.record and not failed and not given.only and not given.file and parts == 1:
        record(compiler, "programs" if given.programs else "all front ends" if given.all else "front ends", given.record)
    used = os.times()
    print(f"front_ends.py: {len(waiting)} compilations, {failed} refused, "
          f"{used.children_user + used.children_system:.0f} s of processor time")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
