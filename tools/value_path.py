#!/usr/bin/env python3
"""Lists the headers of the library that relu(x * w + b) passes through, in eager and in graph mode: those that define a
function which is entered.

    tools/value_path.py [--compiler g++] [--list]

The program below is compiled without optimization and with -finstrument-functions, so that each function reports its
address, and addr2line says in which file it is. What the compiler evaluates in a program (the region of a formula, the
stages of a graph) is called at run time here, since these are the same functions. Headers that have types alone are not
counted. --list prints the files.
"""

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"

PROGRAM = r"""
#include <tapegraph/tapegraph.hpp>

#include <cstdio>
#include <set>

namespace {
bool watching = false;
std::set<void*>* entered = nullptr; // never destroyed: destructors of other objects report, too
} // namespace

extern "C" {
[[gnu::no_instrument_function]] void __cyg_profile_func_enter(void* function, void*) {
    if (!watching) return;
    watching = false;
    entered->insert(function);
    watching = true;
}
[[gnu::no_instrument_function]] void __cyg_profile_func_exit(void*, void*) {}
}

namespace {
template <class F>
[[gnu::no_instrument_function]] void section(const char* name, const F& f) {
    static std::set<void*> functions;
    functions.clear();
    entered = &functions;
    watching = true;
    f();
    watching = false;
    for (void* each : functions) std::printf("%s\t%p\n", name, each);
}

namespace tg = tapegraph;
struct formula {
    constexpr auto operator()(const auto& x, const auto& w, const auto& b) const { return relu(x * w + b); }
};
using tensor = tg::tensor<float>;
using spec = tg::spec<float, 2>;

/// The stages of tg::graph's compiler (graph/compile.hpp).
template <class Builder>
void run_stages() {
    namespace ir = tg::ir;
    ir::model_trace t;
    ir::schedule s;
    Builder::build(t);
    ir::simplify(t);
    ir::fold_numbers(t);
    ir::eliminate_common_subexpressions(t);
    ir::eliminate_dead_nodes(t);
    ir::fuse_epilogues(t);
    ir::fuse_messages(t);
    ir::join_pads(t);
    ir::eliminate_dead_nodes(t);
    ir::view_slices(t);
    ir::snapshot_variables(t);
    s = ir::make_schedule(t);
    const auto frozen = std::make_unique<ir::frozen<ir::widest>>(ir::freeze(t, s));
    ir::model_trace again;
    ir::thaw(*frozen, again, s);
}
} // namespace

int main() {
    const tensor x{1, 2}, w{3, -4};
    tensor b{5, 6};
    const auto formula_part = [] {
        using expression = decltype(formula{}(std::declval<tensor>(), std::declval<tensor>(), std::declval<tensor>()));
        tg::detail::make_formula<expression, void>();
    };
    const auto eager = [&] { const tensor h = formula{}(x, w, b); };
    eager(); // what happens once per process
    section("eager, run", eager);
    section("eager, the compiler", formula_part);
    section("eager, gradient", [&] {
        tg::gradient_tape tape;
        tape.watch(b);
        const tensor h = formula{}(x, w, b);
        const tensor slope = tape.gradient(h, b);
    });
    using builder = tg::detail::function_trace<formula, spec, spec, spec>;
    auto compiled = tg::function<tg::graph>(formula{}, spec{}, spec{}, spec{});
    static_cast<void>(compiled(x, w, b));
    section("graph, the compiler", [] { run_stages<builder>(); });
    section("graph, bind", [] { const auto bound = tg::function<tg::graph>(formula{}, spec{}, spec{}, spec{}); });
    section("graph, run", [&] { const tensor h = compiled(x, w, b); });
}
"""

LIMITS = ["-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=10000000"]
MODES = {"eager mode": ["eager, the compiler", "eager, run"],
         "eager mode, and a gradient": ["eager, the compiler", "eager, gradient"],
         "graph mode": ["graph, the compiler", "graph, bind", "graph, run"]}


def entered(compiler):
    """{section: headers}."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "path.cpp"), pathlib.Path(folder, "path")
        source.write_text(PROGRAM, encoding="utf-8")
        subprocess.run([compiler, "-std=c++20", "-O0", "-g1", "-no-pie", "-finstrument-functions", "-DTG_INSTRUCTION_SETS=1",
                        *LIMITS, f"-I{INCLUDE}", str(source), "-o", str(program)], check=True)
        # A stage's constant is six megabytes, on the stack where nothing is optimized.
        most = resource.getrlimit(resource.RLIMIT_STACK)[1]
        ran = subprocess.run([str(program)], check=True, capture_output=True, text=True,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (256 << 20, most)))
        pairs = [line.split("\t") for line in ran.stdout.splitlines()]
        places = subprocess.run(["addr2line", "-e", str(program)], input="\n".join(address for _, address in pairs),
                                check=True, capture_output=True, text=True).stdout.splitlines()
    found = {}
    for (section, _), place in zip(pairs, places):
        path = pathlib.Path(place.rsplit(":", 1)[0])
        if path.is_relative_to(INCLUDE / "tapegraph"):
            found.setdefault(section, set()).add(path.relative_to(INCLUDE / "tapegraph").as_posix())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    found = entered(options.compiler)
    for mode, sections in MODES.items():
        files = set().union(*(found[section] for section in sections))
        parts = "; ".join(f"{section.split(', ')[1]} {len(found[section])}" for section in sections)
        print(f"{mode}: {len(files)} headers ({parts})")
        if options.list:
            for name in sorted(files):
                where = [section.split(", ")[1] for section in sections if name in found[section]]
                print(f"    {name:45} {', '.join(where)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
