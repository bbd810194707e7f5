"""Networks exported by Keras, on TensorFlow and on PyTorch, loaded, compared with onnxruntime, and exported again: keras_exports.py PROGRAM [--folder FOLDER]

PROGRAM is tests/peers/pytorch_exports.cpp. Weights are random.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.pop(0)  # whose onnx.py is another


def write(folder):
    """Exports on the backend of this process."""
    import keras
    import numpy
    import onnx
    sys.path.append(str(HERE))
    import onnx_stored
    layers, random = keras.layers, numpy.random.default_rng(3)

    def sequential(shape, *parts):
        return keras.Sequential([keras.Input(shape), *parts]), lambda n: random.normal(size=(n, *shape)).astype("float32")

    def functional(shape, build, kind="float32", limit=None):
        x = keras.Input(shape, dtype=kind)
        make = (lambda n: random.integers(0, limit, (n, *shape)).astype(kind)) if limit else (lambda n: random.normal(size=(n, *shape)).astype(kind))
        return keras.Model(x, build(x)), make

    def residual(x):
        h = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(x)))
        h = layers.Add()([h, layers.Conv2D(8, 1)(x)])
        h = layers.MaxPooling2D()(layers.DepthwiseConv2D(3, padding="same")(h))
        return layers.Dense(5, activation="softmax")(layers.GlobalAveragePooling2D()(layers.SeparableConv2D(12, 3)(h)))

    def squeezed(x):
        h = layers.Conv2D(16, 3, strides=2, padding="same", activation="swish")(x)
        s = layers.Dense(16, activation="sigmoid")(layers.Dense(4, activation="relu")(layers.GlobalAveragePooling2D(keepdims=True)(h)))
        return layers.GlobalMaxPooling2D()(layers.Multiply()([h, s]))

    def unet(x):
        a = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
        b = layers.Conv2D(8, 3, padding="same", activation="relu")(layers.AveragePooling2D(2)(a))
        h = layers.Concatenate()([layers.Conv2DTranspose(4, 2, strides=2)(b), layers.UpSampling2D()(b), a])
        return layers.Conv2D(1, 1, activation="sigmoid")(h)

    def transformer(x):
        h = layers.Embedding(30, 16)(x)
        a = layers.MultiHeadAttention(2, 8)(h, h, use_causal_mask=True)
        h = layers.LayerNormalization()(layers.Add()([h, a]))
        h = layers.Add()([h, layers.Dense(16)(layers.Dense(32, activation=lambda v: keras.activations.gelu(v, approximate=True))(h))])
        return layers.Dense(30)(layers.LayerNormalization()(h))

    networks = {
        "mlp": lambda: sequential((7,), layers.Dense(16, activation="relu"), layers.Dropout(0.3), layers.BatchNormalization(), layers.Dense(3, activation="softmax")),
        "cnn": lambda: sequential((28, 28, 1), layers.Rescaling(1 / 255.0), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(),
                                  layers.Conv2D(16, 3, strides=2, padding="same"), layers.LeakyReLU(), layers.Flatten(), layers.Dense(10)),
        "residual": lambda: functional((16, 16, 3), residual),
        "squeezed": lambda: functional((17, 17, 3), squeezed),
        "unet": lambda: functional((16, 16, 3), unet),
        "series": lambda: sequential((20, 4), layers.Conv1D(8, 3, padding="causal", dilation_rate=2), layers.MaxPooling1D(), layers.ZeroPadding1D(2),
                                     layers.Conv1DTranspose(6, 4, strides=2, padding="same"), layers.GlobalMaxPooling1D(), layers.Dense(2)),
        "lstm": lambda: sequential((9, 4), layers.LSTM(6, return_sequences=True), layers.LSTM(5), layers.Dense(2)),
        "gru": lambda: sequential((9, 4), layers.GRU(6, return_sequences=True), layers.GRU(5, reset_after=False), layers.Dense(2)),
        "bidirectional": lambda: sequential((9, 4), layers.Bidirectional(layers.LSTM(5, return_sequences=True)), layers.SimpleRNN(3)),
        "text": lambda: functional((12,), lambda x: layers.Dense(2)(layers.GlobalAveragePooling1D()(layers.Embedding(40, 8)(x))), "int32", 40),
        "transformer": lambda: functional((8,), transformer, "int32", 30),
        "autoencoder": lambda: sequential((12, 12, 1), layers.Conv2D(4, 3, 2, "same", activation="relu"), layers.Flatten(), layers.Dense(6), layers.Dense(144),
                                          layers.Reshape((6, 6, 4)), layers.Conv2DTranspose(1, 3, 2, "same", activation="sigmoid")),
        "normalizations": lambda: sequential((8, 8, 4), layers.GroupNormalization(2), layers.PReLU(), layers.LayerNormalization(), layers.ELU(), layers.UnitNormalization(),
                                             layers.Cropping2D(1), layers.Permute((3, 1, 2)), layers.ZeroPadding2D(1)),
        "volume": lambda: sequential((8, 8, 8, 1), layers.Conv3D(4, 3, activation="relu"), layers.MaxPooling3D(), layers.TimeDistributed(layers.Flatten()), layers.GlobalAveragePooling1D(), layers.Dense(2)),
    }
    for name, make in networks.items():
        keras.utils.set_random_seed(5)
        model, inputs = make()
        model(inputs(2))
        for variable in model.weights:  # averages of batch normalization, too
            if "float" in variable.dtype:
                low, high = (0.5, 1.5) if "variance" in variable.path else (-0.5, 0.5)
                variable.assign(random.uniform(low, high, variable.shape).astype(variable.dtype))
        into = folder / f"{name}_{keras.config.backend()}"
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        try:
            model.export(str(into / "model.onnx"), format="onnx", verbose=False)
        except Exception as why:  # Keras's own
            print(f"not exported {into.name}: {str(why).strip().splitlines()[0][:200] or type(why).__name__}", flush=True)
            shutil.rmtree(into)
            continue
        stored = onnx.load(into / "model.onnx")
        fixed = stored.graph.input[0].type.tensor_type.shape.dim[0].HasField("dim_value")
        batches = (stored.graph.input[0].type.tensor_type.shape.dim[0].dim_value,) if fixed else (2, 3)
        onnx_stored.store(into, stored, [[inputs(n)] for n in batches])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--folder", type=pathlib.Path)
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    if given.write:
        return write(given.folder)
    try:
        import keras  # noqa: F401
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        sys.path.append(str(HERE))
        import exported_again
        import onnx_stored
    except (ImportError, OSError) as missing:
        print(f"left out: {missing}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as moment:
        folder = given.folder or pathlib.Path(moment)
        for backend in ("tensorflow", "torch"):
            environment = dict(os.environ, KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
            subprocess.run([sys.executable, __file__, given.program, "--write", "--folder", str(folder)], env=environment)
        folders = sorted(p.parent for p in folder.glob("*/model.onnx"))
        onnx_stored.compare(given.program, folders)
        if len(folders) < 14 or not exported_again.compare(folders, set()):
            sys.exit(1)


main()
