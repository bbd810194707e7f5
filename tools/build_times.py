#!/usr/bin/env python3
"""Prints the seconds per target of a build by Ninja, from Ninja's log: the time that each output
took when it was last made.

usage: build_times.py BUILD_FOLDER [--most 25]

Seconds are wall-clock time of all jobs of a target added up, so that two jobs at a time count
twice; load by other programs and hits of the compiler cache are included.
"""

import argparse
import collections
import pathlib
import re
import sys

OBJECT = re.compile(r"(?:^|/)CMakeFiles/([^/]+)\.dir/(.+)\.o$")
PRECOMPILED = re.compile(r"(?:^|/)CMakeFiles/([^/]+)\.dir/(?:.*/)?(cmake_pch\.[^/]+)\.(?:gch|pch)$")


def read_log(path):
    """Returns {output: (seconds, command)}; the last line about an output counts."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].startswith("# ninja log v"):
        sys.exit(f"{path}: not a log of Ninja")
    made = {}
    for number, line in enumerate(lines[1:], 2):
        fields = line.split("\t")
        if len(fields) != 5:
            sys.exit(f"{path}:{number}: {len(fields)} fields where 5 are expected")
        begin, end, _, output, command = fields
        made[output] = ((int(end) - int(begin)) / 1000, command)
    return made


def by_target(made):
    """Returns {target: [(seconds, file)]}; targets that are not compiled go by the name of their
    output."""
    targets = collections.defaultdict(list)
    seen = set()
    for output, (seconds, command) in made.items():
        if (command, seconds) in seen:
            continue  # another output of the same command
        seen.add((command, seconds))
        match = OBJECT.search(output) or PRECOMPILED.search(output)
        if match:
            targets[match[1]].append((seconds, match[2]))
    for output, (seconds, _) in made.items():
        name = re.sub(r"^lib|\.(a|so)$", "", output.rsplit("/", 1)[-1])
        if name in targets and not OBJECT.search(output):
            targets[name].append((seconds, "(linked)"))
    return targets


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=25, help="targets that have a line of their own")
    arguments = parser.parse_args()
    log = arguments.folder / ".ninja_log"
    if not log.is_file():
        print(f"{log}: there is none; seconds per target are known for builds by Ninja")
        return
    rows = sorted(((sum(s for s, _ in files), target, files) for target, files in by_target(read_log(log)).items()), reverse=True)
    if not rows:
        print(f"{log}: nothing was compiled")
        return
    print(f"{'seconds':>8}  {'files':>5}  target, and its slowest file")
    for total, target, files in rows[:arguments.most]:
        slowest, file = max(files)
        print(f"{total:8.1f}  {len(files):5}  {target}: {file} {slowest:.1f}")
    rest = rows[arguments.most:]
    if rest:
        print(f"{sum(row[0] for row in rest):8.1f}  {sum(len(row[2]) for row in rest):5}  {len(rest)} others")
    print(f"{sum(row[0] for row in rows):8.1f}  {sum(len(row[2]) for row in rows):5}  all")


if __name__ == "__main__":
    main()
