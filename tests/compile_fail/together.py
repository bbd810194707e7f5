"""Compiles files with mistakes as one, and deals out to them what g++ prints.

Each file is included in a namespace of its own, after the library's headers that any of them includes. An error, with the lines of context
before it and the notes after it, belongs to the file that its lines name first. What only stands there because files were put
together (the namespace, "In file included from") is taken away, so that the text is what g++ prints for the file alone; where it is
not, because g++ says a thing once for two files, say, the caller compiles that file by itself.
"""

import os
import re
import subprocess
import tempfile

NAMESPACE = "compiled_together_"
CONTEXT = re.compile(r"\S+: (In |At )|\S+:\d+:\d+:   |\s+from |In file included from")
DIAGNOSTIC = re.compile(r"\S+:\d+:\d+: (?:fatal )?(error|warning|note): ")


def groups_of(lines):
    """Each error or warning: its context, itself, and what follows up to the next one's context."""
    groups, context = [], []
    for line in lines:
        if CONTEXT.match(line):
            context.append(line)
            continue
        found = DIAGNOSTIC.match(line)
        if groups and not (found and found[1] != "note"):
            groups[-1] += [*context, line] # a note may have a context of its own
        else:
            groups.append([*context, line])
        context = []
    return groups


def opinions_together(sources, command):
    """What the compiler says about each source that it says something about."""
    names = {os.path.basename(source): source for source in sources}
    includes, parts = [], []
    for index, source in enumerate(sources):
        with open(source, encoding="utf-8") as file:
            includes += [line for line in file.read().splitlines() if line.startswith("#include <")]
        parts.append(f'namespace {NAMESPACE}{index} {{\n#include "{os.path.abspath(source)}"\n}}')
    with tempfile.TemporaryDirectory() as folder:
        together = os.path.join(folder, "together.cpp")
        with open(together, "w", encoding="utf-8") as file:
            file.write("\n".join([*dict.fromkeys(includes), *parts, ""]))
        # A function main of a namespace needs its return.
        output = subprocess.run([*command, "-Wno-return-type", together], text=True, errors="replace", stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False, env=dict(os.environ, LC_ALL="C")).stdout
    output = re.sub(rf"(\(anonymous namespace\)::)?{NAMESPACE}\d+::", "", output)
    lines = [line for line in output.splitlines() if not line.startswith(f"In file included from {together}:")]
    opinions = {}
    for group in groups_of(lines):
        named = [name for line in group for name in re.findall(r"([\w.]+\.cpp):\d+:\d+:", line) if name in names]
        if named:
            opinions[names[named[0]]] = opinions.get(names[named[0]], "") + "\n".join(group) + "\n"
    return opinions
