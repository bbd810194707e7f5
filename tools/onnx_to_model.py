#!/usr/bin/env python3
"""Turns an ONNX file into a model header and a safetensors file, so that a third-party network can
be compiled and trained.

    onnx_to_model.py m.onnx [--name network] [--header network.hpp] [--weights network.safetensors]

Needs PyPI's onnx and numpy. If something is not supported, everything unsupported is named and
nothing is written. See docs/onnx.md.
"""
import argparse
import pathlib
import re
import sys

import onnx
from onnx import shape_inference

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # also when this file is loaded by its path
from onnx_import.files import replace, write_safetensors  # noqa: E402
from onnx_import.translation import Translation  # noqa: E402
from onnx_import.values import Unsupported  # noqa: E402


def convert(source, name, header, weights):
    """Writes both files; returns what is not supported, and then writes none."""
    model = onnx.load(source)
    onnx.checker.check_model(model) if not any(t.data_location for t in model.graph.initializer) else None
    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except (ValueError, shape_inference.InferenceError):
        pass  # over 2 GiB, or unknown operations, which are named below
    t = Translation(model, name)
    try:
        t.run()
        text = "" if t.problems else t.header(source.name, weights.name)
    except Unsupported as why:
        t.problems.append(str(why))
    if t.problems:
        return t.problems
    write_safetensors(weights, t.weights)
    replace(header, [text.encode()])
    return []


def main():
    parser = argparse.ArgumentParser(description="An ONNX file as a model header and a safetensors file")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--name", help="of the model; the file's by default")
    parser.add_argument("--header", type=pathlib.Path)
    parser.add_argument("--weights", type=pathlib.Path)
    given = parser.parse_args()
    name = given.name or re.sub(r"\W+", "_", given.source.stem)
    header = given.header or given.source.with_name(name + ".hpp")
    weights = given.weights or given.source.with_name(name + ".safetensors")
    problems = convert(given.source, name, header, weights)
    if problems:
        sys.exit(f"{given.source}: not supported: " + "; ".join(problems))
    print(f"{header}, {weights}")


if __name__ == "__main__":
    main()
