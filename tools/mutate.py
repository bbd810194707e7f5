#!/usr/bin/env python3
"""Finds changes of the library that no test notices: makes one at a time, runs the smallest test
programs that cover the file, and prints the changes that survive.

    tools/mutate.py --list                       # the changes it knows, numbered
    tools/mutate.py ops/pooling/pooling ops/movement/padding      # those of some headers, names without .hpp
    tools/mutate.py --quick                      # those that can be selected at run time
    tools/mutate.py --sample 40 --seed 1         # a sample of all
    tools/mutate.py --only 'pooling.hpp:111'     # those whose line in --list matches

The changes, in the headers of the table PROGRAMS:
    negated   a value that a vjp returns
    deleted   an assignment within a vjp, such as of an attribute of an operation that it calls
    default   the default of an option or of an operation's attribute: another number, the other truth value
    ignored   a use of an option, replaced by its default
    operator  in the formulas of losses and metrics: + for -, max for min, > for >=, and the other way round

Most changes can be selected at run time, because eager mode then runs the same functions as the
compiler does for graph mode: all of them are compiled into one program and tried one after another
(TAPEGRAPH_MUTANT). Derivatives of elementwise operations exist only at compile time; these and the
survivors are compiled one by one (not with --quick). Survivors of a header's first program are
tried with the next. Changes that do not compile are counted and left out; one that runs for more
than five minutes counts as noticed. Not every survivor is a gap: check whether users can see the
change. The tree is not modified. Run this by hand; all of it takes an hour or two."""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(ROOT, "include", "tapegraph")
FLAGS = ["-std=c++20", "-w", "-DTG_INSTRUCTION_SETS=1", "-fconstexpr-ops-limit=2000000000",
         "-fconstexpr-loop-limit=10000000"]


def table(rows, *more):
    """Returns the programs that check a file of operations by its rows, then more test files."""
    return [(f"operations/{rows}", "ops/table_test", "operations/operation", "operations/formula")] + [(m,) for m in more]


