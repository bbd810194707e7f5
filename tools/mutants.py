"""The changes that tools/mutate.py makes, and the test programs that should notice them."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(ROOT, "include", "tapegraph")


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
    "nn/layers/embedding": [DEFAULTS, (SEQUENCE_DEFAULTS,), (SEQUENCE,), ("nn/sparse_embedding_test",)],
    "nn/layers/gru": [DEFAULTS, (SEQUENCE_DEFAULTS,), ("nn/gru_test",), (SEQUENCE,)],
    "nn/layers/normalization": [DEFAULTS, ("nn/layers_test",), ("nn/stored_test",)],
    "nn/layers/recurrent": [DEFAULTS, (SEQUENCE_DEFAULTS,), ("nn/recurrent_test",), (SEQUENCE,)],
    "nn/layers/recurrent_layer": [("nn/recurrent_test",), (SEQUENCE,), ("nn/gru_test",)],
    "nn/layers/sequence": [(SEQUENCE,)],
    "nn/layers/simple_rnn": [DEFAULTS, (SEQUENCE_DEFAULTS,), ("nn/recurrent_test",), (SEQUENCE,)],
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

# Passes and what they consist of: their conditions are changed. The tests of the header itself come first, then graphs that are
# made at run time, which go through all passes when the program runs.
PASSES = re.compile(r"(ir|graph)/")
for folder in ("ir", "graph", "graph/passes"):
    for file in sorted(os.listdir(os.path.join(INCLUDE, folder))):
        name = f"{folder}/{file[:-len('.hpp')]}"
        if file.endswith(".hpp") and re.search(r"\bif \(", open(os.path.join(INCLUDE, folder, file)).read()):
            own = [(f"{name}_test",)] if os.path.exists(os.path.join(ROOT, "tests", f"{name}_test.cpp")) else []
            scans = [("traced/scan_test",), ("traced/scan_capture_test",)] if "scan" in name else []
            PROGRAMS[name] = own + scans + [("traced/traced_test",)]

# Formulas, not options: every member's default and every operator in them is changed.
FORMULAS = re.compile(r"nn/(losses|metrics)/")
OPERATORS = {" + ": " - ", " - ": " + ", "maximum(": "minimum(", "max(": "min(", " > ": " >= ", " >= ": " > ", " <= ": " < "}


# Their vjps become the text of types, or return nothing for some operands.
VJPS_ALONE = {"ops/elementwise/" + name for name in ("activation", "arithmetic", "cast", "cross_entropy", "exponential",
                                                      "gated_activation", "hyperbolic", "power", "selection", "trigonometric")}
VJPS_ALONE |= {"ops/recurrent/recurrent_gradient", "ops/recurrent/recurrent_second"}

# Changes that are selected at run time. The compiler's own evaluations see the unchanged library.
# What a process evaluates when it runs is marked, and written at its end if TAPEGRAPH_REACHED names a file.
CHOOSER = """#pragma once
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
namespace tapegraph::mutation {
inline std::atomic<bool> reached[COUNT + 1];
struct writer_of_reached {
    ~writer_of_reached() {
        const char* const path = std::getenv("TAPEGRAPH_REACHED");
        std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
        if (file == nullptr) return;
        for (int number = 1; number <= COUNT; ++number)
            if (reached[number].load(std::memory_order_relaxed)) std::fprintf(file, "%d ", number);
        std::fclose(file);
    }
};
inline const writer_of_reached written_at_exit;
inline int chosen() {
    static const int number = [] {
        const char* const text = std::getenv("TAPEGRAPH_MUTANT");
        return text == nullptr ? 0 : std::atoi(text);
    }();
    return number;
}
inline bool is_chosen(int number) {
    reached[number].store(true, std::memory_order_relaxed);
    return chosen() == number;
}
template <class T>
constexpr T other(int number, const T& value, const std::type_identity_t<T>& changed) {
    if (!std::is_constant_evaluated() && is_chosen(number)) return changed;
    return value;
}
constexpr bool decided(int number, bool value) {
    if (!std::is_constant_evaluated() && is_chosen(number)) return !value;
    return value;
}
template <class V>
constexpr auto negated(int number, const V& value) {
    auto handle = eval(value);
    if (!std::is_constant_evaluated() && is_chosen(number)) handle = eval(-handle);
    return handle;
}
} // namespace tapegraph::mutation
"""


class Mutant:
    def __init__(self, header, begin, end, text, kind, source):
        self.header, self.begin, self.end, self.text = header, begin, end, text
        self.was = source[begin:end]
        kind_text, kind = kind, kind.split()[0]
        self.together = kind not in ("deleted", "operator") and not (kind == "negated" and header in VJPS_ALONE) and not text.startswith("{") and not self.was.startswith("{")
        self.negates, self.decides = kind == "negated", kind == "condition"
        line = source.count("\n", 0, begin) + 1
        was = " ".join(source[begin:end].split())
        kind = kind_text
        self.what = f"{kind}: {was}  ->  {' '.join(text.split())}"
        self.label = f"{header}.hpp:{line} {self.what}"

    def applied(self, source):
        return source[:self.begin] + self.text + source[self.end:]

    def choosable(self, number):
        if self.negates:
            return f"tapegraph::mutation::negated({number}, {self.was})"
        if self.decides:
            return f"tapegraph::mutation::decided({number}, static_cast<bool>({self.was}))"
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


def mutants_of(header, include=INCLUDE):
    source = source_of(header, include)
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
    for found in re.finditer(r"(?<!#)\bif \(", source) if PASSES.match(header) else ():
        begin, end = found.end(), closing(source, found.end() - 1)
        if end > begin and not re.search(r";|(?<![=!<>])=(?!=)", source[begin:end]):  # it declares nothing
            add(begin, end, f"!({source[begin:end]})", "condition")
    for use in re.finditer(r"\b(o|options)\.(\w+)\b(?!\()", source):
        named = re.findall(r"\b(\w+_options)&? " + use.group(1) + r"\b", source[:use.start()])
        if named:
            add(use.start(), use.end(), f"{named[-1]}{{}}.{use.group(2)}", "ignored")
    for m in result:  # of two in one place, such as an option in a condition, the wider is compiled alone
        m.together = m.together and not any(m is not n and m.begin <= n.begin and n.end <= m.end for n in result)
    return result


def assertions_as_cases(source):
    """A test file in which what the compiler asserts between functions is a test case, so that a chosen change can be seen there."""
    for found in reversed(list(re.finditer(r"^static_assert\(", source, re.M))):
        end = closing(source, found.end() - 1)
        asserted = source[found.end():end]
        if source[end + 1:end + 2] == ";" and not re.search(r',\s*"[^"]*"\s*$', asserted):  # without a message
            line = source.count("\n", 0, found.start()) + 1
            case = f'TEST_CASE("static_assert of line {line}") {{ CHECK(static_cast<bool>({asserted})); }}'
            source = source[:found.start()] + case + source[end + 2:]
    return source


def source_of(header, include=INCLUDE):
    with open(os.path.join(include, header + ".hpp")) as file:
        return file.read()


def common_mutants(trees, headers):
    """The changes of these headers that can be chosen when a program runs and that all of these checkouts have: for each checkout
    its own, in one order. Lines may differ, and headers that one does not have are left out; of equal changes of a header all or
    none count."""
    found = []
    for tree in trees:
        include, by_text = os.path.join(tree, "include", "tapegraph"), {}
        for header in headers:
            if os.path.exists(os.path.join(include, header + ".hpp")):
                for m in mutants_of(header, include):
                    by_text.setdefault((header, m.what), []).append(m)
        found.append(by_text)
    common = [key for key, ms in found[0].items()
              if all(len(of.get(key, ())) == len(ms) and all(m.together for m in of[key]) for of in found)]
    return [[m for key in common for m in of[key]] for of in found]
