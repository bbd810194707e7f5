#!/usr/bin/env python3
"""Checks that README.md, CONTRIBUTING.md and docs/ agree with the project. Prints FILE:LINE: MESSAGE; exits 1 on any error.

What pages mention must exist: targets and headings of relative links, files, headers, presets, names in tg::, CMake options
and variables (TAPEGRAPH_..., TG_...). What users may set must be mentioned: CMake options, presets, and variables that
programs and scripts read from the environment. The first program in README.md is examples/first_program.cpp, and the table
of includes in docs/design.md is that of check_includes.py. Prose is wrapped at 100 columns.
"""

import json
import os
import pathlib
import re
import sys

import check_includes

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SKIP = {".git", "build", "results", "single_include", "__pycache__"}
SOURCES = {".hpp", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".txt", ".json", ".in"}
MADE = {"benchmarks/results"}  # folders that programs make

LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INDENTED_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^<!--.*?-->", re.MULTILINE | re.DOTALL)
WIDTH = 100  # of prose
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
NAME = re.compile(r"\b(?:TAPEGRAPH|TG)_[A-Z0-9_]*[A-Z0-9]\b")
QUALIFIED = re.compile(r"\b(?:tg|tapegraph)::((?:\w+::)*\w+)")
PATH = re.compile(r"(?<![\w./<-])((?:\.ci|include|cuda|docs|examples|tests|tools|benchmarks|cmake|single_include)/"
                  r"[\w./*{},<>-]*[\w/*}>])")
HEADER = re.compile(r"(?<![\w./-])((?:\w+/)*\w+\.(?:hpp|cuh))\b")
PRESET = re.compile(r"(?:--preset |TAPEGRAPH_PRESET=)(\w+)")
OPTION = re.compile(r"option\((TAPEGRAPH_\w+)|set\((TAPEGRAPH_\w+)\s[^()]*CACHE STRING", re.MULTILINE)
ENVIRONMENT = re.compile(r"(?:getenv|environment\w*)\(\s*\"(\w+)\"|\$\{(TAPEGRAPH_\w+):-")


