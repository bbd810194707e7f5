"""The operands of single operations, as in operations.cpp; each peer implements the functions
itself."""

from study import noise

TINY = 1000  # operations per step of the tiny ones
CLASSES = 50_000  # of cross_entropy; the label of row i is 7919 i % CLASSES
LAYERS = {"conv1": (50, 3, 3, 150), "conv2": (24, 150, 5, 300), "conv3": (10, 300, 3, 200)}  # side, from, taps, to


def operands(work, size):
    if work == "add":
        return noise((size,), 1), noise((size,), 0.01)
    if work == "adam":
        return noise((size,), 1), noise((size,), 0.01)
    if work in LAYERS:
        side, channels, taps, filters = LAYERS[work]
        return noise((size, side, side, channels), 1), noise((taps, taps, channels, filters), 0.1)
    if work == "matmul":
        return noise((size, size), 1), noise((size, size), 0.1)
    if work == "lstm":
        return (noise((size, 40, 128), 1), noise((128, 512), 0.05), noise((128, 512), 0.05), noise((512,), 0.1))
    if work in ("chain", "gelu", "gelu_tanh", "swish", "sum", "sort_whole"):
        return (noise((size,), 1),)
    if work == "cross_entropy":
        return (noise((max(1, size // CLASSES), CLASSES), 1),)
    return (noise((size // 1000, 1000), 1),)
