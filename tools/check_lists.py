#!/usr/bin/env python3
"""Checks that tests which go through all of a kind (every loss, every schedule, ...) name all that the headers have,
that tools/mutants.py names tests that exist, and that files go over element types by the table of core/dtype.hpp.

Prints FILE: MESSAGE for each name that is missing in its test's list, and each list of element types by hand; exits 1
if there is any.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NN = "include/tapegraph/nn/"
OPS = "include/tapegraph/ops/"


def public_part(text):
    """A header without what stands in namespace detail."""
    return re.sub(r"^namespace detail \{$.*?^\} // namespace detail$", "", text, flags=re.DOTALL | re.MULTILINE)


def structures(having=""):
    """Names of public structures whose text has `having`, and of public aliases."""
    def find(text):
        text = public_part(text)
        names = re.findall(r"^using (\w+) =", text, re.MULTILINE)
        for match in re.finditer(r"^struct (\w+)[^;]*?\{$(.*?)^\};$", text, re.DOTALL | re.MULTILINE):
            if having in match[2]:
                names.append(match[1])
        return names
    return find


def layers_of_masked_values(text):
    """Functions that have a form for masked values, and names that the header's macro gives such a form."""
    text = public_part(text)
    names = re.findall(r"^constexpr auto (\w+)\([^()]*\bmasked<", text, re.MULTILINE)
    names += re.findall(r"^TG_STEPS_OVER_MASK\((\w+),", text, re.MULTILINE)
    names += re.findall(r"requires detail::one_masked<Q, V>\nconstexpr auto (\w+)", text)
    return names


def layers_that_keep_masks(text):
    """Names that nn/layers/keeps_mask.hpp gives a form for masked values."""
    return re.findall(r"^TG_KEEPS_MASK\((\w+),", public_part(text), re.MULTILINE)


SAME = {"silu"}  # other names of what has one already


def functions(like=""):
    """Names of public functions that a pattern is found in."""
    def find(text):
        names = re.findall(r"^(?:TG_INLINE )?constexpr auto (\w+)\(", public_part(text), re.MULTILINE)
        return [name for name in dict.fromkeys(names) if re.search(like, name) and name not in SAME]
    return find


# What the names are of; the headers that have them; how they are found there; the files one of which has to say tg::NAME or "NAME". The rows
# below the first five are of what is tried where formulas are joined (seams): derivatives to the third against differences from both sides.
LOSSES = [NN + "losses/*.hpp"]
LISTS = [
    ("loss", LOSSES, structures("string_view name"), ["tests/nn/every_loss.hpp"]),
    ("metric", [NN + "metrics/*.hpp"], structures("string_view name"), ["tests/nn/every_loss.hpp"]),
    ("schedule", [NN + "optimizers/schedules.hpp"], structures("operator()(std::int64_t"), ["tests/nn/every_schedule.hpp"]),
    ("layer with a mask", [NN + "layers/masking.hpp"], layers_of_masked_values, ["tests/nn/every_masked_layer.hpp"]),
    ("layer that keeps a mask", [NN + "layers/*.hpp"], layers_that_keep_masks, ["tests/nn/every_masked_layer.hpp"]),
    ("loss", LOSSES, structures("string_view name"), ["tests/nn/losses_seams_test.cpp", "tests/nn/loss_seams_test.cpp"]),
    ("activation", [OPS + "elementwise/activation.hpp", OPS + "elementwise/gated_activation.hpp"], functions(),
     ["tests/operations/activation.cpp", "tests/operations/function.cpp", "tests/operations/elementwise.cpp", "tests/operations/selection.cpp"]),
    ("pooling", [OPS + "pooling/*.hpp"], functions("pooling"), ["tests/operations/pooling.cpp"]),
    ("norm", [OPS + "reduction/norm.hpp", OPS + "reduction/moments.hpp"], functions(), ["tests/operations/reduction.cpp"]),
    ("normalization", [NN + "layers/*.hpp"], functions("normaliz"), ["tests/nn/normalization_seams_test.cpp"]),
]

