#!/usr/bin/env python3
"""Checks that no program of docs/from_*.md is longer than the one that it is compared with.

    tools/check_lengths.py [--update]        --update writes the tables of lengths

A program consists of the code below one heading: theirs in ```python, ours in the ```cpp blocks
that readers see. Counted are lines of at most 110 columns that are not blank, no comment and no
import or #include. Exits 1 if ours is longer, if a line is longer, or if the table at the top of a
page is out of date.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("from_*.md"))
WIDTH = 110
HEADING = re.compile(r"^##+ (.*)$")
FENCE = re.compile(r"^```(\w*)")
LEFT_OUT = {"python": re.compile(r"\s*(#|import |from \S+ import |$)"), "cpp": re.compile(r"\s*(//|#include\b|$)")}
TABLE = re.compile(r"(?<=<!-- lengths -->\n).*?(?=<!-- end of lengths -->)", re.DOTALL)


def sections(page, text, report):
    """Returns title, lines of theirs and lines of ours for every section that has both."""
    found, language = [], None
    for number, line in enumerate(text.splitlines(), 1):
        fence, heading = FENCE.match(line), HEADING.match(line)
        if fence:
            language = fence[1] if language is None else None
        elif heading and language is None:
            found.append([heading[1], 0, 0])
        elif language in LEFT_OUT and found and not LEFT_OUT[language].match(line):
            found[-1][1 if language == "python" else 2] += 1
            if len(line) > WIDTH:
                report(page, number, f"{len(line)} columns, lines are counted that have at most {WIDTH}")
    return [section for section in found if section[1] and section[2]]


def table(found):
    anchor = lambda title: re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return "\n".join(["| program | lines of theirs | lines of ours |", "| --- | --- | --- |",
                      *[f"| [{title}](#{anchor(title)}) | {theirs} | {ours} |" for title, theirs, ours in found]]) + "\n"


def main():
    errors = []

    def report(page, line, message):
        errors.append(f"{page.relative_to(ROOT)}:{line}: {message}")

    count = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found = sections(page, text, report)
        count += len(found)
        for title, theirs, ours in found:
            if ours > theirs:
                report(page, 1, f"'{title}': ours has {ours} lines, theirs {theirs}")
        if not found or not TABLE.search(text):
            report(page, 1, "there are no programs, or no table between <!-- lengths --> and <!-- end of lengths -->")
        elif sys.argv[1:] == ["--update"]:
            page.write_text(TABLE.sub(lambda _: table(found), text), encoding="utf-8")
        elif TABLE.search(text)[0] != table(found):
            report(page, 1, "the table of lengths is not that of the programs: tools/check_lengths.py --update")
    print("\n".join([*errors, f"check_lengths.py: {count} programs, {len(errors)} errors"]))
    sys.exit(1 if errors or not count else 0)


if __name__ == "__main__":
    main()
