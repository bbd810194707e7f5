"""The models that are chains of layers, as lists that each peer builds in its own way, and those of
works/, which are not."""

import math

import works
from study import Study, convolution, dense, layer

RELU = layer("relu")


def head():
    return [dense("dense/0", 256), RELU, layer("dropout", rate=0.5), dense("dense/1", 128), RELU, dense("dense/2", 64), RELU,
            dense("score", 1)]


def medium():
    filters = (64, 128, 256, 256, 128, 64)
    return [convolution(f"conv/{i}", f, (20,)) for i, f in enumerate(filters)] + [layer("average")] + head()


def large():
    body = [convolution(f"body/{i}", 256, (12,), padding="same") for i in range(40)]
    return [convolution("entry/0", 64, (400,), 4), convolution("entry/1", 128, (200,)), *body,
            convolution("exit/0", 512, (20,), 2), convolution("exit/1", 1028, (10,), 2), convolution("exit/2", 256, (1,)),
            layer("average")] + head()


STUDIES = {
    "cnn": Study([convolution("conv1", 150, (3, 3)), RELU, ("normalization", "norm1", {}), layer("pool"),
                  convolution("conv2", 300, (5, 5)), RELU, ("normalization", "norm2", {}), layer("pool"),
                  layer("dropout", rate=0.25), convolution("conv3", 200, (3, 3)), RELU, layer("pool"), layer("flatten"),
                  layer("dropout", rate=0.25), dense("score", 1)], (50, 50, 3), "sgd", 1e-4),
    "rnn": Study([("embedding", "embedding", {"units": 128}), ("lstm", "lstm", {"units": 128}), dense("hidden", 100), RELU,
                  dense("score", 3)], (40,), "adam", 1e-3, classes=3, vocabulary=40691),
    "conv1d_small": Study([convolution("conv", 128, (40,), 4, "same"), layer("average"), layer("dropout", rate=0.5),
                           dense("dense", 64), RELU, dense("score", 1)], (None, 30), "adam", 1e-4),
    "conv1d_medium": Study(medium(), (None, 30), "adam", 1e-4),
    "conv1d_large": Study(large(), (None, 30), "adam", 1e-4),
    **{name: works.module(name).STUDY for name in works.NAMES},
}


def same_padding(extent, kernel, stride):
    """Returns the zeros before and after an axis: the odd one after it, as in TensorFlow."""
    total = max((-(-extent // stride) - 1) * stride + kernel - extent, 0)
    return total // 2, total - total // 2


def step_flop(work, batch, length):
    """Returns the floating-point operations of the products in a training step: forward, with
    respect to the weights, and with respect to the input, which the first product does not need."""
    study = STUDIES[work]
    if own := works.function_of(work, "step_flop"):
        return own(batch, length)
    total, first = 0, True
    extents, channels = [length if e is None else e for e in study.shape[:-1]], study.shape[-1]
    for kind, _, options in study.layers:
        if kind == "convolution":
            taps, stride = options["kernel"], options["stride"]
            same = options["padding"] == "same"
            extents = [(e - (1 if same else k)) // stride + 1 for e, k in zip(extents, taps)]
            products = math.prod(extents) * math.prod(taps) * channels * options["filters"]
            channels = options["filters"]
        elif kind == "lstm":
            products, extents = study.shape[0] * 4 * options["units"] * (channels + options["units"]), []
            channels = options["units"]
        elif kind == "dense":
            products = channels * math.prod(extents) * options["units"]
            extents, channels = [], options["units"]
        else:
            if kind in ("embedding", "bag"):
                channels, first = options["units"], False
            if kind == "pool":
                extents = [e // 2 for e in extents]
            if kind in ("average", "bag"):
                extents = []
            continue
        total += (2 if first else 3) * 2 * batch * products
        first = False
    return total
