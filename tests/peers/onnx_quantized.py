"""Models on integers of 8 bits through onnx's checker and onnxruntime: onnx_quantized.py PROGRAM

PROGRAM is tests/peers/onnx_quantized.cpp. onnxruntime computes the file once operator by operator, as load_onnx does, and once by its kernels
of integers, whose roundings differ. Fails if an output is further from ours than that allows, or if no kernel of integers is used.
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.append(sys.path.pop(0))  # whose onnx.py is another
try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"left out: {missing}")
    sys.exit(77)

OF_INTEGERS = {"QLinearConv", "QLinearMatMul", "QGemm", "MatMulIntegerToFloat", "QLinearAdd", "QLinearConvTranspose"}


def outputs(path, x, level, optimized=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if optimized:
        options.optimized_model_filepath = str(optimized)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"input": x})[0]


def main(program):
    failed = False
    for opset in (17, 26):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            listing = subprocess.run([program, name, str(opset)], check=True, capture_output=True, text=True).stdout
            for line in listing.splitlines():
                model, layers, *extents = line.split()
                path = folder / f"{model}.onnx"
                onnx.checker.check_model(str(path), full_check=True)
                x = numpy.fromfile(folder / f"{model}.x", numpy.float32).reshape([int(e) for e in extents])
                plain = outputs(path, x, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
                best = outputs(path, x, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, folder / "optimized.onnx")
                ours, exact = (numpy.fromfile(folder / f"{model}.{k}", numpy.float32).reshape(plain.shape) for k in ("y", "exact"))
                step = float(exact.max() - exact.min()) / 255
                kinds = [n.op_type for n in onnx.load(folder / "optimized.onnx").graph.node]
                integers = sum(k in OF_INTEGERS for k in kinds)
                off = [float(numpy.abs(y - ours).max()) / step for y in (plain, best, exact)]
                print(f"opset {opset} {model}: {layers} layers, {integers} kernels of integers; steps of its output off: operators {off[0]:.3f}, kernels {off[1]:.3f}, the model {off[2]:.3f}")
                if not (off[0] <= 1 and off[1] <= 1) or integers == 0:
                    print(f"wrong: {kinds}")
                    failed = True
    sys.exit(failed)


main(sys.argv[1])
