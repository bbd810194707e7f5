"""Two GRUs (benchmarks/models/recurrent.hpp)."""

from study import Study

TIME, UNITS, CLASSES = 64, 256, 10
STUDY = Study(None, (TIME, UNITS), "adam", 1e-3, classes=CLASSES)
ROWS = ("training/1", "training/32", "inference/1", "inference/32")


def step_flop(batch, length):
    """The first product has no derivative by its input."""
    product = TIME * UNITS * 3 * UNITS
    return 2 * batch * (3 * (4 * product + UNITS * CLASSES) - product)


def torch_model(weights):
    from scopes import Scope
    from torch import nn
    from torch_layers import linear
    from torch_sequences import Gru

    scope = Scope(weights)
    return nn.Sequential(Gru([scope / 0, scope / 1]), linear(scope / "score"))


def tensorflow_model(weights, x):
    import keras
    from tensorflow_layers import Named

    named, series = Named(weights), Named.input(x)
    h = named("0", keras.layers.GRU(UNITS, return_sequences=True))(series)
    h = named("1", keras.layers.GRU(UNITS))(h)
    return named.model(series, named("score", keras.layers.Dense(CLASSES))(h))


def jax_model(weights, x, training):
    from jax_layers import Layers
    from jax_sequences import gru

    return Layers(weights, training).dense("score", gru(weights, "1", gru(weights, "0", x))[:, -1]), {}
