"""The operands of single operations, as in operations.cpp and layer_operations.cpp. Peers have the
functions in torch_operations.py, jax_operations.py and with_tensorflow.py."""

import dataclasses

from study import noise

TINY = 1000  # operations per step of the tiny ones
CLASSES = 50_000  # of cross_entropy, and rows of the embedding's table; the label or word i is 7919 i % CLASSES


@dataclasses.dataclass(frozen=True)
class Convolution:
    """Of images of side x side pixels and filters of taps x taps. `transposed` writes taps x taps
    pixels for each."""

    side: int
    channels: int
    taps: int
    filters: int
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    padded: bool = True
    transposed: bool = False

    @property
    def padding(self):
        return self.dilation * (self.taps - 1) // 2 if self.padded else 0

    @property
    def kernel(self):
        ends = (self.filters, self.channels) if self.transposed else (self.channels // self.groups, self.filters)
        return (self.taps, self.taps, *ends)


CONVOLUTIONS = {  # the first three are the layers of the CNN
    "conv1": Convolution(50, 3, 3, 150, padded=False),
    "conv2": Convolution(24, 150, 5, 300, padded=False),
    "conv3": Convolution(10, 300, 3, 200, padded=False),
    "conv_1x1": Convolution(56, 64, 1, 256),
    "conv_3x3": Convolution(56, 64, 3, 64),
    "conv_5x5": Convolution(28, 64, 5, 64),
    "conv_colours": Convolution(112, 3, 3, 64),
    "conv_grouped": Convolution(28, 128, 3, 128, groups=4),
    "conv_strided": Convolution(56, 64, 3, 128, stride=2),
    "conv_dilated": Convolution(28, 128, 3, 128, dilation=2),
    "conv_depthwise": Convolution(56, 64, 3, 64, groups=64),
    "conv_transposed": Convolution(28, 128, 2, 64, stride=2, padded=False, transposed=True),
}
NORMALIZATIONS = ("group_normalization", "batch_normalization")  # of images, with factors and offsets
LAYER_OPERATIONS = {  # those of layer_operations.cpp, with their rows
    **{name: ("forward/8", "gradient/8") for name in CONVOLUTIONS if "_" in name},
    **{name: ("forward/1048576", "gradient/1048576") for name in NORMALIZATIONS},
    **{name: ("forward/1000000", "gradient/1000000") for name in ("maximum_of_rows", "maximum_of_columns", "dropout")},
    "argmax": ("forward/1000000",),
    "transpose": ("forward/1000000",),
    "embedding": ("forward/8192",),
    "batched_products": ("forward/64", "gradient/64"),
    "attention": tuple(f"{kind}/{n}" for n in (128, 256, 512, 1024, 2048) for kind in ("forward", "gradient")),
}


def product_of(work):
    """Returns (batch, m, n, k) and the layout of product_BATCH_M_N_K_LAYOUT (products.cpp), or None."""
    first, *rest = work.split("_")
    return (tuple(map(int, rest[:4])), rest[4]) if first == "product" else None


def operands(work, size):
    if product := product_of(work):
        (batch, m, n, k), layout = product
        return noise((batch, *((k, m) if layout[0] == "t" else (m, k))), 1), noise((batch, *((n, k) if layout[1] == "t" else (k, n))), 0.1)
    if work in CONVOLUTIONS:
        c = CONVOLUTIONS[work]
        return noise((size, c.side, c.side, c.channels), 1), noise(c.kernel, 0.1)
    if work in ("add", "adam"):
        return noise((size,), 1), noise((size,), 0.01)
    if work == "matmul":
        return noise((size, size), 1), noise((size, size), 0.1)
    if work == "lstm":
        return (noise((size, 40, 128), 1), noise((128, 512), 0.05), noise((128, 512), 0.05), noise((512,), 0.1))
    if work in ("chain", "gelu", "gelu_tanh", "swish", "sum", "sort_whole"):
        return (noise((size,), 1),)
    if work == "cross_entropy":
        return (noise((max(1, size // CLASSES), CLASSES), 1),)
    if work in NORMALIZATIONS:
        return noise((size // (32 * 32 * 64), 32, 32, 64), 1), noise((64,), 1), noise((64,), 0.1)
    if work == "embedding":
        import numpy

        return noise((CLASSES, 128), 1), (numpy.arange(size, dtype=numpy.int64) * 7919 % CLASSES).astype(numpy.int32)
    if work == "batched_products":
        return noise((size, 128, 64), 1), noise((size, 64, 128), 0.1)
    if work == "attention":
        return tuple(noise((1, size, 8, 64), scale) for scale in (1, 0.5, 2))
    return (noise((size // 1000, 1000), 1),)
