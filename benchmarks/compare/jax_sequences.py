"""Layers of sequences of JAX, as functions of our weights."""

import jax
import jax.numpy as jnp
from jax import lax


def heads(layers, at, x):
    weights = layers.weights
    return jnp.einsum("btf,fhd->bthd", x, weights[f"{at}/kernel"]) + weights[f"{at}/bias"]


def attention(layers, at, x, attend=None, causal=False):
    """Of a sequence to itself. `attend` takes the place of attention to all keys."""
    q, k, v = (heads(layers, f"{at}/{part}", x) for part in ("query", "key", "value"))
    seen = attend(q, k, v) if attend else jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    output = f"{at}/attention_output"
    return jnp.einsum("bthd,hdf->btf", seen, layers.weights[f"{output}/kernel"]) + layers.weights[f"{output}/bias"]


def lstm(weights, at, x, backward=False):
    """All steps, [batch, time, units]."""
    u = weights[f"{at}/recurrent_kernel"]
    z = jnp.moveaxis(x @ weights[f"{at}/kernel"] + weights[f"{at}/bias"], 1, 0)

    def step(state, z):
        h, c = state
        i, f, g, o = jnp.split(z + h @ u, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((x.shape[0], u.shape[0]))
    return jnp.moveaxis(lax.scan(step, (start, start), z, reverse=backward)[1], 0, 1)


def gru(weights, at, x):
    """All steps, [batch, time, units]."""
    u, bias = weights[f"{at}/recurrent_kernel"], weights[f"{at}/bias"]
    z = jnp.moveaxis(x @ weights[f"{at}/kernel"] + bias[0], 1, 0)

    def step(h, z):
        update, reset, new = jnp.split(z, 3, -1)
        kept_update, kept_reset, kept_new = jnp.split(h @ u + bias[1], 3, -1)
        update = jax.nn.sigmoid(update + kept_update)
        h = update * h + (1 - update) * jnp.tanh(new + jax.nn.sigmoid(reset + kept_reset) * kept_new)
        return h, h

    return jnp.moveaxis(lax.scan(step, jnp.zeros((x.shape[0], u.shape[0])), z)[1], 0, 1)
