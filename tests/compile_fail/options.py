#!/usr/bin/env python3
"""Misspells an option in a call of every function that has an overload for that, and looks at what the compiler says: one error for each
call, which names its line and the structure of options.

A function that takes a structure of options has such an overload: no_such_option_in<OPTIONS> NAME(...). Whoever adds a layer without one
is told here, too. Every layer is also called without a scope, and with a name in its place.

usage: options.py INCLUDE_FOLDER -- COMPILER FLAGS...
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TWIN = re.compile(r"^no_such_option_in<(\w+)>\s+(\w+)\(([^()]*?),\s+\.\.\.\)\s*TG_MISTAKE;", re.MULTILINE)
LAYER = re.compile(r"^constexpr auto (\w+)\(const Scope& scope, (?:[^()]|\n)*?\b(\w+_options)&? \w+", re.MULTILINE)
# Aliases, for which the compiler names the template instead.
ALIASES = {f"{name}_layer_options" for name in ("depthwise_conv2d", "depthwise_conv1d", "separable_conv2d", "separable_conv1d",
                                                "conv2d_transpose", "conv1d_transpose")}
# All layers, those without options, too; and functions with which layers are written.
LAYERS = re.compile(r"^constexpr \S+ (\w+)\(const Scope& scope, ", re.MULTILINE)
PRIVATE = re.compile(r"^namespace detail \{.*?^\} // namespace detail", re.MULTILINE | re.DOTALL)
OF_AUTHORS = {"layer"}
SCOPE_MISSING = "a layer takes a scope first: "
OWN_FILE = {"compile"}  # option_of_compile.cpp
# Overloads for masks, and for statistics of all shards, whose options the others refuse, too.
OF_OTHERS = {"masking.hpp", "synchronized_normalization.hpp"}
OWN_LINES = 9  # an error, the way to the overload, and the overload; the way into the model is printed once
ARGUMENTS = {"const Scope&": "s", "any_argument": "x", "const axes&": "{0}", "double": "2.0",
             "std::initializer_list<padding_amount>": "{{0, 1}}"}


def main():
    include, separator, command = pathlib.Path(sys.argv[1]), sys.argv[2:3], sys.argv[3:]
    if separator != ["--"] or not command:
        sys.exit(__doc__)
    calls, headers, without, layers = [], [], [], {}
    for path in sorted((include / "tapegraph").rglob("*.hpp")):
        text = path.read_text(encoding="utf-8")
        found = TWIN.findall(text)
        names = {name for _, name, _ in found}
        for options, name, parameters in found:
            if name in OWN_FILE: continue
            arguments = [ARGUMENTS[p] for p in re.split(r",\s+", parameters)]
            calls.append((options, f"tg::{name}({', '.join([*arguments, '{.no_such_option = 1}'])});"))
        if found:
            headers.append(str(path.relative_to(include)))
        if path.parent.name == "layers" and path.name not in OF_OTHERS:
            scope = text.split("namespace detail {")
            public = scope[0] + "".join(part.split("} // namespace detail", 1)[-1] for part in scope[1:])
            without += [f"{path.name}: {name} with {options}" for name, options in LAYER.findall(public)
                        if name not in names]
        if path.parent.name == "layers" and "namespace tapegraph::detail {" not in text:
            layers |= {name: str(path.relative_to(include)) for name in LAYERS.findall(PRIVATE.sub("", text))}
    headers += sorted({header for header in layers.values()} - set(headers))
    for layer in layers:
        if layer in OF_AUTHORS: continue
        calls += [(None, f"tg::{layer}({given});") for given in ("x, {.option = 1}", "\"a\", x, {.option = 1}", "\"a\", x")]
    lines = ["#include <tapegraph/tapegraph.hpp>", *(f"#include <{header}>" for header in headers), "namespace tg = tapegraph;",
             "struct model {", "    auto operator()(auto s, auto x) const {"]
    first = len(lines) + 1
    lines += [call for _, call in calls]
    lines += ["        return x;", "    }", "};",
              "auto m = tg::compile<tg::graph>(model{}, tg::spec<float, tg::dyn, 2>{});"]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "options.cpp")
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        every = ["-ferror-limit=0"] if "clang" in command[0] else []
        output = subprocess.run([*command, *every, str(source)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                check=False, env=dict(os.environ, LC_ALL="C")).stdout
    complaints = [f"no overload for wrong options: {each}" for each in without]
    blocks = {}
    for block in re.split(r"(?=^\S*options\.cpp:\d+:\d+: error: )", output, flags=re.MULTILINE):
        if at := re.match(r"\S*options\.cpp:(\d+):\d+: error: ", block):
            blocks.setdefault(int(at[1]), []).append(block)
    for number, (options, call) in enumerate(calls, first):
        of_call = blocks.get(number, [])
        shown = "basic_" if options in ALIASES else f"{options}>"
        text = f"no_such_option_in<tapegraph::{shown}" if options else SCOPE_MISSING
        if len(of_call) != 1 or text not in of_call[0]:
            complaints.append(f"{call}: {len(of_call)} errors: {''.join(of_call)[:300] or 'accepted'}")
        elif "clang" not in command[0] and len(of_call[0].splitlines()) > OWN_LINES:
            complaints.append(f"{call}: {len(of_call[0].splitlines())} lines")
    print(f"{len(calls)} calls, {len(complaints)} complaints", *complaints, sep="\n")
    sys.exit(1 if complaints or not calls else 0)


if __name__ == "__main__":
    main()
