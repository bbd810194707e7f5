#!/usr/bin/env python3
"""Checks that a header which a page names is all that is needed, beside tapegraph.hpp, for what the page says it has.

    tools/check_named_headers.py [--compiler g++] [--precompiled HEADER] [--component LIBRARY SETS] [--short]
                                 [-- more compiler arguments]

Each header of operations, eager mode and layers (ops/, eager/, model/, nn/, train/, compile/) that README.md or a page of docs/ names needs a call in CALLS, or stands in a
block that check_snippets.py compiles, or is about how things are made (INNER). Every call is a program of its own, with no other
header of the library than the umbrella, that is compiled, linked and run; --short: one program of those of ops/ that the umbrella has not. Headers of
data/, io/ and others have no kernels for element types that another header could have; tests/headers compiles and links them.
HEADER, LIBRARY, SETS: as check_snippets.py takes them. Exits 1 if anything is wrong.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
# Pages, and folders of pages, on how the library is made name files, not what to include.
NOT_FOR_USERS = {"design.md", "design", "testing.md", "testing", "performance.md", "performance", "compile_time.md"}

LAYER = """struct model {
    constexpr auto operator()(auto scope, auto x) const { return %s; }
};
int main() {
    auto m = tg::compile<tg::eager>(model{}, tg::spec<float, %s>{}, tg::mean_squared_error{}, tg::sgd{});
    const auto x = tg::ones<float>({%s});
    m.train_on_batch(x, m.predict(x));
}
"""


def statements(code, name="main"):
    return f"int {name}() {{\n{code}\nreturn 0;\n}}\n"


IMAGE = "tg::dyn, 4, 4, 2", "2, 4, 4, 2"
MATRIX = "const auto x = tg::ones<float>({2, 3, 4}), w = tg::ones<float>({4, %d}), r = tg::ones<float>({2, %d});"
DERIVED = "const auto g = tg::gradient([&](const auto& v) { return sum(%s); })(x); g.values();"
CALLS = {
    "ops/recurrent/lstm.hpp": statements(MATRIX % (8, 8) + DERIVED % "tg::lstm(v, w, r, tg::no_bias)"),
    "ops/recurrent/gru.hpp": statements(MATRIX % (6, 6) + DERIVED % "tg::gru(v, w, r, tg::no_bias)"),
    "ops/recurrent/simple_rnn.hpp": statements(MATRIX % (2, 2) + DERIVED % "tg::simple_rnn(v, w, r, tg::no_bias)"),
    "ops/ordering/searching.hpp": statements(
        "const tg::tensor<float> x{1, 2, 4}; const auto places = tg::searchsorted(x, tg::tensor<float>{3}); places.values();"),
    "ops/ordering/counting.hpp": statements(
        "const tg::tensor<std::int32_t> x{1, 2, 2}; const auto counts = tg::bincount(x, 4); counts.values();"),
    "ops/shards/sum_over_shards.hpp": statements(
        "const tg::tensor<float> x{1, 2}, y = tg::sum_over_shards(x); y.values();"),
    "ops/convolution/convolution.hpp": statements(
        "const auto x = tg::ones<float>({1, 4, 4, 2}), k = tg::ones<float>({3, 3, 2, 1}); tg::conv2d(x, k).values();"),
    "ops/convolution/convolution_transpose.hpp": statements(
        "const auto x = tg::ones<float>({1, 4, 4, 2}), k = tg::ones<float>({3, 3, 1, 2}); tg::conv2d_transpose(x, k).values();"),
    "ops/pooling/pooling.hpp": statements(
        "const auto x = tg::ones<float>({1, 4, 4, 2}); tg::max_pooling2d(x, {.pool_size = 2}).values();"),
    "ops/product/matmul.hpp": statements("const auto x = tg::ones<float>({2, 2}); tg::matmul(x, x).values();"),
    "ops/product/einsum.hpp": statements('const auto x = tg::ones<float>({2, 2}); tg::einsum("ij,jk->ik", x, x).values();'),
    "ops/product/tensordot.hpp": statements("const auto x = tg::ones<float>({2, 2}); tg::tensordot(x, x, 1).values();"),
    "ops/random/random.hpp": LAYER % ("x + tg::random::normal(x, {2, 3})", "2, 3", "2, 3"),
    "eager/random.hpp": statements("tg::random::set_seed(1); tg::random::normal<float>({2}).values();"),
    "eager/tensor.hpp": statements("const tg::tensor<float> x{1, 2}, y = 2 * x; y.values();"),
    "nn/losses/basic.hpp": statements(
        "const tg::tensor<float> x{1, 2}; if (tg::mean_squared_error{}(x, x).item() != 0) return 1;"),
    "nn/losses/regression.hpp": statements(
        "const tg::tensor<float> x{1, 2}; if (tg::huber{}(x, x).item() != 0) return 1;"),
    "nn/losses/ctc.hpp": statements(
        "const auto x = tg::ones<float>({1, 3, 2}); tg::ctc{}(x, tg::tensor<std::int32_t>{{1}}).item();"),
    "nn/metrics/auc.hpp": statements("const double none = tg::auc{}.numbers()[0]; return static_cast<int>(none);"),
    "nn/optimizers/basic.hpp": LAYER % ("tg::dense(scope / \"d\", x, {.units = 1})", "tg::dyn, 2", "3, 2"),
    "nn/optimizers/chain.hpp": statements("tg::chain both{tg::sgd{}}; both.main().learning_rate = 0.5;"),
    "model/variables.hpp": statements("tg::variable_list none; return none.size();"),
    "train/trainable_model.hpp": LAYER % ("tg::dense(scope / \"d\", x, {.units = 1})", "tg::dyn, 2", "3, 2"),
    "compile/traced_instance.hpp": statements(
        'auto net = tg::instance<tg::traced>([](auto scope, auto x) { return tg::dense(scope / "d", x, {.units = 1}); },\n'
        "                                    tg::spec<float, tg::dyn, 2>{}); net(tg::ones<float>({3, 2})).values();"),
    "nn/layers/resizing.hpp": LAYER % ("tg::dense(scope / \"d\", tg::up_sampling2d(x), {.units = 1})", *IMAGE),
    "nn/layers/transposed_convolution.hpp": LAYER % ("tg::conv2d_transpose(scope / \"c\", x, {.filters = 1})", *IMAGE),
    "nn/layers/synchronized_normalization.hpp": LAYER % (
        "tg::batch_normalization(scope / \"n\", x, {}, tg::synchronized)", *IMAGE),
    "nn/layers/augmentation.hpp": LAYER % (
        "tg::dense(scope / \"d\", tg::random_flip(scope / \"f\", x), {.units = 1})", *IMAGE),
    "nn/layers/activity_regularization.hpp": LAYER % (
        "tg::activity_regularization(scope / \"a\", tg::dense(scope / \"d\", x, {.units = 1}), tg::regularizers::l2{1})",
        "tg::dyn, 2", "3, 2"),
}
# Named where a page says how something works, not what to include.
INNER = {"ops/recurrent/cpu.hpp", "ops/recurrent/cpu_cell.hpp", "ops/recurrent/recurrent_gradient.hpp", "ops/operation_list.hpp",
         "ops/kernels.hpp"}


def named_headers(text, known):
    """Headers that a page names: with their folder, or several of one in braces, or in the layers' table."""
    found = set()
    for match in re.finditer(r"[\w/{},]+\.hpp", text):
        braces = re.fullmatch(r"(.*)\{([^}]*)\}(.*)", match[0])
        names = [braces[1] + name + braces[3] for name in braces[2].split(",")] if braces else [match[0]]
        for name in names:
            name = re.sub(r"^(include/)?(tapegraph/)?", "", name)
            if "/" in name and name in known:
                found.add(name)
    for match in re.finditer(r"^\| `[^|]*\| (?:; )?`(\w+)` \|", text, re.MULTILINE):
        if f"nn/layers/{match[1]}.hpp" in known:
            found.add(f"nn/layers/{match[1]}.hpp")
    return found