STORED, CORNERS = "ops/stored_test", "ops/corner_test"
WINDOWS = "ops/stored_windows_test"
SEQUENCE = "nn/sequence_layers_test"
SEQUENCE_DEFAULTS = "nn/sequence_defaults_test"
DEFAULTS = ("nn/layer_defaults_test",)
HIGHER = "ops/higher_derivatives_test"
# For each header, the programs that notice most of its changes, cheapest first. A program is a test
# file, and what it is linked with, which is compiled once, from the unchanged library.
PROGRAMS = {
    "ops/elementwise/activation": table("activation", "ops/stored_elementwise_test", CORNERS),
    "ops/elementwise/arithmetic": table("arithmetic", "ops/stored_elementwise_test", CORNERS),
    "ops/elementwise/cast": table("selection", "ops/integer_elementwise_test"),
    "ops/convolution/convolution": table("convolution", HIGHER, WINDOWS),
    "ops/convolution/convolution_transpose": table("transposed", WINDOWS),
    "ops/movement/concat": table("slicing", HIGHER, "ops/movement_corner_test"),
    "ops/elementwise/cross_entropy": table("activation", "ops/seams_test"),
    "ops/elementwise/exponential": table("function") + table("elementwise"),
    "ops/movement/fill": table("padding", HIGHER, "ops/movement_corner_test"),
    "ops/elementwise/gated_activation": table("activation", "ops/stored_elementwise_test"),
    "ops/gather/gather": table("indexing", HIGHER, STORED, "ops/movement_corner_test"),
    "ops/recurrent/gru": table("gru", "ops/stored_gru_test", "nn/gru_test"),
    "ops/elementwise/hyperbolic": table("function") + table("elementwise"),
    "ops/movement/layout": table("movement", HIGHER, "ops/movement_corner_test"),
    "ops/recurrent/lstm": table("recurrent", "ops/stored_recurrent_test", "nn/recurrent_test"),
    "ops/product/matmul": table("contraction", HIGHER, "ops/contraction_corner_test"),
    "ops/reduction/moments": table("reduction", "ops/stored_reductions_test"),
    "ops/reduction/norm": table("reduction", "ops/stored_reductions_test"),
    "ops/ordering/ordering": table("ordering", HIGHER, "ops/stored_reductions_test", CORNERS),
    "ops/movement/padding": table("padding", HIGHER, "ops/movement_corner_test"),
    "ops/pooling/pooling": table("pooling", HIGHER, WINDOWS),
    "ops/elementwise/power": table("function") + table("elementwise"),
    "ops/random/random": [("ops/random_test",)],
    "ops/recurrent/recurrent": table("recurrent", "ops/stored_recurrent_test"),
    "ops/recurrent/recurrent_gradient": table("recurrent") + table("gru"),
    "ops/recurrent/recurrent_second": table("recurrent") + table("gru"),
    "ops/reduction/reduction": table("reduction", HIGHER, "ops/stored_reductions_test", CORNERS),
    "ops/elementwise/selection": table("selection", "ops/stored_elementwise_test", CORNERS),
    "ops/recurrent/simple_rnn": table("gru", "nn/recurrent_test"),
    "ops/movement/slice": table("slicing", HIGHER, "ops/movement_corner_test"),
    "ops/reduction/normalization": table("normalization", HIGHER),
    "ops/reduction/softmax": table("reduction", HIGHER, "ops/stored_reductions_test"),
    "ops/elementwise/trigonometric": table("function") + table("elementwise"),
    "ops/movement/view": table("movement", HIGHER, "ops/movement_corner_test"),
    "nn/layers/attention": [(SEQUENCE_DEFAULTS,), ("nn/attention_test",), ("nn/stored_attention_test",)],
    "nn/layers/convolution": [DEFAULTS, ("nn/layers_test",), ("nn/stored_test",)],
    "nn/layers/dense": [DEFAULTS, ("nn/layers_test",)],
    "nn/layers/dropout": [DEFAULTS, ("nn/layers_test",)],
    "nn/layers/embedding": [(SEQUENCE_DEFAULTS,), (SEQUENCE,), ("nn/sparse_embedding_test",)],
    "nn/layers/gru": [(SEQUENCE_DEFAULTS,), ("nn/gru_test",), (SEQUENCE,)],
    "nn/layers/normalization": [DEFAULTS, ("nn/layers_test",), ("nn/stored_test",)],
    "nn/layers/recurrent": [(SEQUENCE_DEFAULTS,), ("nn/recurrent_test",), (SEQUENCE,)],
    "nn/layers/recurrent_layer": [("nn/recurrent_test",), (SEQUENCE,), ("nn/gru_test",)],
    "nn/layers/sequence": [(SEQUENCE,)],
    "nn/layers/simple_rnn": [(SEQUENCE_DEFAULTS,), ("nn/recurrent_test",), (SEQUENCE,)],
    "nn/optimizers/basic": [("nn/optimizers_test",)],
    "nn/layers/group_normalization": [DEFAULTS, ("nn/stored_layers_test",)],
    "ops/pooling/lp_pooling": table("pooling", "nn/stored_layers_test"),
    "ops/product/einsum": table("einsum", "ops/contraction_corner_test"),
    "ops/product/tensordot": table("einsum", "ops/contraction_corner_test"),
} | {"nn/losses/" + name: [("nn/losses_stored_test",), ("nn/losses_ends_test",), ("nn/losses_model_test",)]
     for name in ("cross_entropy", "focal", "hinge", "overlap", "regression")
} | {"nn/losses/" + name: [("nn/losses_chosen_test",), ("nn/losses_stored_test",)] for name in ("ctc", "triplet")
} | {"nn/metrics/" + name: [("nn/metrics_test",), ("nn/metric_tensors_test",)]
     for name in ("accuracy", "auc", "confusion", "confusion_matrix", "mean")}

# Formulas, not options: every member's default and every operator in them is changed.
FORMULAS = re.compile(r"nn/(losses|metrics)/")
OPERATORS = {" + ": " - ", " - ": " + ", "maximum(": "minimum(", "max(": "min(", " > ": " >= ", " >= ": " > ", " <= ": " < "}


