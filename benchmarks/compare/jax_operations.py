"""Single operations of JAX."""

import jax
import jax.numpy as jnp
from jax import lax
from jax_layers import convolve

import operations


def lstm(x, w, u, b):
    """Returns the last step's output."""
    z = jnp.moveaxis(x @ w + b, 1, 0)

    def step(state, z):
        h, c = state
        i, f, g, o = jnp.split(z + h @ u, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    start = jnp.zeros((x.shape[0], u.shape[0]))
    return lax.scan(step, (start, start), z)[0][0]


def normalize(x, axes, gamma, beta):
    mean, variance = jnp.mean(x, axes, keepdims=True), jnp.var(x, axes, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-3) * gamma + beta


def group_normalization(x, gamma, beta):
    channels = 8, x.shape[-1] // 8
    return normalize(x.reshape(*x.shape[:3], *channels), (1, 2, 4), gamma.reshape(channels), beta.reshape(channels)).reshape(x.shape)


def dropout(x, key=jax.random.key(1)):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 2 * x, 0)


def convolution(c):
    if c.transposed:
        return lambda x, w: lax.conv_transpose(x, jnp.swapaxes(w, 2, 3)[::-1, ::-1], (c.stride, c.stride), "VALID",
                                               dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lambda x, w: convolve(x, w, c.stride, [(c.padding, c.padding)] * 2, c.groups, c.dilation)


FUNCTIONS = {
    "matmul": lambda x, w: x @ w,
    "chain": lambda x: jnp.tanh(x * 2 + 1) * 3,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_tanh": jax.nn.gelu,
    "swish": jax.nn.silu,
    "softmax": jax.nn.softmax,
    "sum_of_rows": lambda x: x.sum(1),
    "sum_of_columns": lambda x: x.sum(0),
    "cross_entropy": lambda x: -jnp.take_along_axis(
        jax.nn.log_softmax(x), (jnp.arange(x.shape[0]) * 7919 % operations.CLASSES)[:, None], 1)[:, 0],
    "lstm": lstm,
    "batched_products": lambda x, w: x @ w,
    "maximum_of_rows": lambda x: x.max(1),
    "maximum_of_columns": lambda x: x.max(0),
    "argmax": lambda x: jnp.argmax(x, 1).astype(jnp.float32),
    "transpose": lambda x: x.T,
    "dropout": dropout,
    "embedding": lambda table, words: table[words],
    "sum": lambda x: x.sum(),
    "cumulative_sum": lambda x: jnp.cumsum(x, -1),
    "sort": lambda x: jnp.sort(x, -1),
    "sort_whole": jnp.sort,
    "top_k": lambda x: lax.top_k(x, 10)[0],
    "layer_normalization": lambda x: normalize(x, -1, 1, 0),
    "group_normalization": group_normalization,
    "batch_normalization": lambda x, gamma, beta: normalize(x, (0, 1, 2), gamma, beta),
    "attention": jax.nn.dot_product_attention,
}


def of(work, random):
    """Returns the function of an operation. Without `random`, dropout leaves out nothing."""
    if product := operations.product_of(work):
        (batch, *_), layout = product
        turned = [(lambda x: jnp.swapaxes(x, 1, 2)) if each == "t" else (lambda x: x) for each in layout]
        return lambda x, w: turned[0](x) @ turned[1](w) if batch > 1 else turned[0](x)[0] @ turned[1](w)[0]
    if work in operations.CONVOLUTIONS:
        return convolution(operations.CONVOLUTIONS[work])
    return FUNCTIONS[work] if random or work != "dropout" else lambda x: 1 * x
