"""Layers of sequences of Keras with our weights."""

import keras


class Positions(keras.layers.Layer):
    """Adds a row of its own to each step."""

    def __init__(self, time, width):
        super().__init__()
        self.table = self.add_weight(shape=(time, width), name="positions")

    def call(self, x):
        return x + self.table


def positions(named, time, width):
    layer = Positions(time, width)
    named.layers.append((".", layer))
    named.weights["./positions"] = named.weights["positions"]
    return layer


def attention(named, at, x, heads, causal=False):
    """Of a sequence to itself."""
    width = x.shape[-1]

    def part(name):
        return named(f"{at}/{name}", keras.layers.EinsumDense("btf,fhd->bthd", (None, heads, width // heads), bias_axes="hd"))(x)

    seen = keras.ops.dot_product_attention(part("query"), part("key"), part("value"), is_causal=causal)
    last = keras.layers.EinsumDense("bthd,hdf->btf", (None, width), bias_axes="f")
    return named(f"{at}/attention_output", last)(seen)
