"""Detectors with random weights, as load_onnx and onnxruntime compute them: onnx_counted.py PROGRAM

PROGRAM is tests/peers/onnx_cases.cpp, which compares a model's outputs with stored ones. Each model predicts a few times, with other
numbers of boxes that are left. Fails if one is wrong or refused.
"""

import pathlib
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

RANDOM = numpy.random.default_rng(3)


def detector(most, centers):
    """Boxes through a product, the best ones of each class, their corners and scores, and operators that count behind them."""
    node = helper.make_node
    nodes = [node("MatMul", ["x", "w"], ["b"]), node("Sigmoid", ["s"], ["p"]),
             node("NonMaxSuppression", ["b", "p", "most", "overlap", "least"], ["chosen"], center_point_box=centers),
             node("GatherND", ["p", "chosen"], ["scores"]), node("Gather", ["chosen", "ends"], ["places"], axis=1),
             node("GatherND", ["b", "places"], ["boxes"]), node("Shape", ["boxes"], ["size"]),
             node("Greater", ["scores", "half"], ["sure"]), node("Compress", ["boxes", "sure"], ["best"], axis=0),
             node("Gather", ["chosen", "one"], ["classes"], axis=1), node("Unique", ["classes"], ["kinds", "", "", "counts"])]
    weight = (RANDOM.normal(size=(4, 4)) * 0.1 + numpy.eye(4)).astype(numpy.float32)
    values = {"w": weight, "most": numpy.int64([most]), "overlap": numpy.float32([0.4]), "least": numpy.float32([0.45]),
              "ends": numpy.int64([0, 2]), "one": numpy.int64(1), "half": numpy.float32(0.5)}
    info = helper.make_tensor_value_info
    outputs = [info(n, t, None) for n, t in (("scores", 1), ("boxes", 1), ("size", 7), ("best", 1), ("kinds", 7), ("counts", 7))]
    graph = helper.make_graph(nodes, "detector", [info("x", TensorProto.FLOAT, ["b", "n", 4]), info("s", TensorProto.FLOAT, ["b", "c", "n"])],
                              outputs, [numpy_helper.from_array(v, n) for n, v in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def regions(mode, transformation):
    """RoiAlign whose bins have as many points as pixels, between operators."""
    nodes = [helper.make_node("Relu", ["x"], ["h"]),
             helper.make_node("RoiAlign", ["h", "boxes", "images"], ["r"], mode=mode, output_height=3, output_width=2, spatial_scale=0.5,
                              sampling_ratio=0, coordinate_transformation_mode=transformation),
             helper.make_node("Neg", ["r"], ["y"])]
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, ["b", 3, "h", "w"]), info("boxes", TensorProto.FLOAT, ["n", 4]), info("images", TensorProto.INT64, ["n"])]
    graph = helper.make_graph(nodes, "regions", inputs, [info("y", TensorProto.FLOAT, ["n", 3, 3, 2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main(program):
    with tempfile.TemporaryDirectory() as place:
        folders = []
        for k in range(12):
            folders.append(pathlib.Path(place) / f"detector_{k}")
            centers, boxes, classes, batch = k % 2, [1, 7, 50, 300][k % 4], [1, 3][k % 2], 1 + k % 3
            sets = []
            for i in range(3):
                x = RANDOM.uniform(0, 10, (batch, boxes + i, 4)).astype(numpy.float32)
                sizes = RANDOM.uniform(0.5, 4, (batch, boxes + i, 2)).astype(numpy.float32)
                x[..., 2:] = sizes if centers else x[..., :2] + sizes
                sets.append([x, RANDOM.normal(-0.2, 1, (batch, classes, boxes + i)).astype(numpy.float32)])
            store(folders[-1], detector(5 + 3 * k, centers), sets)
        for mode in ("avg", "max"):
            for transformation in ("half_pixel", "output_half_pixel"):
                folders.append(pathlib.Path(place) / f"regions_{mode}_{transformation}")
                sets = []
                for count in (1, 13, 0):
                    corners = RANDOM.uniform(-2, 40, (count, 2))
                    boxes = numpy.concatenate([corners, corners + RANDOM.uniform(-1, 20, (count, 2))], 1).astype(numpy.float32)
                    sets.append([RANDOM.normal(size=(2, 3, 17, 11)).astype(numpy.float32), boxes, RANDOM.integers(0, 2, count)])
                store(folders[-1], regions(mode, transformation), sets)
        compare(program, folders)


main(sys.argv[1])
