"""LSTM, GRU and RNN with random settings, as load_onnx and onnxruntime compute them: onnx_recurrent.py PROGRAM

PROGRAM is tests/peers/onnx_cases.cpp, which compares a model's outputs with stored ones. Fails if one is wrong or refused.
"""

import pathlib
import random
import sys
import tempfile

sys.path.append(sys.path.pop(0))  # whose onnx.py is another
try:
    import numpy
    from onnx import TensorProto, helper, numpy_helper
    from onnx_stored import compare, store
except ImportError as missing:
    print(f"left out: {missing}")
    sys.exit(77)

FUNCTIONS = {"Sigmoid": (0, 0), "Tanh": (0, 0), "Relu": (0, 0), "Softsign": (0, 0), "Softplus": (0, 0), "Affine": (1, 1), "LeakyRelu": (1, 0),
             "ThresholdedRelu": (1, 0), "ScaledTanh": (1, 1), "HardSigmoid": (1, 1), "Elu": (1, 0)}


def layer(draw, numbers):
    kind, gates, count = draw.choice([("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 1)])
    direction = draw.choice(["forward", "reverse", "bidirectional"])
    d, steps, batch, size, units = 2 if direction == "bidirectional" else 1, draw.choice([1, 2, 5]), draw.choice([1, 3]), 3, 4
    settings = {"hidden_size": units, "direction": direction}
    if draw.random() < 0.6:
        names = [draw.choice(list(FUNCTIONS)) for _ in range(count * d)]
        settings["activations"] = names
        # Lists are consumed in the order of the functions that take a number of their kind. onnxruntime's defaults of these are others than
        # the standard's, which has none of two of them.
        if draw.random() < 0.5 or {"Affine", "ScaledTanh", "ThresholdedRelu"} & set(names):
            alphas = [draw.uniform(0.1, 0.6) for name in names if FUNCTIONS[name][0]]
            betas = [draw.uniform(0.1, 0.6) for name in names if FUNCTIONS[name][1]]
            settings |= {"activation_alpha": alphas} if alphas else {}
            settings |= {"activation_beta": betas} if betas else {}
    if draw.random() < 0.4:
        settings["clip"] = draw.uniform(0.2, 1)
    if kind == "LSTM" and draw.random() < 0.3:
        settings["input_forget"] = 1
    if kind == "GRU":
        settings["linear_before_reset"] = draw.randrange(2)

    def some(*shape):
        return (numbers.normal(size=shape) * 0.7).astype(numpy.float32)

    values = {"w": some(d, gates * units, size), "r": some(d, gates * units, units)}
    names = ["x", "w", "r"] + [""] * 5
    if draw.random() < 0.7:
        names[3], values["b"] = "b", some(d, 2 * gates * units)
    if draw.random() < 0.5:
        names[4], values["lengths"] = "lengths", numbers.integers(1, steps + 1, batch).astype(numpy.int32)
    if draw.random() < 0.5:
        names[5], values["h"] = "h", some(d, batch, units)
    if kind == "LSTM" and draw.random() < 0.5:
        names[6], values["c"] = "c", some(d, batch, units)
    if kind == "LSTM" and draw.random() < 0.5:
        names[7], values["p"] = "p", some(d, 3 * units)
    outputs = ["y", "last"] + (["cell"] if kind == "LSTM" else [])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph([helper.make_node(kind, names[:8 if kind == "LSTM" else 6], outputs, **settings)], "layer",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, size])], info,
                              [numpy_helper.from_array(v, n) for n, v in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), some(steps, batch, size)


def main(program):
    with tempfile.TemporaryDirectory() as place:
        folders = []
        for seed in range(150):
            model, x = layer(random.Random(seed), numpy.random.default_rng(seed))
            folders.append(pathlib.Path(place) / f"layer_{seed}")
            store(folders[-1], model, [[x]])
        compare(program, folders)


main(sys.argv[1])
