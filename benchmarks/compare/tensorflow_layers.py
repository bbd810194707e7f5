"""Keras's layers with our weights."""

import keras


class Named:
    """Layers with their names in our weights: named(NAME, LAYER) returns the layer, and model(...)
    gives all of them their weights."""

    def __init__(self, weights):
        self.weights, self.layers = weights, []

    def __call__(self, name, layer):
        self.layers.append((name, layer))
        return layer

    @staticmethod
    def input(x):
        return keras.Input(x.shape[1:], batch_size=x.shape[0], dtype=x.dtype.name)

    def model(self, inputs, outputs):
        made = keras.Model(inputs, outputs)
        set_weights(self.layers, self.weights)
        return made


def set_weights(named, weights):
    for name, each in named:
        for variable in each.weights if name else ():
            variable.assign(weights[f"{name}/{variable.path.rpartition('/')[2]}"].reshape(variable.shape))
