#!/usr/bin/env python3
"""Few lists of headers, "chains", such that including a chain's headers one after the other checks what compiling each alone does.

usage: chains.py INCLUDE [HEADER ...]             prints a chain a line: headers in order, separated by spaces
       chains.py INCLUDE --check FILE [HEADER ...] whether the chains in FILE still are some; exits 1 if not

INCLUDE is the folder of the headers, HEADER a name in it, as tapegraph/core/shape.hpp; without any, all of them.

Why a chain proves as much: a header may follow others only if it reaches each of them by includes of its own that stand in front of
its first declaration and outside of any condition. So when the compiler comes to its declarations, it has read exactly the headers
that it would have read if this one were alone, in another order. A name whose include is missing is missing in the chain, too, for
whatever came before is what the header itself includes; and where a header's includes only happen to come in a helpful order, that
is found where the included one has its own place in a chain. Including all of them a second time finds headers without a guard.

What a chain costs is about what its last header costs. Which header precedes which is a matching in the graph of who reaches whom;
the dearest first, each along an augmenting path if there is one, makes the sum of what is left to be paid the least there is.
The dearest of all, which includes the others, is a chain of its own: so each header is in two objects, and a linker that is given
all of them finds functions that are not inline.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


class Headers:
    """Who includes whom in a folder, read once."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.texts = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
                      for path in sorted(self.folder.rglob("*.hpp"))}
        self.reached = {}
        for name in self.texts:
            self.reach(name, ())

    def leading_includes(self, name):
        """Those in front of the first declaration and outside of any #if."""
        depth, comment = 0, False
        for line in self.texts[name].splitlines():
            line = line.strip()
            if comment or line.startswith("/*"):
                comment = "*/" not in line
            elif re.match(r"#\s*if", line):
                depth += 1
            elif re.match(r"#\s*endif", line):
                depth -= 1
            elif found := INCLUDE.match(line):
                if depth == 0 and found[1] in self.texts:
                    yield found[1]
            elif line and not line.startswith(("#", "//")):
                return

    def reach(self, name, above):
        if name in above:
            sys.exit(f"{name} includes itself, by {' and '.join(above[above.index(name) + 1:]) or 'itself'}")
        if name not in self.reached:
            found = set()
            for other in self.leading_includes(name):
                found |= {other} | self.reach(other, (*above, name))
            self.reached[name] = found
        return self.reached[name]

    def cost(self, name):
        """Bytes to be read."""
        return sum(len(self.texts[other]) for other in self.reached[name] | {name})


def chains_of(headers, names):
    names = sorted(names, key=lambda name: (-headers.cost(name), name))
    followers = {name: [] for name in names}
    for name in names[1:]:
        for other in headers.reached[name] & followers.keys():
            followers[other].append(name)
    before, after = {}, {}

    def follow(name, seen):
        """Finds a header to follow this one, others moving on to another where they must."""
        for follower in followers[name]:
            if follower not in seen:
                seen.add(follower)
                if follower not in before or follow(before[follower], seen):
                    before[follower], after[name] = name, follower
                    return True
        return False

    for name in names:
        follow(name, set())
    result = []
    for name in names:
        if name in before:
            continue
        result.append([name])
        while result[-1][-1] in after:
            result[-1].append(after[result[-1][-1]])
    return sorted(result)


def objections(headers, names, chains):
    listed = [name for chain in chains for name in chain]
    for name in sorted(set(names) - set(listed)):
        yield f"{name} is in no chain"
    for name in sorted(set(listed) - set(names)):
        yield f"{name} is in a chain, but no header"
    for chain in chains:
        for first, then in zip(chain, chain[1:]):
            if first not in headers.reached.get(then, ()):
                yield f"{then} follows {first}, but does not include it"


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    headers, checked = Headers(arguments.pop(0)), None
    if arguments[:1] == ["--check"]:
        checked, arguments = arguments[1], arguments[2:]
    names = arguments or list(headers.texts)
    if unknown := sorted(set(names) - headers.texts.keys()):
        sys.exit(f"{headers.folder} has no {unknown[0]}")
    sys.setrecursionlimit(len(names) + 1000)
    if checked is None:
        print("\n".join(" ".join(chain) for chain in chains_of(headers, names)))
        return
    chains = [line.split() for line in pathlib.Path(checked).read_text(encoding="utf-8").splitlines()]
    found = list(objections(headers, names, chains))
    print("\n".join([*found, "Configure once more (cmake): the chains have changed."]) if found else f"{len(chains)} chains")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
