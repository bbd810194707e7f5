"""MobileNetV2 on small images (benchmarks/models/mobilenet_v2.hpp)."""

from study import Study

STUDY = Study(None, (32, 32, 3), "momentum", 1e-6, classes=10)
ROWS = tuple(f"{kind}/{batch}" for kind in ("training", "inference") for batch in (1, 32, 128))
STAGES = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def blocks():
    """Returns expansion, channels, filters and stride of each block."""
    made, channels = [], 32
    for expansion, filters, count, stride in STAGES:
        for i in range(count):
            made.append((expansion, channels, filters, stride if i == 0 else 1))
            channels = filters
    return made


def step_flop(batch, length):
    first, side = 32 * 32 * 27 * 32, 32
    forward = first
    for expansion, channels, filters, stride in blocks():
        wide = expansion * channels
        forward += side**2 * channels * wide * (expansion > 1)
        side //= stride
        forward += side**2 * wide * (9 + filters)
    forward += side**2 * 320 * 1280 + 1280 * 10
    return 2 * batch * (3 * forward - first)


def torch_model(weights):
    from scopes import Scope
    from torch import nn
    from torch_layers import batch_normalization, convolution, depthwise_convolution, linear

    def convolved(scope, relu=True):
        taps = scope["conv/kernel"].shape[0]
        layers = [convolution(scope / "conv", 1, taps // 2), batch_normalization(scope / "norm")]
        return nn.Sequential(*layers, *([nn.ReLU6()] if relu else []))

    class Block(nn.Module):
        def __init__(self, scope, expansion, channels, filters, stride):
            super().__init__()
            self.kept = stride == 1 and channels == filters
            deep = scope / "depthwise"
            self.layers = nn.Sequential(*([convolved(scope / "expand")] if expansion > 1 else []),
                                        depthwise_convolution(deep / "conv", stride, 1), batch_normalization(deep / "norm"),
                                        nn.ReLU6(), convolved(scope / "project", False))

        def forward(self, x):
            return x + self.layers(x) if self.kept else self.layers(x)

    scope = Scope(weights)
    return nn.Sequential(convolved(scope / "entry"), *(Block(scope / "block" / i, *each) for i, each in enumerate(blocks())),
                         convolved(scope / "exit"), nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear(scope / "score"))


def tensorflow_model(weights, x):
    import keras
    from tensorflow_layers import Named

    named, relu6 = Named(weights), keras.activations.relu6

    def convolved(at, h, filters, taps):
        h = named(f"{at}/conv", keras.layers.Conv2D(filters, taps, padding="same", use_bias=False))(h)
        return named(f"{at}/norm", keras.layers.BatchNormalization())(h)

    image = named.input(x)
    h = relu6(convolved("entry", image, 32, 3))
    for i, (expansion, channels, filters, stride) in enumerate(blocks()):
        at = f"block/{i}"
        wide = relu6(convolved(f"{at}/expand", h, expansion * channels, 1)) if expansion > 1 else h
        if stride > 1:
            wide = keras.layers.ZeroPadding2D(1)(wide)
        deep = keras.layers.DepthwiseConv2D(3, stride, "same" if stride == 1 else "valid", use_bias=False)
        seen = relu6(named(f"{at}/depthwise/norm", keras.layers.BatchNormalization())(named(f"{at}/depthwise/conv", deep)(wide)))
        narrow = convolved(f"{at}/project", seen, filters, 1)
        h = h + narrow if stride == 1 and channels == filters else narrow
    h = keras.layers.GlobalAveragePooling2D()(relu6(convolved("exit", h, 1280, 1)))
    return named.model(image, named("score", keras.layers.Dense(10))(h))


def jax_model(weights, x, training):
    import jax
    from jax_layers import Layers

    layers, relu6, edges = Layers(weights, training), jax.nn.relu6, ((1, 1), (1, 1))

    def convolved(at, h):
        return layers.batch_normalization(f"{at}/norm", layers.convolution(f"{at}/conv", h, 1, "SAME"))

    h = relu6(convolved("entry", x))
    for i, (expansion, channels, filters, stride) in enumerate(blocks()):
        at = f"block/{i}"
        wide = relu6(convolved(f"{at}/expand", h)) if expansion > 1 else h
        spread = layers.depthwise_convolution(f"{at}/depthwise/conv", wide, stride, edges)
        narrow = convolved(f"{at}/project", relu6(layers.batch_normalization(f"{at}/depthwise/norm", spread)))
        h = h + narrow if stride == 1 and channels == filters else narrow
    return layers.dense("score", relu6(convolved("exit", h)).mean((1, 2))), layers.moved
