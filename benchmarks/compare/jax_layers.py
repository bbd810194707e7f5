"""Layers of JAX, as functions of our weights."""

import jax.numpy as jnp
from jax import lax


def convolve(x, w, stride=1, padding="VALID", groups=1, dilation=1):
    spatial = "HW"[2 - (x.ndim - 2):]
    return lax.conv_general_dilated(x, w, (stride,) * len(spatial), padding, rhs_dilation=(dilation,) * len(spatial),
                                    dimension_numbers=(f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"),
                                    feature_group_count=groups)


def normalize(x, values, training):
    if not training:
        mean, variance = values["moving_mean"], values["moving_variance"]
    else:
        axes = tuple(range(x.ndim - 1))
        mean, variance = jnp.mean(x, axes), jnp.var(x, axes)
    moved = {key: 0.99 * values[key] + 0.01 * now for key, now in (("moving_mean", mean), ("moving_variance", variance))}
    return (x - mean) * (values["gamma"] * lax.rsqrt(variance + 1e-3)) + values["beta"], moved


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


class Layers:
    """The layers of a model whose weights are {path: value}. `moved` collects the moving averages
    that training changes."""

    def __init__(self, weights, training):
        self.weights, self.training, self.moved = weights, training, {}

    def biased(self, name, y):
        return y + self.weights[f"{name}/bias"] if f"{name}/bias" in self.weights else y

    def dense(self, name, x):
        return self.biased(name, x @ self.weights[f"{name}/kernel"])

    def convolution(self, name, x, stride=1, padding="VALID", groups=1, dilation=1):
        return self.biased(name, convolve(x, self.weights[f"{name}/kernel"], stride, padding, groups, dilation))

    def batch_normalization(self, name, x):
        names = ("gamma", "beta", "moving_mean", "moving_variance")
        y, changed = normalize(x, {each: self.weights[f"{name}/{each}"] for each in names}, self.training)
        if self.training:
            self.moved.update({f"{name}/{each}": value for each, value in changed.items()})
        return y

    def layer_normalization(self, name, x):
        mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-3) * self.weights[f"{name}/gamma"] + self.weights[f"{name}/beta"]

    def depthwise_convolution(self, name, x, stride=1, padding="VALID"):
        kernel = self.weights[f"{name}/kernel"]
        height, width, channels, each = kernel.shape
        return self.biased(name, convolve(x, kernel.reshape(height, width, 1, channels * each), stride, padding, channels))

    def transposed_convolution(self, name, x, stride):
        kernel = jnp.swapaxes(self.weights[f"{name}/kernel"], 2, 3)
        return self.biased(name, lax.conv_transpose(x, kernel[::-1, ::-1], (stride, stride), "VALID",
                                                    dimension_numbers=("NHWC", "HWIO", "NHWC")))
