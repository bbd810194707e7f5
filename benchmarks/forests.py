#!/usr/bin/env python3
"""Times forests of scikit-learn as load_onnx and onnxruntime compute them, alternating, on one thread: medians of
processor time of a prediction, by batch size. Needs scikit-learn, skl2onnx and onnxruntime.

Usage: forests.py build/default/benchmarks/bench_forests [ANOTHER ...] [--turns 7]
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

import numpy
import onnxruntime
import skl2onnx
from onnx import TensorProto, helper
from skl2onnx.common.data_types import FloatTensorType
from sklearn import ensemble

ROWS, FEATURES, TREES = 4000, 20, 100


def copying_model():
    """What calling onnxruntime costs."""
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, FEATURES]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "copy", infos[:1], infos[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def forests():
    random = numpy.random.default_rng(1)
    x = random.normal(size=(ROWS, FEATURES)).astype(numpy.float32)
    value = x[:, 0] * 2 - x[:, 1] * x[:, 2] + abs(x[:, 3]) + random.normal(size=ROWS) * 0.3
    classes = numpy.digitize(value, [-1, 0, 1.5])
    yield "copy of the input", x, copying_model()
    for name, model, y in (
        ("deep regression", ensemble.RandomForestRegressor(TREES, random_state=1), value),
        ("deep, four classes", ensemble.RandomForestClassifier(TREES, random_state=1), classes),
        ("boosted, depth 5", ensemble.GradientBoostingRegressor(n_estimators=TREES, max_depth=5, random_state=1), value),
    ):
        model.fit(x, y)
        options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
        target = {"": 17, "ai.onnx.ml": 3}
        converted = skl2onnx.convert_sklearn(model, initial_types=[("x", FloatTensorType([None, FEATURES]))], options=options, target_opset=target)
        each = numpy.ravel(model.estimators_)
        nodes, depth = sum(t.tree_.node_count for t in each), max(t.tree_.max_depth for t in each)
        yield f"{name} ({nodes:,} nodes, depth {depth})", x, converted.SerializeToString()


def of_onnxruntime(session, x, batch, predictions):
    times = []
    for i in range(predictions):
        at = i * batch % (len(x) - batch + 1)
        part = x[at:at + batch].copy()
        begin = time.process_time_ns()
        session.run(None, {"x": part})
        times.append((time.process_time_ns() - begin) / 1000)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        for name, x, model in forests():
            open(f"{folder}/m.onnx", "wb").write(model)
            x.tofile(f"{folder}/x.bin")
            session = onnxruntime.InferenceSession(model, settings)
            started = [subprocess.Popen([p, f"{folder}/m.onnx", f"{folder}/x.bin", str(FEATURES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=dict(os.environ, OMP_NUM_THREADS="1")) for p in options.programs]
            for batch in (1, 32, 1024):
                found = [[] for _ in range(1 + len(started))]
                for _ in range(options.turns):
                    predictions = max(10, 4000 // batch)
                    found[0].append(of_onnxruntime(session, x, batch, predictions))
                    for k, each in enumerate(started):
                        each.stdin.write(f"{batch} {predictions}\n")
                        each.stdin.flush()
                        found[k + 1].append(float(each.stdout.readline()))
                ours = " ".join(f"{statistics.median(f):10.1f}" for f in found[1:])
                print(f"{name:45} batch {batch:5}: onnxruntime {statistics.median(found[0]):10.1f}, here {ours} us", flush=True)
            for each in started:
                each.stdin.close()
                each.wait()


main()
