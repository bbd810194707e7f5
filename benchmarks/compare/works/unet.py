"""A U-Net of three levels (benchmarks/models/unet.hpp)."""

from study import Study, noise

SIDE = 64


class Pixels(Study):
    def data(self, batch, length):
        return noise((batch, SIDE, SIDE, 3), 1), (noise((batch, SIDE, SIDE, 1), 1) > 0).astype("float32")


STUDY = Pixels(None, (SIDE, SIDE, 3), "adam", 1e-4)
ROWS = tuple(f"{kind}/{batch}" for kind in ("training", "inference") for batch in (1, 16, 32))


def step_flop(batch, length):
    """Per pixel of each level."""
    first, fine = 27 * 32, 9 * 32 * 32
    fine_level = first + fine + 9 * 64 * 32 + fine + 32
    middle = 9 * (32 * 64 + 64 * 64) + 9 * (128 * 64 + 64 * 64) + 64 * 32 * 4
    coarse = 9 * (64 * 128 + 128 * 128) + 128 * 64 * 4
    return 2 * batch * SIDE**2 * (3 * (fine_level + middle / 4 + coarse / 16) - first)


def torch_model(weights):
    import torch
    from scopes import Scope
    from torch import nn
    from torch_layers import convolution, transposed_convolution

    def twice(scope):
        return nn.Sequential(convolution(scope / 0, 1, 1), nn.ReLU(), convolution(scope / 1, 1, 1), nn.ReLU())

    class Unet(nn.Module):
        def __init__(self, scope):
            super().__init__()
            self.down = nn.ModuleList(twice(scope / "down" / i) for i in range(2))
            self.up = nn.ModuleList(twice(scope / "up" / i) for i in range(2))
            self.up_to = nn.ModuleList(transposed_convolution(scope / "raise" / i, 2) for i in range(2))
            self.bottom, self.pool, self.score = twice(scope / "bottom"), nn.MaxPool2d(2), convolution(scope / "score")

        def forward(self, x):
            fine = self.down[0](x)
            middle = self.down[1](self.pool(fine))
            coarse = self.bottom(self.pool(middle))
            middle = self.up[1](torch.cat((middle, self.up_to[1](coarse)), 1))
            return self.score(self.up[0](torch.cat((fine, self.up_to[0](middle)), 1))).permute(0, 2, 3, 1)

    return Unet(Scope(weights))


def tensorflow_model(weights, x):
    import keras
    from keras import layers
    from tensorflow_layers import Named

    named = Named(weights)

    def twice(at, h, filters):
        for i in range(2):
            h = named(f"{at}/{i}", layers.Conv2D(filters, 3, padding="same", activation="relu"))(h)
        return h

    def raised(at, h, filters):
        return named(at, layers.Conv2DTranspose(filters, 2, 2))(h)

    image = named.input(x)
    fine = twice("down/0", image, 32)
    middle = twice("down/1", layers.MaxPooling2D()(fine), 64)
    coarse = twice("bottom", layers.MaxPooling2D()(middle), 128)
    middle = twice("up/1", keras.ops.concatenate((middle, raised("raise/1", coarse, 64)), -1), 64)
    fine = twice("up/0", keras.ops.concatenate((fine, raised("raise/0", middle, 32)), -1), 32)
    return named.model(image, named("score", layers.Conv2D(1, 1))(fine))


def jax_model(weights, x, training):
    import jax
    import jax.numpy as jnp
    from jax_layers import Layers, max_pool

    layers = Layers(weights, training)

    def twice(at, h):
        for i in range(2):
            h = jax.nn.relu(layers.convolution(f"{at}/{i}", h, 1, "SAME"))
        return h

    fine = twice("down/0", x)
    middle = twice("down/1", max_pool(fine))
    coarse = twice("bottom", max_pool(middle))
    middle = twice("up/1", jnp.concatenate((middle, layers.transposed_convolution("raise/1", coarse, 2)), -1))
    fine = twice("up/0", jnp.concatenate((fine, layers.transposed_convolution("raise/0", middle, 2)), -1))
    return layers.convolution("score", fine), layers.moved
