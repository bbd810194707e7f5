#!/usr/bin/env python3
"""keras_weights.py PROGRAM: what we read of Keras's files are the weights of its layers, in all three formats."""

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

layers = keras.layers
network = keras.Sequential([
    keras.Input((9, 6)), layers.Conv1D(8, 3, name="first"), layers.BatchNormalization(name="norm"), layers.Dropout(0.5),
    layers.LSTM(5, return_sequences=True, name="memory"), layers.Conv1D(8, 3), layers.Flatten(), layers.Dense(4, name="score")])
for variable in network.weights:
    if variable.dtype == "float32":
        variable.assign(numpy.random.default_rng(len(variable.path)).normal(size=variable.shape))
network.compile("adam", "mse")

count = 0
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    network.save(folder / "in.keras")
    network.save_weights(folder / "in.weights.h5")
    network.save(folder / "in.h5")
    for file in ["in.keras", "in.weights.h5", "in.h5"]:
        subprocess.run([sys.argv[1], folder / file, folder / "out.npz"], check=True, stdout=subprocess.DEVNULL)
        back = numpy.load(folder / "out.npz")
        for layer in network.layers:
            weights = [w for w in layer.weights if "seed" not in w.path]
            for i, weight in enumerate(weights):
                key = f"{layer.name}/{weight.name}" if file == "in.h5" else f"{layer.name}/{i}"
                assert (back[key] == numpy.asarray(weight.numpy())).all(), (file, key)
                count += 1
        assert len(back.files) == sum("seed" not in w.path for w in network.weights), (file, back.files)
    # A layer after a nested model of one layer, and cells in a list. In alphabetical order "g" would come before "l".
    nested = keras.Sequential([
        keras.Input((9, 6)), keras.Sequential([layers.Dense(4, name="in")], name="inner"),
        layers.RNN(layers.StackedRNNCells([layers.LSTMCell(3, name="l"), layers.GRUCell(3, name="g")]), name="cells"),
        layers.Dense(3, name="out")])
    nested.save(folder / "nested.keras")
    read = subprocess.run([sys.argv[1], folder / "nested.keras", folder / "out.npz"], check=True, capture_output=True, text=True)
    found = [name.split("/")[-2] for name in read.stdout.split()]
    assert list(dict.fromkeys(found)) == ["in", "l", "g", "out"], found
    count += len(found)
print(f"{count} arrays of Keras {keras.__version__}")