# Their vjps become the text of types, or return nothing for some operands.
VJPS_ALONE = {"ops/elementwise/" + name for name in ("activation", "arithmetic", "cast", "cross_entropy", "exponential",
                                                      "gated_activation", "hyperbolic", "power", "selection", "trigonometric")}
VJPS_ALONE |= {"ops/recurrent/recurrent_gradient", "ops/recurrent/recurrent_second"}

# Changes that are selected at run time. The compiler's own evaluations see the unchanged library.
CHOOSER = """#pragma once
#include <cstdlib>
#include <type_traits>
namespace tapegraph::mutation {
inline int chosen() {
    static const int number = [] {
        const char* const text = std::getenv("TAPEGRAPH_MUTANT");
        return text == nullptr ? 0 : std::atoi(text);
    }();
    return number;
}
template <class T>
constexpr T other(int number, const T& value, const std::type_identity_t<T>& changed) {
    if (!std::is_constant_evaluated() && chosen() == number) return changed;
    return value;
}
template <class V>
constexpr auto negated(int number, const V& value) {
    auto handle = eval(value);
    if (!std::is_constant_evaluated() && chosen() == number) handle = eval(-handle);
    return handle;
}
} // namespace tapegraph::mutation
"""


class Mutant:
    def __init__(self, header, begin, end, text, kind, source):
        self.header, self.begin, self.end, self.text = header, begin, end, text
        self.was = source[begin:end]
        kind_text, kind = kind, kind.split()[0]
        self.together = kind not in ("deleted", "operator") and not (kind == "negated" and header in VJPS_ALONE) and not text.startswith("{")
        self.negates = kind == "negated"
        line = source.count("\n", 0, begin) + 1
        was = " ".join(source[begin:end].split())
        kind = kind_text
        self.label = f"{header}.hpp:{line} {kind}: {was}  ->  {' '.join(text.split())}"

    def applied(self, source):
        return source[:self.begin] + self.text + source[self.end:]

    def choosable(self, number):
        if self.negates:
            return f"tapegraph::mutation::negated({number}, {self.was})"
        return f"tapegraph::mutation::other({number}, {self.was}, {self.text})"


def closing(source, at):
    """The position of the bracket that closes the one at `at`."""
    pairs = {"(": ")", "{": "}"}
    depth, opening = 0, source[at]
    for i in range(at, len(source)):
        depth += (source[i] == opening) - (source[i] == pairs[opening])
        if depth == 0:
            return i
    return -1


def bodies_of_vjps(source):
    for found in re.finditer(r"\bvjp\(", source):
        end = closing(source, found.end() - 1)
        after = re.match(r"\s*\{", source[end + 1:])
        if after:
            begin = end + after.end()
            yield begin, closing(source, begin)


def other_default(text):
    if text in ("true", "false"):
        return "false" if text == "true" else "true"
    if re.fullmatch(r"-?\d+", text):
        return str(int(text) + 1)
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?", text):
        return f"0.5 + 3 * {text}"
    if re.fullmatch(r"\{\d+, \d+\}", text):
        return re.sub(r"\d+", lambda n: str(int(n.group()) + 1), text)
    return None


