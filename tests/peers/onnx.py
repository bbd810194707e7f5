"""Every model of the program, exported, through onnx's checker and onnxruntime.

Usage: onnx.py PROGRAM; ends with 77 where a library is missing.
"""
import pathlib
import subprocess
import sys
import tempfile

sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve() != pathlib.Path(__file__).resolve().parent]
try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"not here: {missing}")
    sys.exit(77)

TYPES = {"f32": numpy.float32, "f64": numpy.float64, "i32": numpy.int32, "i64": numpy.int64, "bool": numpy.bool_}


NEWEST_OPSET = 26  # that io/onnx.hpp writes, and onnxruntime 1.32 reads


def cases(listing, folder):
    """(name, transposes, [([inputs], output)]) for each model."""
    models = []
    for line in listing.splitlines():
        what, first, *rest = line.split()
        if what == "model":
            models.append((first, int(rest[0]), []))
            inputs = []
            continue
        array = numpy.fromfile(folder / first, TYPES[rest[0]]).reshape([int(d) for d in rest[1:]])
        if what == "input":
            inputs.append(array)
        else:
            models[-1][2].append((inputs, array))
            inputs = []
    return models


def distance(a, b):
    return float(numpy.max(numpy.abs(a - b) / (1 + numpy.abs(b)), initial=0)) if a.shape == b.shape else float("inf")


def wrong_models(opset, tolerance, *more):
    """The models that are not equal; each is exported with the opset and checked."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        listing = subprocess.run([sys.argv[1], name, str(opset), *more], check=True, capture_output=True, text=True).stdout
        for name, transposes, runs in cases(listing, folder):
            path = folder / f"{name}.onnx"
            onnx.checker.check_model(str(path), full_check=True)
            count = sum(n.op_type == "Transpose" for n in onnx.load(path).graph.node)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            worst = 0.0
            for inputs, output in runs:
                given = {i.name: x for i, x in zip(session.get_inputs(), inputs)}
                worst = max(worst, distance(session.run(None, given)[0], output))
            ok = worst <= tolerance and (transposes < 0 or count <= transposes)
            print(f"{name:20} {'ok' if ok else 'WRONG'}  {worst:.1e}, {count} Transpose")
            if not ok:
                wrong.append(f"{name} at opset {opset}")
    return wrong


def main():
    newest = min(NEWEST_OPSET, onnx.defs.onnx_opset_version())
    wrong = wrong_models(17, 1e-5) + wrong_models(newest, 1e-5)
    # Each weight is off by up to 1/254 of its channel's largest; the models of this program by up to 0.02.
    wrong += wrong_models(17, 0.05, "int8")
    print(f"opsets 17 and {newest}")
    sys.exit(f"not equal: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
