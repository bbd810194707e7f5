"""A transformer that predicts characters (benchmarks/models/gpt.hpp)."""

from study import Study

TIME, WIDTH, HEADS, BLOCKS = 256, 384, 6, 6


def study_of(vocabulary):
    return Study(None, (TIME,), "adam", 1e-4, classes=vocabulary, vocabulary=vocabulary, successors=True)


def flop_of(vocabulary, batch):
    """Of a block: 12 width^2 weights, and the scores of all pairs, two products."""
    return 3 * 2 * batch * TIME * (BLOCKS * (12 * WIDTH**2 + 2 * TIME * WIDTH) + WIDTH * vocabulary)


STUDY = study_of(65)
ROWS = ("training/1", "training/8", "inference/1", "inference/8")


def step_flop(batch, length):
    return flop_of(65, batch)


def torch_model(weights):
    from scopes import Scope
    from torch import nn
    from torch_layers import embedding, layer_normalization, linear, parameter
    from torch_sequences import Attention

    class Decoder(nn.Module):
        def __init__(self, scope):
            super().__init__()
            self.norm1, self.norm2 = layer_normalization(scope / "norm1"), layer_normalization(scope / "norm2")
            self.attention = Attention(scope / "attention")
            self.wide, self.narrow = linear(scope / "wide"), linear(scope / "narrow")

        def forward(self, x, *attend):
            x = x + self.attention(self.norm1(x), *attend)
            return x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self, scope):
            super().__init__()
            self.embedding, self.positions = embedding(scope / "embedding"), parameter(scope["positions"])
            self.blocks = nn.Sequential(*(Decoder(scope / "block" / i) for i in range(BLOCKS)))
            self.norm, self.next = layer_normalization(scope / "norm"), linear(scope / "next")

        def forward(self, characters):
            return self.next(self.norm(self.blocks(self.embedding(characters) + self.positions))).flatten(0, 1)

    return Gpt(Scope(weights))


def tensorflow_model(weights, x):
    import keras
    from tensorflow_layers import Named
    from tensorflow_sequences import attention, positions

    named, characters = Named(weights), Named.input(x)
    vocabulary = weights["next/bias"].size
    h = named("embedding", keras.layers.Embedding(vocabulary, WIDTH))(characters)
    h = positions(named, TIME, WIDTH)(h)
    for i in range(BLOCKS):
        at = f"block/{i}"
        seen = named(f"{at}/norm1", keras.layers.LayerNormalization())(h)
        h = h + attention(named, f"{at}/attention", seen, HEADS, causal=True)
        wide = named(f"{at}/wide", keras.layers.Dense(4 * WIDTH))(named(f"{at}/norm2", keras.layers.LayerNormalization())(h))
        h = h + named(f"{at}/narrow", keras.layers.Dense(WIDTH))(keras.ops.gelu(wide, approximate=True))
    scores = named("next", keras.layers.Dense(vocabulary))(named("norm", keras.layers.LayerNormalization())(h))
    return named.model(characters, keras.ops.reshape(scores, (-1, vocabulary)))


def jax_logits(weights, characters, positions, attend=lambda i: None):
    """`positions` are the rows of the table that belong to the characters; `attend(i)` is how block
    i attends, None to the whole text."""
    import jax
    from jax_layers import Layers
    from jax_sequences import attention

    layers = Layers(weights, False)
    h = weights["embedding/embeddings"][characters] + positions
    for i in range(BLOCKS):
        at = f"block/{i}"
        h = h + attention(layers, f"{at}/attention", layers.layer_normalization(f"{at}/norm1", h), attend(i), causal=True)
        wide = layers.dense(f"{at}/wide", layers.layer_normalization(f"{at}/norm2", h))
        h = h + layers.dense(f"{at}/narrow", jax.nn.gelu(wide, approximate=True))
    scores = layers.dense("next", layers.layer_normalization("norm", h))
    return scores.reshape(-1, scores.shape[-1])


def jax_model(weights, x, training):
    return jax_logits(weights, x, weights["positions"]), {}