# Files that may name every element type, or the types of 16 bits, by hand, and why. All others use visit_type and the lists of
# core/element_types.hpp, or the macros of the table, so that a new type is a row of it.
ELEMENTS_BY_HAND = {
    "include/tapegraph/core/dtype.hpp": "the table",
    "include/tapegraph/core/half.hpp": "the 16-bit types",
    "include/tapegraph/core/element_types.hpp": "the lists",
    "include/tapegraph/ir/operation.hpp": "instantiated for every operation: a visitor costs compile time",
    "include/tapegraph/ops/effect/kernel.hpp": "print knows other types than kernels",
    "include/tapegraph/io/onnx_import/importer.hpp": "what computes the narrow integers of ONNX",
    "include/tapegraph/io/onnx/type_number.hpp": "numbers of ONNX",
    "include/tapegraph/io/graph_def.hpp": "numbers and names of TensorFlow",
    "include/tapegraph/formats/dlpack.hpp": "codes of DLPack",
    "include/tapegraph/ops/compiled_kernels.hpp": "a list for rows that TG_FLOATING_TYPES itself makes",
    "include/tapegraph/formats/npy_format.hpp": "what NumPy has",
    "include/tapegraph/formats/hdf5_file.hpp": "names of Keras",
    "include/tapegraph/formats/safetensors_header.hpp": "names of safetensors",
    "include/tapegraph/formats/pytorch_walk.hpp": "names of PyTorch",
    "include/tapegraph/formats/gguf.hpp": "names of GGUF",
    "cuda/tapegraph/cuda/ops/product/blas.cuh": "numbers of cuBLAS",
    "cuda/tapegraph/cuda/kernels/instructions.cuh": "names of instructions",
    "cuda/tapegraph/cuda/kernels/warpgroup_instructions.cuh": "names of instructions",
}
MOST_CASES = 4


def element_lists(root):
    """Files outside ELEMENTS_BY_HAND that switch over more than a few element types, or name bfloat16."""
    for folder in ("include", "cuda"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".hpp", ".cuh", ".cu", ".cpp"):
                continue
            name = path.relative_to(root).as_posix()
            code = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', "", path.read_text(encoding="utf-8"))
            cases = set(re.findall(r"\bcase (?:tapegraph::)?dtype::(\w+)", code))
            if name in ELEMENTS_BY_HAND:
                continue
            if len(cases) > MOST_CASES:
                yield f"{name}: a switch over {len(cases)} element types: visit_type or a list of core/element_types.hpp"
            elif re.search(r"\bdtype::bf16\b|\bbfloat16\b", code):
                yield f"{name}: it names bfloat16: storage_types, floating_types, element_t or is_storage_type do without"


def main():
    errors = list(element_lists(ROOT))
    errors += [f"tools/check_lists.py: there is no {name}" for name in ELEMENTS_BY_HAND if not (ROOT / name).exists()]
    for what, patterns, find, tests in LISTS:
        text = "".join((ROOT / test).read_text(encoding="utf-8") for test in tests)
        listed = set(re.findall(r"(?:\btg::|\bTG_KEPT\(|\")(\w+)", text))
        names = [(name, path) for pattern in patterns for path in sorted(ROOT.glob(pattern))
                 for name in find(path.read_text(encoding="utf-8"))]
        if not names:
            errors.append(f"tools/check_lists.py: no {what} was found in {', '.join(patterns)}")
        errors += [f"{path.relative_to(ROOT)}: the {what} {name} is missing in {' or '.join(tests)}"
                   for name, path in names if name not in listed]
    tool = (ROOT / "tools" / "mutants.py").read_text(encoding="utf-8")
    errors += [f"tools/mutants.py: there is no tests/{name}.cpp" for name in sorted(set(re.findall(r'"([\w/]+/\w+_test)"', tool)))
               if not (ROOT / "tests" / f"{name}.cpp").exists()]
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