def mutants_of(header):
    source = open(os.path.join(INCLUDE, header + ".hpp")).read()
    result = []

    def add(begin, end, text, kind):
        result.append(Mutant(header, begin, end, text, kind, source))

    for begin, end in bodies_of_vjps(source):
        for found in re.finditer(r"\breturn ([^;]+);", source[begin:end]):
            value = found.group(1)
            sealed = re.match(r"(eval|invoke\w*|detail|embed|slice|gather|scatter|ir)\b", value)
            add(begin + found.start(1), begin + found.end(1), f"eval(-({value}))" if sealed else f"-({value})", "negated")
        for found in re.finditer(r"(?<=\s)\w+\.\w+ = [^;]+;", source[begin:end]):
            add(begin + found.start(), begin + found.end(), ";", "deleted")
    formulas = FORMULAS.match(header)
    options = r"\w+" if formulas else r"\w*(?:_options|attributes)"
    for struct in re.finditer(rf"\bstruct ({options}) (?:: [^{{]+)?\{{", source):
        begin = struct.end() - 1
        end = closing(source, begin)
        for member in re.finditer(r"^\s*[\w:<>]+ (\w+) = ([^;]+);", source[begin:end], re.M):
            other = other_default(member.group(2))
            if other is not None:
                add(begin + member.start(2), begin + member.end(2), other, f"default of {struct.group(1)}::{member.group(1)}")
    for found in re.finditer(r"(?<!\w)(?:maximum\(|max\()| (?:[-+>]|>=|<=) ", source) if formulas else ():
        begin = source.rfind("\n", 0, found.start()) + 1
        if not re.search(r'//|#include|template <|"|static_assert|if constexpr', source[begin:found.start()]):
            line = source[begin:source.find("\n", begin)].strip()  # an operator alone says little
            add(found.start(), found.end(), OPERATORS[found.group()], f"operator (column {found.start() - begin}: {line})")
    for use in re.finditer(r"\b(o|options)\.(\w+)\b(?!\()", source):
        named = re.findall(r"\b(\w+_options)&? " + use.group(1) + r"\b", source[:use.start()])
        if named:
            add(use.start(), use.end(), f"{named[-1]}{{}}.{use.group(2)}", "ignored")
    return result


class Builder:
    def __init__(self, folder):
        self.folder = folder
        self.plain = {}  # objects of the unchanged library

    def compile(self, test, to, overlay=None, optimization="-O0"):
        path = os.path.join(ROOT, "tests", test + ".cpp")
        command = ["g++", *FLAGS, optimization]
        if overlay:
            command.append("-I" + overlay)
        command += ["-I" + os.path.join(ROOT, d) for d in ("include", "tests", "examples", "cuda")]
        done = subprocess.run([*command, "-c", path, "-o", to], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.returncode == 0, done.stderr

    def plain_object(self, test):
        if test not in self.plain:
            self.plain[test] = os.path.join(self.folder, test.replace("/", "_") + ".o")
            ok, errors = self.compile(test, self.plain[test], optimization="-O1")
            if not ok:
                sys.exit(f"{test} does not compile:\n{errors}")
        return self.plain[test]

    def build(self, program, overlay=None, optimization="-O0"):
        """Returns the program's file, or None and the compiler's text if it does not build."""
        first = os.path.join(self.folder, "changed.o")
        ok, errors = self.compile(program[0], first, overlay, optimization)
        if not ok:
            return None, errors
        binary = os.path.join(self.folder, "program")
        # The changed object first: the linker takes its functions. Other operations are left out.
        objects = [first, self.plain_object("main")] + [self.plain_object(t) for t in program[1:]]
        linked = subprocess.run(["g++", "-no-pie", *objects, "-Wl,--unresolved-symbols=ignore-all", "-o", binary],
                                stderr=subprocess.PIPE, text=True)
        return (binary, "") if linked.returncode == 0 else (None, linked.stderr)

    @staticmethod
    def passes(program, binary, mutant=0):
        command = [binary, "--abort-after=1"]
        if program[0].startswith("operations/"):
            command.append("-tc=" + TABLE_CASES[program[0][len("operations/"):]])
        try:
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                                 env={**os.environ, "OMP_NUM_THREADS": "1", "TAPEGRAPH_MUTANT": str(mutant)})
        except subprocess.TimeoutExpired:
            return False
        return run.returncode == 0


def write_overlay(folder, texts):
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in texts.items():
        path = os.path.join(folder, "tapegraph", name + ".hpp")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)


def source_of(header):
    return open(os.path.join(INCLUDE, header + ".hpp")).read()


