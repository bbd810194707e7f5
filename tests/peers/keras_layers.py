#!/usr/bin/env python3
"""keras_layers.py PROGRAM: each layer that Keras and this library have, with random weights from a .keras and a .weights.h5 file, gives
Keras's result. Prints which of Keras's layers with weights have no counterpart here."""

import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "torch")
try:
    import keras
    import numpy
except (ImportError, OSError):
    sys.exit(77)

L, random = keras.layers, numpy.random.default_rng(4)
ROWS, STEPS, IMAGES = (3, 6), (3, 7, 6), (2, 7, 5, 6)


def attended(layer):
    return lambda x: layer(x, x)


LAYERS = {
    "dense": (L.Dense(4), ROWS), "batch_normalization": (L.BatchNormalization(), ROWS), "layer_normalization": (L.LayerNormalization(), ROWS),
    "rms_normalization": (L.RMSNormalization(), ROWS), "group_normalization": (L.GroupNormalization(3), IMAGES), "prelu": (L.PReLU(), ROWS),
    "conv1d": (L.Conv1D(4, 3, padding="same"), STEPS), "conv1d_transpose": (L.Conv1DTranspose(4, 3), STEPS),
    "depthwise_conv1d": (L.DepthwiseConv1D(3, depth_multiplier=2), STEPS), "separable_conv1d": (L.SeparableConv1D(4, 3), STEPS),
    "conv2d": (L.Conv2D(4, 3, padding="same"), IMAGES), "conv2d_transpose": (L.Conv2DTranspose(4, 3), IMAGES),
    "depthwise_conv2d": (L.DepthwiseConv2D(3, depth_multiplier=2), IMAGES), "separable_conv2d": (L.SeparableConv2D(4, 3), IMAGES),
    "lstm": (L.LSTM(4), STEPS), "gru": (L.GRU(4), STEPS), "gru_before": (L.GRU(4, reset_after=False), STEPS), "simple_rnn": (L.SimpleRNN(4), STEPS),
    "bidirectional": (L.Bidirectional(L.LSTM(4)), STEPS), "multi_head_attention": (attended(L.MultiHeadAttention(2, 3)), STEPS),
    "grouped_query_attention": (attended(L.GroupQueryAttention(4, 4, 2)), STEPS), "embedding": (L.Embedding(9, 4), ROWS),
}
# Without a counterpart: in three axes, convolutions in recurrences, attention by sums, products by a formula, data's own statistics.
ABSENT = ["AdditiveAttention", "Conv3D", "Conv3DTranspose", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "EinsumDense", "Normalization",
          "ReversibleEmbedding", "SpectralNormalization"]

wrong, expected = [], {}
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for what, (layer, shape) in LAYERS.items():
        given = keras.Input(shape[1:])
        network = keras.Model(given, layer(given))
        for weight in network.weights:
            if "float" in weight.dtype:
                low, high = (0.5, 1.5) if "variance" in weight.path else (-1, 1)
                weight.assign(random.uniform(low, high, weight.shape).astype("float32"))
        x = random.normal(size=shape).astype("float32") if what != "embedding" else random.integers(0, 9, shape).astype("float32")
        network.save(folder / f"{what}.keras")
        network.save_weights(folder / f"{what}.weights.h5")
        x.tofile(folder / f"{what}.in")
        expected[what] = numpy.asarray(keras.ops.convert_to_numpy(network(x, training=False)))
    run = subprocess.run([sys.argv[1], str(folder)], check=True, capture_output=True, text=True)
    wrong += [line for line in run.stdout.splitlines() if line.startswith("refused")]
    for what, y in expected.items():
        for kind in (".keras", ".weights.h5"):
            file = folder / f"{what}{kind}.out"
            if not file.exists():
                wrong.append(f"{what}{kind}: no result")
                continue
            got = numpy.fromfile(file, numpy.float32)
            worst = float(numpy.max(numpy.abs(got - y.ravel()))) if got.size == y.size else float("inf")
            if not worst <= 2e-5:
                wrong.append(f"{what}{kind}: differs by {worst:.1e}")
print("no counterpart: " + ", ".join(n for n in ABSENT if hasattr(L, n)))
print("\n".join(wrong + [f"{len(LAYERS)} layers of Keras {keras.__version__}, in two kinds of files"]))
sys.exit(1 if wrong else 0)
