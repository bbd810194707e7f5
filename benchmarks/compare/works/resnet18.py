"""ResNet-18 (benchmarks/models/resnet18.hpp). Padding is the same on all sides, also with a stride."""

from study import Study

STUDY = Study(None, (32, 32, 3), "momentum", 1e-4, classes=10)
ROWS = ("inference/1", "inference/32", "training/1", "training/32", "training/128")
BLOCKS = tuple((64 << i // 2, 2 if i % 2 == 0 and i else 1) for i in range(8))  # filters, stride


def step_flop(batch, length):
    forward, side, inputs = 32 * 32 * 27 * 64, 32, 64
    for filters, stride in BLOCKS:
        side //= stride
        forward += side**2 * inputs * filters * (stride > 1) + side**2 * 9 * (inputs + filters) * filters
        inputs = filters
    return 2 * batch * (3 * (forward + 512 * 10) - 32 * 32 * 27 * 64)


def torch_model(weights):
    from scopes import Scope
    from torch import nn
    from torch_layers import batch_normalization, convolution, linear

    def convolved(scope, stride):
        taps = scope["conv/kernel"].shape[0]
        return nn.Sequential(convolution(scope / "conv", stride, taps // 2), batch_normalization(scope / "norm"))

    class Block(nn.Module):
        def __init__(self, scope, stride):
            super().__init__()
            self.inner, self.outer = convolved(scope / 0, stride), convolved(scope / 1, 1)
            self.shortcut = nn.Identity() if stride == 1 else convolved(scope / "shortcut", stride)
            self.relu = nn.ReLU()

        def forward(self, x):
            return self.relu(self.outer(self.relu(self.inner(x))) + self.shortcut(x))

    scope = Scope(weights)
    return nn.Sequential(convolved(scope / "entry", 1), nn.ReLU(),
                         *(Block(scope / "block" / i, stride) for i, (_, stride) in enumerate(BLOCKS)),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear(scope / "score"))


def tensorflow_model(weights, x):
    import keras
    from tensorflow_layers import Named

    named = Named(weights)

    def convolved(at, h, filters, taps, stride):
        if stride > 1 and taps > 1:
            h = keras.layers.ZeroPadding2D(taps // 2)(h)
        convolution = keras.layers.Conv2D(filters, taps, stride, "same" if stride == 1 else "valid", use_bias=False)
        return named(f"{at}/norm", keras.layers.BatchNormalization())(named(f"{at}/conv", convolution)(h))

    image = named.input(x)
    h = keras.activations.relu(convolved("entry", image, 64, 3, 1))
    for i, (filters, stride) in enumerate(BLOCKS):
        inner = keras.activations.relu(convolved(f"block/{i}/0", h, filters, 3, stride))
        outer = convolved(f"block/{i}/1", inner, filters, 3, 1)
        h = keras.activations.relu(outer + (h if stride == 1 else convolved(f"block/{i}/shortcut", h, filters, 1, stride)))
    return named.model(image, named("score", keras.layers.Dense(10))(keras.layers.GlobalAveragePooling2D()(h)))


def jax_model(weights, x, training):
    import jax
    from jax_layers import Layers

    layers = Layers(weights, training)

    def convolved(at, h, taps, stride):
        edge = taps // 2
        return layers.batch_normalization(f"{at}/norm", layers.convolution(f"{at}/conv", h, stride, ((edge, edge),) * 2))

    h = jax.nn.relu(convolved("entry", x, 3, 1))
    for i, (_, stride) in enumerate(BLOCKS):
        inner = jax.nn.relu(convolved(f"block/{i}/0", h, 3, stride))
        outer = convolved(f"block/{i}/1", inner, 3, 1)
        h = jax.nn.relu(outer + (h if stride == 1 else convolved(f"block/{i}/shortcut", h, 1, stride)))
    return layers.dense("score", h.mean((1, 2))), layers.moved
