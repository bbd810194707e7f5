#!/usr/bin/env python3
"""Whether chains.py makes the chains it should of small headers, and what compilers then find in them.

usage: chains_test.py COMPILER
"""

import pathlib
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(__file__).resolve().parent / "chains.py"
GUARD = "#pragma once\n"
# last includes middle, which includes first; beside is included by all.hpp alone.
HEADERS = {
    "first.hpp": GUARD + "struct first {};\n",
    "middle.hpp": GUARD + "// what it is about\n#include <first.hpp>\n\nstruct middle { first member; };\n",
    "last.hpp": GUARD + "#include <middle.hpp>\n#include <vector>\n\ninline std::vector<middle> last() { return {}; }\n",
    "beside.hpp": GUARD + "struct beside {};\n",
    "all.hpp": GUARD + "#include <beside.hpp>\n#include <last.hpp>\n",
}
CHAINS = ["all.hpp", "beside.hpp", "first.hpp middle.hpp last.hpp"]
USES_BESIDE = "struct uses { beside member; };\n"


def chains(folder, *more):
    done = subprocess.run([sys.executable, TOOL, folder, *more], capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def compiled(compiler, folder):
    """What the compiler and the linker say of a folder's headers."""
    status, found = chains(folder)
    assert status == 0, found
    objects = []
    for number, chain in enumerate([*found, ""]):
        text = "".join(f"#include <{name}>\n" for name in chain.split() * 2) or "int main() {}\n"
        objects.append(str(folder / f"{number}.o"))
        done = subprocess.run([compiler, "-std=c++20", "-c", f"-I{folder}", "-x", "c++", "-", "-o", objects[-1]], input=text, text=True,
                              capture_output=True, check=False)
        if done.returncode:
            return done.stderr
    return subprocess.run([compiler, *objects, "-o", folder / "program"], capture_output=True, text=True, check=False).stderr


def main():
    compiler, wrong = sys.argv[1], []

    def expect(what, condition, found):
        if not condition:
            wrong.append(f"{what}: {found}")

    def with_headers(**changed):
        folder = pathlib.Path(tempfile.mkdtemp(dir=temporary))
        for name, text in {**HEADERS, **{name + ".hpp": text for name, text in changed.items()}}.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    with tempfile.TemporaryDirectory() as temporary:
        right = with_headers()
        expect("chains", chains(right) == (0, CHAINS), chains(right))
        expect("right headers", compiled(compiler, right) == "", compiled(compiler, right))

        # An include that is missing in the middle of a chain, of a standard header and of one of ours.
        for text in ("inline std::vector<first> some() { return {}; }\n", USES_BESIDE):
            found = compiled(compiler, with_headers(middle=HEADERS["middle.hpp"] + text))
            expect("missing include", "middle.hpp:6" in found and "error" in found, found)
        # One that comes too late, or only on a condition, is none.
        for text in ("#if defined(X)\n#include <first.hpp>\n#endif\n", "struct a;\n#include <first.hpp>\n"):
            found = chains(with_headers(middle=GUARD + text))
            expect("conditional or late include", found[1] == ["all.hpp", "beside.hpp", "first.hpp", "middle.hpp last.hpp"], found)
        # A header without a guard, and a function that is not inline.
        found = compiled(compiler, with_headers(middle=HEADERS["middle.hpp"].removeprefix(GUARD)))
        expect("no guard", "redefinition" in found, found)
        for name in ("first", "last", "beside"):
            found = compiled(compiler, with_headers(**{name: HEADERS[name + ".hpp"] + "int plain() { return 1; }\n"}))
            expect("not inline", "multiple definition" in found or "duplicate symbol" in found, found)
        # Two that include each other.
        found = chains(with_headers(first=GUARD + "#include <last.hpp>\n"))
        expect("circle", found[0] == 1 and "includes itself" in found[1][0], found)

        # Chains that no longer hold.
        stored = right / "chains.txt"
        stored.write_text("\n".join(CHAINS) + "\n", encoding="utf-8")
        expect("stored chains", chains(right, "--check", stored) == (0, ["3 chains"]), chains(right, "--check", stored))
        changed = with_headers(last=GUARD + "inline int last() { return 1; }\n", more=GUARD)
        found = chains(changed, "--check", stored)
        expect("changed headers", found[0] == 1 and found[1][:2] == [
            "more.hpp is in no chain", "last.hpp follows middle.hpp, but does not include it"], found)
    print("\n".join(wrong) or "chains.py does what it should")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
