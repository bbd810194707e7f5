"""The models of the studies as lists of layers, which each peer builds in its own way, and their
data, which are those of benchmarks/compare/*.cpp. A layer is its kind, its name in our weights
(None if it has none) and its options."""

import numpy


def convolution(name, filters, kernel, stride=1, padding="valid"):
    return "convolution", name, {"filters": filters, "kernel": kernel, "stride": stride, "padding": padding}


def dense(name, units):
    return "dense", name, {"units": units}


def layer(kind, **options):
    return kind, None, options


RELU = layer("relu")


def head():
    return [dense("dense/0", 256), RELU, layer("dropout", rate=0.5), dense("dense/1", 128), RELU, dense("dense/2", 64), RELU,
            dense("score", 1)]


class Study:
    """layers, or None if they are no chain; `shape` of a record, None for its length; `rate` of the
    optimizer; `classes`: 2 (one logit) or more; `successors`: each character's label is the next
    character."""

    def __init__(self, layers, shape, optimizer, rate, classes=2, vocabulary=0, successors=False):
        self.layers, self.shape, self.optimizer, self.rate = layers, shape, optimizer, rate
        self.classes, self.vocabulary, self.successors = classes, vocabulary, successors

    def layers_for(self, check):
        """Returns the layers, without dropout where results are compared, since random numbers
        differ between libraries."""
        return [each for each in self.layers if not (check and each[0] == "dropout")]

    def data(self, batch, length):
        """Returns NumPy arrays x [batch, ...] and y."""
        shape = (batch, *(length if extent is None else extent for extent in self.shape))
        if self.vocabulary:
            places = numpy.arange(numpy.prod(shape), dtype=numpy.int64)
            x = (places * 7919 % self.vocabulary).astype(numpy.int32).reshape(shape)
            if self.successors:
                return x, ((places + 1) * 7919 % self.vocabulary).astype(numpy.int32)
        else:
            x = noise(shape, 1)
        rows = numpy.arange(batch)
        return x, (rows % self.classes).astype(numpy.int32) if self.classes > 2 else (rows % 2).astype(numpy.float32).reshape(batch, 1)


def noise(shape, scale):
    """Returns the same bits as noise.hpp, which explains them."""
    bits = numpy.arange(1, numpy.prod(shape) + 1, dtype=numpy.int64).astype(numpy.uint32)
    bits = (bits ^ bits >> 16) * numpy.uint32(0x85EBCA6B)
    bits = (bits ^ bits >> 13) * numpy.uint32(0xC2B2AE35)
    bits ^= bits >> 16
    values = (bits >> 8).astype(numpy.float32) / numpy.float32(8388608) - numpy.float32(1)
    return (numpy.float32(scale) * values).reshape(shape)


def digest(result):
    """Returns the digest of an array, as in contestant.hpp: its mean magnitude and 16 elements."""
    y = numpy.asarray(result).reshape(-1)
    return [float(numpy.mean(numpy.abs(y), dtype=numpy.float64)), *(float(y[i * (y.size - 1) // 15]) for i in range(16))]


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
    "resnet18": Study(None, (32, 32, 3), "momentum", 1e-3, classes=10),
    "gpt": Study(None, (256,), "adam", 1e-4, classes=65, vocabulary=65, successors=True),
}


def same_padding(extent, kernel, stride):
    """Returns the zeros before and after an axis: the odd one after it, as in TensorFlow."""
    total = max((-(-extent // stride) - 1) * stride + kernel - extent, 0)
    return total // 2, total - total // 2


def step_flop(work, batch, length):
    """Returns the floating-point operations of the products in a training step: forward, with
    respect to the weights, and with respect to the input, which the first product does not need."""
    study = STUDIES[work]
    if work == "gpt":  # Six blocks of width 384: 12 width^2 weights each; scores of all pairs, two products.
        tokens = batch * 256
        return 3 * 2 * tokens * (6 * (12 * 384**2 + 2 * 256 * 384) + 384 * 65)
    if work == "resnet18":
        forward, side, inputs = 32 * 32 * 27 * 64, 32, 64
        for i in range(8):
            filters = 64 << i // 2
            if i % 2 == 0 and i:
                side //= 2
                forward += side**2 * inputs * filters
            forward += side**2 * 9 * (inputs + filters) * filters
            inputs = filters
        return 2 * batch * (3 * (forward + 512 * 10) - 32 * 32 * 27 * 64)
    total, first = 0, True
    extents, channels = [length if e is None else e for e in study.shape[:-1]], study.shape[-1]
    for kind, _, options in study.layers:
        if kind == "convolution":
            taps, stride = options["kernel"], options["stride"]
            same = options["padding"] == "same"
            extents = [(e - (1 if same else k)) // stride + 1 for e, k in zip(extents, taps)]
            products = numpy.prod(extents, dtype=float) * numpy.prod(taps) * channels * options["filters"]
            channels = options["filters"]
        elif kind == "lstm":
            products, extents = study.shape[0] * 4 * options["units"] * (channels + options["units"]), []
            channels = options["units"]
        elif kind == "dense":
            products = channels * numpy.prod(extents, dtype=float) * options["units"]
            extents, channels = [], options["units"]
        else:
            if kind == "embedding":
                channels, first = options["units"], False
            if kind == "pool":
                extents = [e // 2 for e in extents]
            if kind == "average":
                extents = []
            continue
        total += (2 if first else 3) * 2 * batch * products
        first = False
    return total
