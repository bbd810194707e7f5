"""Cases for tests/peers/onnx_cases.cpp whose outputs are onnxruntime's. Scripts beside this one append their folder to sys.path to find it."""

import subprocess
import sys

import numpy
import onnxruntime
from onnx import numpy_helper


def store(folder, model, inputs_of_sets):
    """Writes a model and what onnxruntime makes of each set of inputs, which are in the model's order."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    for i, inputs in enumerate(inputs_of_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir(parents=True)
        tensors = {f"input_{n}": x for n, x in enumerate(inputs)}
        tensors |= {f"output_{n}": y for n, y in enumerate(session.run(None, dict(zip(names, inputs))))}
        for name, tensor in tensors.items():
            (data / f"{name}.pb").write_bytes(numpy_helper.from_array(numpy.asarray(tensor)).SerializeToString())
    (folder / "model.onnx").write_bytes(model.SerializeToString())


def compare(program, folders):
    """Runs the program on all of them. Ends with 1 if one is wrong or refused."""
    run = subprocess.run([program, *map(str, folders)], capture_output=True, text=True)
    lines = run.stdout.splitlines()
    equal = sum(line.startswith("equal") for line in lines)
    for line in lines:
        if not line.startswith(("equal", "again")):
            print(line)
    print(f"{len(folders)} models: {equal} equal")
    if equal != len(folders):
        sys.exit(1)
