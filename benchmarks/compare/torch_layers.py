"""Layers of PyTorch that have our weights."""

import torch
from torch import nn


def parameter(values):
    return nn.Parameter(torch.from_numpy(values.copy()))


def linear(scope):
    kernel = scope["kernel"]
    layer = nn.Linear(*kernel.shape, bias="bias" in scope)
    layer.weight = parameter(kernel.T)
    if "bias" in scope:
        layer.bias = parameter(scope["bias"])
    return layer


def convolution(scope, stride=1, padding=0, groups=1, dilation=1):
    """Of two axes, on channels first."""
    kernel = scope["kernel"]
    height, width, inputs, outputs = kernel.shape
    layer = nn.Conv2d(inputs * groups, outputs, (height, width), stride, padding, dilation, groups, bias="bias" in scope)
    layer.weight = parameter(kernel.transpose(3, 2, 0, 1))
    if "bias" in scope:
        layer.bias = parameter(scope["bias"])
    return layer


def batch_normalization(scope, rank=2):
    """With our defaults, which are those of Keras."""
    gamma = scope["gamma"]
    layer = (nn.BatchNorm1d if rank == 0 else nn.BatchNorm2d)(gamma.size, eps=1e-3, momentum=0.01)
    layer.weight, layer.bias = parameter(gamma), parameter(scope["beta"])
    return layer


def layer_normalization(scope):
    layer = nn.LayerNorm(scope["gamma"].size, eps=1e-3)
    layer.weight, layer.bias = parameter(scope["gamma"]), parameter(scope["beta"])
    return layer


def embedding(scope):
    table = scope["embeddings"]
    layer = nn.Embedding(*table.shape)
    layer.weight = parameter(table)
    return layer


def depthwise_convolution(scope, stride=1, padding=0):
    kernel = scope["kernel"]
    taps, _, channels, each = kernel.shape
    layer = nn.Conv2d(channels, channels * each, taps, stride, padding, groups=channels, bias="bias" in scope)
    layer.weight = parameter(kernel.transpose(2, 3, 0, 1).reshape(channels * each, 1, taps, taps))
    return layer


def transposed_convolution(scope, stride):
    kernel = scope["kernel"]
    taps, _, outputs, inputs = kernel.shape
    layer = nn.ConvTranspose2d(inputs, outputs, taps, stride)
    layer.weight, layer.bias = parameter(kernel.transpose(3, 2, 0, 1)), parameter(scope["bias"])
    return layer
