"""The models whose layers are no chain, in PyTorch with our weights: ResNet-18 and a transformer
(benchmarks/models)."""

import torch
from torch import nn


def parameter(values):
    return nn.Parameter(torch.from_numpy(values.copy()))


class Weights:
    """The weights of a scope: {"kernel": array}."""

    def __init__(self, values, path=""):
        self.values, self.path = values, path

    def __getitem__(self, name):
        return self.values[self.path + name]

    def __truediv__(self, name):
        return Weights(self.values, f"{self.path}{name}/")


class Convolved(nn.Sequential):
    def __init__(self, weights, stride):
        kernel = weights["conv/kernel"]
        taps, _, inputs, outputs = kernel.shape
        convolution = nn.Conv2d(inputs, outputs, taps, stride, taps // 2, bias=False)
        convolution.weight = parameter(kernel.transpose(3, 2, 0, 1))
        super().__init__(convolution, nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01))


class Block(nn.Module):
    def __init__(self, weights, stride):
        super().__init__()
        self.inner, self.outer = Convolved(weights / 0, stride), Convolved(weights / 1, 1)
        self.shortcut = nn.Identity() if stride == 1 else Convolved(weights / "shortcut", stride)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.outer(self.relu(self.inner(x))) + self.shortcut(x))


def linear(weights):
    kernel = weights["kernel"]
    layer = nn.Linear(*kernel.shape)
    layer.weight, layer.bias = parameter(kernel.T), parameter(weights["bias"])
    return layer


class Resnet18(nn.Sequential):
    def __init__(self, weights):
        super().__init__(Convolved(weights / "entry", 1), nn.ReLU(),
                         *(Block(weights / "block" / i, 2 if i % 2 == 0 and i > 0 else 1) for i in range(8)),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear(weights / "score"))


def normalization(weights):
    layer = nn.LayerNorm(weights["gamma"].size, eps=1e-3)
    layer.weight, layer.bias = parameter(weights["gamma"]), parameter(weights["beta"])
    return layer


class Attention(nn.Module):
    """Causal attention. One product for query, key and value, as is usual in PyTorch code written
    by hand."""

    def __init__(self, weights):
        super().__init__()
        parts = [weights / part for part in ("query", "key", "value")]
        width, self.heads, _ = parts[0]["kernel"].shape
        self.all, self.last = nn.Linear(width, 3 * width), nn.Linear(width, width)
        with torch.no_grad():
            for i, part in enumerate(parts):
                rows = slice(i * width, (i + 1) * width)
                self.all.weight[rows] = torch.from_numpy(part["kernel"].reshape(width, width).T.copy())
                self.all.bias[rows] = torch.from_numpy(part["bias"].reshape(width).copy())
        last = weights / "attention_output"
        self.last.weight, self.last.bias = parameter(last["kernel"].reshape(width, width).T), parameter(last["bias"])

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = (each.view(batch, time, self.heads, -1).transpose(1, 2) for each in self.all(x).split(width, dim=2))
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.last(seen.transpose(1, 2).reshape(batch, time, width))


class Decoder(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.norm1, self.norm2 = normalization(weights / "norm1"), normalization(weights / "norm2")
        self.attention = Attention(weights / "attention")
        self.wide, self.narrow = linear(weights / "wide"), linear(weights / "narrow")

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, weights):
        super().__init__()
        table = weights["embedding/embeddings"]
        self.embedding = nn.Embedding(*table.shape)
        self.embedding.weight, self.positions = parameter(table), parameter(weights["positions"])
        self.blocks = nn.Sequential(*(Decoder(weights / "block" / i) for i in range(6)))
        self.norm, self.next = normalization(weights / "norm"), linear(weights / "next")

    def forward(self, characters):
        return self.next(self.norm(self.blocks(self.embedding(characters) + self.positions))).flatten(0, 1)


def make(work, values):
    return {"resnet18": Resnet18, "gpt": Gpt}[work](Weights(values))
