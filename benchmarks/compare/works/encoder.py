"""A transformer's encoder that classifies texts (benchmarks/models/encoder.hpp)."""

from study import Study

TIME, VOCABULARY, WIDTH, HEADS, BLOCKS, CLASSES = 128, 8192, 256, 4, 4, 10
STUDY = Study(None, (TIME,), "adam", 1e-4, classes=CLASSES, vocabulary=VOCABULARY)
ROWS = ("training/1", "training/8", "training/32", "inference/1", "inference/32")


def step_flop(batch, length):
    """Of a block: 12 width^2 weights, and the scores of all pairs, two products."""
    return 3 * 2 * batch * (TIME * BLOCKS * (12 * WIDTH**2 + 2 * TIME * WIDTH) + WIDTH * CLASSES)


def torch_model(weights):
    from scopes import Scope
    from torch import nn
    from torch_layers import embedding, linear, parameter
    from torch_sequences import encoder_layer

    class Encoder(nn.Module):
        def __init__(self, scope):
            super().__init__()
            self.embedding, self.positions = embedding(scope / "embedding"), parameter(scope["positions"])
            self.blocks = nn.Sequential(*(encoder_layer(scope / "block" / i) for i in range(BLOCKS)))
            self.score = linear(scope / "score")

        def forward(self, tokens):
            return self.score(self.blocks(self.embedding(tokens) + self.positions).mean(1))

    return Encoder(Scope(weights))


def tensorflow_model(weights, x):
    import keras
    from tensorflow_layers import Named
    from tensorflow_sequences import attention, positions

    named, tokens = Named(weights), Named.input(x)
    h = named("embedding", keras.layers.Embedding(VOCABULARY, WIDTH))(tokens)
    h = positions(named, TIME, WIDTH)(h)
    for i in range(BLOCKS):
        at = f"block/{i}"
        h = named(f"{at}/norm1", keras.layers.LayerNormalization())(h + attention(named, f"{at}/attention", h, HEADS))
        wide = keras.ops.gelu(named(f"{at}/wide", keras.layers.Dense(4 * WIDTH))(h), approximate=False)
        h = named(f"{at}/norm2", keras.layers.LayerNormalization())(h + named(f"{at}/narrow", keras.layers.Dense(WIDTH))(wide))
    return named.model(tokens, named("score", keras.layers.Dense(CLASSES))(keras.ops.mean(h, 1)))


def jax_model(weights, x, training):
    import jax
    from jax_layers import Layers
    from jax_sequences import attention

    layers = Layers(weights, training)
    h = weights["embedding/embeddings"][x] + weights["positions"]
    for i in range(BLOCKS):
        at = f"block/{i}"
        h = layers.layer_normalization(f"{at}/norm1", h + attention(layers, f"{at}/attention", h))
        wide = jax.nn.gelu(layers.dense(f"{at}/wide", h), approximate=False)
        h = layers.layer_normalization(f"{at}/norm2", h + layers.dense(f"{at}/narrow", wide))
    return layers.dense("score", h.mean(1)), {}
