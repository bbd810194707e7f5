"""Two layers of LSTMs in both directions (benchmarks/models/recurrent.hpp)."""

from study import Study

TIME, UNITS, CLASSES = 64, 256, 10
STUDY = Study(None, (TIME, UNITS), "adam", 1e-3, classes=CLASSES)
ROWS = ("training/1", "training/32", "inference/1", "inference/32")


def step_flop(batch, length):
    """Of both directions: a product with 256 features, one with 512, two with the state. The first
    has no derivative by its input."""
    product = 2 * TIME * UNITS * 4 * UNITS
    return 2 * batch * (3 * (5 * product + 2 * UNITS * CLASSES) - product)


def torch_model(weights):
    from scopes import Scope
    from torch import nn
    from torch_layers import linear
    from torch_sequences import BidirectionalLstm

    scope = Scope(weights)
    return nn.Sequential(BidirectionalLstm([scope / 0, scope / 1]), linear(scope / "score"))


def tensorflow_model(weights, x):
    import keras
    from tensorflow_layers import Named

    named, series = Named(weights), Named.input(x)

    def both(at, h, sequences):
        forward = named(f"{at}/forward_lstm", keras.layers.LSTM(UNITS, return_sequences=sequences))(h)
        backward = named(f"{at}/backward_lstm", keras.layers.LSTM(UNITS, return_sequences=sequences, go_backwards=True))(h)
        return keras.layers.Concatenate()([forward, keras.ops.flip(backward, 1) if sequences else backward])

    h = both("1", both("0", series, True), False)
    return named.model(series, named("score", keras.layers.Dense(CLASSES))(h))


def jax_model(weights, x, training):
    import jax.numpy as jnp
    from jax_layers import Layers
    from jax_sequences import lstm

    def both(at, h):
        return lstm(weights, f"{at}/forward_lstm", h), lstm(weights, f"{at}/backward_lstm", h, backward=True)

    forward, backward = both("1", jnp.concatenate(both("0", x), -1))
    return Layers(weights, training).dense("score", jnp.concatenate([forward[:, -1], backward[:, 0]], -1)), {}
