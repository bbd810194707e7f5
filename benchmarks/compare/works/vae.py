"""A variational autoencoder whose noise is an input (benchmarks/models/vae.hpp)."""

from study import Study, noise

PIXELS, HIDDEN, LATENT = 784, 400, 20


class Images(Study):
    def data(self, batch, length):
        image = noise((batch, PIXELS), 0.5) + noise((1,), 0).dtype.type(0.5)
        return (image, noise((batch, LATENT), 1)), image


STUDY = Images(None, (PIXELS,), "adam", 1e-4)
ROWS = tuple(f"{kind}/{batch}" for kind in ("training", "inference") for batch in (1, 32, 128, 1024))


def step_flop(batch, length):
    first = PIXELS * HIDDEN
    return 2 * batch * (3 * (2 * first + 3 * HIDDEN * LATENT) - first)


def torch_model(weights):
    import torch
    from scopes import Scope
    from torch import nn
    from torch_layers import linear

    class Vae(nn.Module):
        """Returns the logits of the image; in training, the divergence, too."""

        def __init__(self, scope):
            super().__init__()
            self.encoder, self.mean, self.log_variance = (linear(scope / name) for name in ("encoder", "mean", "log_variance"))
            self.decoder, self.image = linear(scope / "decoder"), linear(scope / "image")

        def forward(self, image, noise):
            h = torch.relu(self.encoder(image))
            mean, log_variance = self.mean(h), self.log_variance(h)
            back = self.image(torch.relu(self.decoder(mean + torch.exp(0.5 * log_variance) * noise)))
            if not self.training:
                return back
            return back, -0.5 / PIXELS * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1).mean()

    return Vae(Scope(weights))


def torch_loss(value, x, y):
    from torch import nn

    return nn.functional.binary_cross_entropy_with_logits(value[0], y) + value[1]


def tensorflow_model(weights, x):
    import keras
    from keras import ops
    from tensorflow_layers import Named

    named = Named(weights)

    class Divergence(keras.layers.Layer):
        def call(self, mean, log_variance):
            self.add_loss(-0.5 / PIXELS * ops.mean(ops.sum(1 + log_variance - ops.square(mean) - ops.exp(log_variance), -1)))
            return mean

    image, noise = (named.input(each) for each in x)
    h = named("encoder", keras.layers.Dense(HIDDEN, activation="relu"))(image)
    mean, log_variance = (named(name, keras.layers.Dense(LATENT))(h) for name in ("mean", "log_variance"))
    code = Divergence()(mean, log_variance) + ops.exp(0.5 * log_variance) * noise
    h = named("decoder", keras.layers.Dense(HIDDEN, activation="relu"))(code)
    return named.model([image, noise], named("image", keras.layers.Dense(PIXELS))(h))


def jax_model(weights, x, training):
    import jax
    import jax.numpy as jnp
    from jax_layers import Layers

    layers, (image, noise) = Layers(weights, training), x
    h = jax.nn.relu(layers.dense("encoder", image))
    mean, log_variance = layers.dense("mean", h), layers.dense("log_variance", h)
    back = layers.dense("image", jax.nn.relu(layers.dense("decoder", mean + jnp.exp(0.5 * log_variance) * noise)))
    if not training:
        return back, {}
    return (back, -0.5 / PIXELS * (1 + log_variance - mean**2 - jnp.exp(log_variance)).sum(-1).mean()), {}


def jax_loss(value, x, y):
    import jax
    import jax.numpy as jnp

    scores, divergence = value
    return jnp.mean(jax.nn.relu(scores) - scores * y + jnp.log1p(jnp.exp(-jnp.abs(scores)))) + divergence