def try_together(builder, overlay, mutants, report):
    """Compiles all into their programs and reports those that are noticed; returns the others."""
    left = {number: m for number, m in enumerate(mutants, 1)}
    texts = {"mutation": CHOOSER}
    for header in {m.header for m in mutants}:
        text = source_of(header)
        mine = sorted(((number, m) for number, m in left.items() if m.header == header), key=lambda each: -each[1].begin)
        for number, m in mine:
            text = text[:m.begin] + m.choosable(number) + text[m.end:]
        texts[header] = text.replace("#pragma once\n", "#pragma once\n#include <tapegraph/mutation.hpp>\n", 1)
    write_overlay(overlay, texts)
    programs = []
    for stage in range(max(len(p) for p in PROGRAMS.values())):
        for m in mutants:
            if stage < len(PROGRAMS[m.header]) and (stage, PROGRAMS[m.header][stage]) not in programs:
                programs.append((stage, PROGRAMS[m.header][stage]))
    for stage, program in programs:
        mine = [n for n, m in left.items() if len(PROGRAMS[m.header]) > stage and PROGRAMS[m.header][stage] == program]
        if not mine:
            continue
        binary, errors = builder.build(program, overlay, "-O1")
        if not binary or not builder.passes(program, binary):
            print(f"{program[0]} {'fails unchanged' if binary else 'cannot be compiled with all changes'}: left out\n"
                  + "\n".join(line for line in errors.split("\n") if "error" in line)[:2000], flush=True)
            continue
        for number in mine:
            if not builder.passes(program, binary, number):
                report("noticed", left.pop(number))
    return list(left.values())


def try_alone(builder, overlay, m, sound):
    write_overlay(overlay, {m.header: m.applied(source_of(m.header))})
    for program in PROGRAMS[m.header]:
        if program not in sound:
            binary, _ = builder.build(program)
            sound[program] = binary is not None and builder.passes(program, binary)
            if not sound[program]:
                print(f"{program[0]} does not pass as it is and is left out", flush=True)
        if sound[program]:
            binary, _ = builder.build(program, overlay)
            if binary is None:
                return "not built"
            if not builder.passes(program, binary):
                return "noticed"
    return "survived"


# The test case of table_test.cpp that runs a file of operations.
TABLE_CASES = {}
for rows_file in re.finditer(r'X\((\w+), "([^"]+)", (?:true|false)\)',
                             open(os.path.join(ROOT, "tests", "operations", "operation.hpp")).read()):
    TABLE_CASES[rows_file.group(1)] = "table: " + rows_file.group(2).replace(",", "?")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headers", nargs="*", help="as ops/pooling; by default all of PROGRAMS")
    parser.add_argument("--list", action="store_true", help="print the changes and make none")
    parser.add_argument("--only", default="", help="a regular expression that a change's line must match")
    parser.add_argument("--sample", type=int, default=0, help="so many of them, drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="only what can be chosen at run time, and only so")
    options = parser.parse_args()
    for header in options.headers:
        if header not in PROGRAMS:
            sys.exit(f"no test programs are known of '{header}': add a line to PROGRAMS")
    mutants = [m for h in options.headers or PROGRAMS for m in mutants_of(h)]
    mutants = [m for m in mutants if re.search(options.only, m.label)]
    if options.sample:
        mutants = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    if options.list:
        for number, m in enumerate(mutants, 1):
            print(f"{number:4} {m.label}")
        return 0

    counts, survivors = {"noticed": 0, "not built": 0, "survived": 0}, []

    def report(verdict, m):
        counts[verdict] += 1
        if verdict == "survived":
            survivors.append(m)
        print(f"{sum(counts.values())}/{len(mutants)} {verdict}: {m.label}", flush=True)

    with tempfile.TemporaryDirectory(prefix="mutate") as folder:
        builder, overlay = Builder(folder), os.path.join(folder, "overlay")
        alone = [m for m in mutants if not m.together]
        together = [m for m in mutants if m.together]
        if together:
            left = try_together(builder, overlay, together, report)
            if options.quick:
                for m in left:
                    report("survived", m)
            else:
                alone += left
        sound = {}  # programs that pass unchanged
        for m in [] if options.quick else alone:
            report(try_alone(builder, overlay, m, sound), m)
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    for m in survivors:
        print("  " + m.label)
    return 0


if __name__ == "__main__":
    sys.exit(main())