def in_blocks(text):
    return set(re.findall(r"^#include <tapegraph/([^>]+)>", text, re.MULTILINE))


def reached(name, seen):
    if name not in seen and (INCLUDE / "tapegraph" / name).is_file():
        seen.add(name)
        for other in in_blocks((INCLUDE / "tapegraph" / name).read_text(encoding="utf-8")):
            reached(other, seen)
    return seen


def together(headers):
    """One program of the calls of several headers, which are statements."""
    functions = [CALLS[header].replace("int main()", f"int call_{k}()") for k, header in enumerate(headers)]
    calls = "".join(f"if (call_{k}() != 0) return 1;\n" for k in range(len(headers)))
    return "".join(functions) + statements(calls)


def wrong(headers, code, options):
    """What is wrong with a program; empty where nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "named.cpp", pathlib.Path(folder) / "named"
        source.write_text("#include <tapegraph/tapegraph.hpp>\n"
                          + "".join(f"#include <tapegraph/{header}>\n" for header in headers)
                          + f"namespace tg = tapegraph;\n{code}", encoding="utf-8")
        command = [options.compiler, "-std=c++20", "-O0", f"-I{INCLUDE}", *options.more]
        link = []
        if options.component:
            command += ["-DTG_COMPONENT=1", f"-DTG_INSTRUCTION_SETS={options.component[1]}"]
            link = [options.component[0]]
        elif options.precompiled:
            command += ["-include", options.precompiled]
        built = subprocess.run([*command, str(source), *link, "-o", str(program)], text=True,
                               capture_output=True, check=False)
        if built.returncode != 0:
            return next((line for line in built.stderr.splitlines() if "error" in line), built.stderr[-500:])
        ran = subprocess.run([str(program)], text=True, capture_output=True, check=False)
        return "" if ran.returncode == 0 else f"the program ends with {ran.returncode}: {ran.stderr[-300:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--precompiled")
    parser.add_argument("--component", nargs=2)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("more", nargs="*")
    options = parser.parse_args()

    known = {path.relative_to(INCLUDE / "tapegraph").as_posix() for path in INCLUDE.rglob("*.hpp")}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {page: page.read_text(encoding="utf-8") for page in pages
             if page.relative_to(ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT).parts[0] not in NOT_FOR_USERS}
    compiled = set().union(*(in_blocks(text) for text in texts.values()))
    errors = []
    for page, text in texts.items():
        for name in sorted(named_headers(text, known)):
            if name.split("/")[0] in {"ops", "eager", "model", "nn", "train", "compile"} and name not in compiled | CALLS.keys() | INNER:
                errors.append(f"{page.relative_to(ROOT)}: names {name}; give tools/check_named_headers.py a call that needs it alone")
    umbrella = reached("tapegraph.hpp", set())
    errors += [f"tools/check_named_headers.py: there is no {header}" for header in CALLS if header not in known]
    own = [header for header in CALLS if header.startswith("ops/") and header not in umbrella]
    programs = [(own, together(own))] if options.short else [([header], code) for header, code in CALLS.items()]
    for headers, code in programs:
        if message := wrong(headers, code, options):
            errors.append(f"{', '.join(headers)}: not enough for its call: {message}")
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
