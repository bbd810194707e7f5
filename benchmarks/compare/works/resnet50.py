"""ResNet-50 (benchmarks/models/resnet50.hpp). Padding is the same on all sides, also with a stride."""

from study import Study

STUDY = Study(None, (224, 224, 3), "momentum", 1e-8, classes=1000)
ROWS = ("inference/1", "inference/8", "training/1", "training/8")
# filters, stride, and whether a convolution stands beside the block
BLOCKS = tuple((64 << stage, 2 if i == 0 and stage else 1, i == 0) for stage, count in enumerate((3, 4, 6, 3)) for i in range(count))


def step_flop(batch, length):
    first, side, inputs = 112 * 112 * 49 * 3 * 64, 56, 64
    forward = first
    for filters, stride, changes in BLOCKS:
        forward += side**2 * inputs * filters
        side //= stride
        forward += side**2 * filters * (9 * filters + 4 * filters + 4 * inputs * changes)
        inputs = 4 * filters
    return 2 * batch * (3 * (forward + 2048 * 1000) - first)


def torch_model(weights):
    from scopes import Scope
    from torch import nn
    from torch_layers import batch_normalization, convolution, linear

    def convolved(scope, stride=1):
        taps = scope["conv/kernel"].shape[0]
        return nn.Sequential(convolution(scope / "conv", stride, taps // 2), batch_normalization(scope / "norm"))

    class Block(nn.Module):
        def __init__(self, scope, stride, changes):
            super().__init__()
            self.narrow, self.seen, self.wide = convolved(scope / 0), convolved(scope / 1, stride), convolved(scope / 2)
            self.shortcut = convolved(scope / "shortcut", stride) if changes else nn.Identity()
            self.relu = nn.ReLU()

        def forward(self, x):
            return self.relu(self.wide(self.relu(self.seen(self.relu(self.narrow(x))))) + self.shortcut(x))

    scope = Scope(weights)
    return nn.Sequential(convolved(scope / "entry", 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         *(Block(scope / "block" / i, stride, changes) for i, (_, stride, changes) in enumerate(BLOCKS)),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear(scope / "score"))


def tensorflow_model(weights, x):
    import keras
    from tensorflow_layers import Named

    named, relu = Named(weights), keras.activations.relu

    def convolved(at, h, filters, taps=1, stride=1):
        if stride > 1 and taps > 1:
            h = keras.layers.ZeroPadding2D(taps // 2)(h)
        convolution = keras.layers.Conv2D(filters, taps, stride, "same" if stride == 1 else "valid", use_bias=False)
        return named(f"{at}/norm", keras.layers.BatchNormalization())(named(f"{at}/conv", convolution)(h))

    image = named.input(x)
    # Values behind relu are not negative, so zeros around them change no maximum.
    h = keras.layers.MaxPooling2D(3, 2)(keras.layers.ZeroPadding2D(1)(relu(convolved("entry", image, 64, 7, 2))))
    for i, (filters, stride, changes) in enumerate(BLOCKS):
        at = f"block/{i}"
        seen = relu(convolved(f"{at}/1", relu(convolved(f"{at}/0", h, filters)), filters, 3, stride))
        h = relu(convolved(f"{at}/2", seen, 4 * filters) + (convolved(f"{at}/shortcut", h, 4 * filters, 1, stride) if changes else h))
    return named.model(image, named("score", keras.layers.Dense(1000))(keras.layers.GlobalAveragePooling2D()(h)))


def jax_model(weights, x, training):
    import jax
    import jax.numpy as jnp
    from jax_layers import Layers

    layers, relu = Layers(weights, training), jax.nn.relu

    def convolved(at, h, taps=1, stride=1):
        edge = taps // 2
        return layers.batch_normalization(f"{at}/norm", layers.convolution(f"{at}/conv", h, stride, ((edge, edge),) * 2))

    h = relu(convolved("entry", x, 7, 2))
    h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    for i, (_, stride, changes) in enumerate(BLOCKS):
        at = f"block/{i}"
        seen = relu(convolved(f"{at}/1", relu(convolved(f"{at}/0", h)), 3, stride))
        h = relu(convolved(f"{at}/2", seen) + (convolved(f"{at}/shortcut", h, 1, stride) if changes else h))
    return layers.dense("score", h.mean((1, 2))), layers.moved