def sources():
    """Text of everything that is no page, by path."""
    texts = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in SKIP and not name.startswith("build-"))
        for name in names:
            path = pathlib.Path(folder) / name
            if path.suffix in SOURCES or path.parent.name == ".ci":
                texts[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8", errors="replace")
    return texts


def anchors(text):
    """What GitHub calls a page's headings."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(FENCE.sub("", text))}


def alternatives(path):
    """tests/{core,cpu}/<name>_test.cpp, as patterns."""
    path = re.sub(r"<[^>]*>", "*", path)
    braces = re.search(r"\{([^{}]*)\}", path)
    if not braces:
        return [path]
    return [one for word in braces[1].split(",")
            for one in alternatives(path[:braces.start()] + word + path[braces.end():])]


def check_links(page, text, report):
    # Code, where brackets and parentheses are a language's, becomes blanks.
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    prose = CODE.sub(blank, FENCE.sub(blank, text))
    for match in LINK.finditer(prose):
        if "://" in match[1]:
            continue
        target, _, anchor = match[1].partition("#")
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            report(page, prose, match, f"the link leads nowhere: {match[1]}")
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            report(page, prose, match, f"{file.name} has no heading #{anchor}")


def check_mentions(page, text, known, report):
    for match in PATH.finditer(text):
        for pattern in alternatives(match[1].rstrip("/")):
            # cuda/memory.hpp is short for a file of the library.
            bases = (ROOT, ROOT / "include/tapegraph", ROOT / "cuda/tapegraph", ROOT / "tests")
            if pattern not in MADE and not any(True for base in bases for _ in base.glob(pattern)):
                report(page, text, match, f"there is no {pattern}")
    fences = [(match.start(), match.end()) for match in FENCE.finditer(text)]
    for match in HEADER.finditer(text):
        users_own = "/" not in match[1] and any(start < match.start() < end for start, end in fences)
        if not users_own and match[1].split("/")[0] not in {"cub", "thrust", "single_include"} \
                and not any(("/" + file).endswith("/" + match[1]) for file in known["files"]):
            report(page, text, match, f"there is no header {match[1]}")
    for match in NAME.finditer(text):
        if match[0] not in known["words"]:
            report(page, text, match, f"nothing is named {match[0]}")
    for match in QUALIFIED.finditer(text):
        for name in match[1].split("::"):
            if name not in known["library words"]:
                report(page, text, match, f"the library has no {name} (tg::{match[1]})")
    for match in PRESET.finditer(text):
        if match[1] not in known["presets"]:
            report(page, text, match, f"there is no preset {match[1]}")


def check_width(page, text, report):
    """Prose is wrapped; tables, code and what has no blank to be broken at are as long as they are."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    prose = COMMENT.sub(blank, INDENTED_FENCE.sub(blank, text))
    for match in re.finditer(rf"^(?! {{4}}|\|).{{{WIDTH + 1},}}$", prose, re.MULTILINE):
        words = LINK.sub("link", CODE.sub("code", match[0])).split()
        if match[0].strip() and len(words) > (2 if words[0] in {"-", "1."} else 1):
            report(page, prose, match, f"prose of {len(match[0])} columns, {WIDTH} are enough")


def check_directions(page, text, report):
    """The table of who may include whom."""
    rows = re.search(r"^\| folder \| may include \|\n\|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    if rows is None:
        report(page, text, None, "there is no table of who may include whom")
        return
    drawn = {}
    for row in rows[1].splitlines():
        folders, included = (re.findall(r"`([^`]+)`", cell) for cell in row.strip("|").split("|"))
        included = {name for each in included for name in check_includes.DIRECTIONS  # nn/*: nn and its rooms
                    if name == each or each.endswith("/*") and f"{name}/".startswith(each[:-1])}
        drawn.update(dict.fromkeys(folders, included))
    for folder, included in check_includes.DIRECTIONS.items():
        if folder and drawn.get(folder) != included:
            report(page, text, rows, f"check_includes.py lets {folder} include {', '.join(sorted(included)) or 'nothing'}")


def main():
    errors = []

    def report(page, text, match, message):
        line = text.count("\n", 0, match.start()) + 1 if match else 1
        errors.append(f"{page.relative_to(ROOT)}:{line}: {message}")

    texts = sources()
    word = re.compile(r"[A-Za-z_]\w*")
    presets = json.loads(texts["CMakePresets.json"])["configurePresets"]
    known = {
        "files": list(texts),
        "words": {w for text in texts.values() for w in NAME.findall(text)},
        "library words": {w for path, text in texts.items() if path.startswith(("include/", "cuda/"))
                          for w in word.findall(text)} | {"tapegraph"},
        "presets": {p["name"] for p in presets if not p.get("hidden")},
    }
    pages = {page: page.read_text(encoding="utf-8") for page in PAGES}
    for page, text in pages.items():
        check_links(page, text, report)
        check_mentions(page, text, known, report)
        check_width(page, text, report)
    design = ROOT / "docs/design.md"
    check_directions(design, pages[design], report)

    everything = "\n".join(pages.values())
    contributing = ROOT / "CONTRIBUTING.md"
    wanted = {}
    for path, text in texts.items():
        settings = OPTION.findall(text) if path.endswith(("CMakeLists.txt", ".cmake")) else []
        if not path.endswith("_test.cpp"):
            settings += ENVIRONMENT.findall(text)
        wanted.update({first or second: path for first, second in settings})
    for name, path in sorted(wanted.items()):
        # Several in one row of a table: `TAPEGRAPH_BUILD_TESTS`, `_EXAMPLES`.
        endings = [name[at:] for at in range(len("TAPEGRAPH"), len(name)) if name[at] == "_"]
        if name not in everything and not any(f"`{ending}`" in everything for ending in endings):
            report(contributing, "", None, f"no page mentions {name} ({path})")
    for name in sorted(known["presets"]):
        if f"`{name}`" not in pages[contributing]:
            report(contributing, "", None, f"the table of presets lacks {name}")
    first = re.search(r"```cpp\n(.*?)```", pages[ROOT / "README.md"], re.DOTALL)
    if first is None or first[1] != texts["examples/first_program.cpp"]:
        report(ROOT / "README.md", "", None, "the first program is not examples/first_program.cpp")

    print("\n".join([*errors, f"check_documents.py: {len(errors)} errors"]))
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
