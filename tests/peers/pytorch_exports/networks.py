"""The networks whose exports pytorch_exports.py loads: each with a function that makes its inputs for a batch, and its axes without a number."""

import math

import torch
from torch import nn
from torch.nn import functional as F

try:
    import torchvision
    from torchvision import models as vision
except (ImportError, OSError):
    torchvision = None

BATCH = {0: "batch"}


class Case:
    """`inputs(n)` are the inputs of a batch of n; `axes` says which axes of them have no number."""

    def __init__(self, module, inputs, axes=BATCH):
        self.module, self.inputs, self.axes = module.eval(), inputs, axes


def images(channels, size):
    return lambda n: (torch.randn(n, channels, size, size),)


def rows(*dims):
    return lambda n: (torch.randn(n, *dims),)


def tokens(length, vocabulary):
    return lambda n: (torch.randint(0, vocabulary, (n, length)),)


class RmsNorm(nn.Module):
    """nn.RMSNorm's formula: the older exporter does not know the module."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def mlp():
    return nn.Sequential(nn.Linear(13, 32), nn.GELU(), nn.BatchNorm1d(32), nn.Dropout(), nn.Linear(32, 7), nn.LogSoftmax(-1))


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Linear(256, 84), nn.Tanh(), nn.Linear(84, 10))

    def forward(self, x):
        return self.head(self.body(x).view(x.size(0), -1))


def vgg():
    layers, c = [], 3
    for width in [8, 0, 16, 0, 32, 32, 0]:
        layers += [nn.MaxPool2d(2, 2)] if width == 0 else [nn.Conv2d(c, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(True)]
        c = width or c
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(), nn.Linear(128, 64), nn.ReLU(True), nn.Linear(64, 10))


class Unet(nn.Module):
    def __init__(self, transposed):
        super().__init__()
        def block(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())
        self.down = nn.ModuleList([block(3, 8), block(8, 16), block(16, 32)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)] if transposed else
                                [nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(32, 16, 1)),
                                 nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(16, 8, 1))])
        self.join = nn.ModuleList([block(32, 16), block(16, 8)])
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](F.max_pool2d(a, 2))
        h = self.down[2](F.max_pool2d(b, 2))
        h = self.join[0](torch.cat([self.up[0](h), b], 1))
        h = self.join[1](torch.cat([self.up[1](h), a], 1))
        return torch.sigmoid(self.out(h))


class Resized(nn.Module):
    """U-Nets of odd images: sizes of one value are those of another."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, x):
        h = F.interpolate(self.down(x), size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.up(h) + F.interpolate(x, scale_factor=1.0, mode="nearest") + F.adaptive_avg_pool2d(x, 1)


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 17, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True, norm_first=True)
        self.body, self.norm, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(x.shape[0], -1, -1), h], 1) + self.places
        return self.head(self.norm(self.body(h))[:, 0])


class Attended(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x):
        return self.layer(x, x, x, need_weights=True)


class Seq2seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.body = nn.Transformer(16, 2, 2, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 50)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.head(self.body(self.table(source), self.table(target), tgt_mask=mask, tgt_is_causal=True))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.places = nn.Embedding(100, 32, padding_idx=0), nn.Embedding(64, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 5)

    def forward(self, ids):
        keep = ids != 0
        keep[:, 0] = True
        h = self.table(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        h = self.body(h, src_key_padding_mask=~keep)
        weight = keep.unsqueeze(-1).float()
        return self.head((h * weight).sum(1) / weight.sum(1).clamp(min=1))


class Gpt(nn.Module):
    """GPT-2's blocks: one matrix for queries, keys and values, scaled_dot_product_attention, the table tied to the scores."""

    def __init__(self, width=32, heads=4, blocks=2, vocabulary=97, places=64):
        super().__init__()
        self.heads = heads
        self.table, self.places = nn.Embedding(vocabulary, width), nn.Embedding(places, width)
        self.blocks = nn.ModuleList([nn.ModuleDict({
            "first": nn.LayerNorm(width), "parts": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
            "second": nn.LayerNorm(width), "wide": nn.Linear(width, 4 * width), "narrow": nn.Linear(4 * width, width)}) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        b, t = ids.shape
        h = self.table(ids) + self.places(torch.arange(t, device=ids.device))
        for block in self.blocks:
            q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in block["parts"](block["first"](h)).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + block["out"](a.transpose(1, 2).reshape(b, t, -1))
            h = h + block["narrow"](F.gelu(block["wide"](block["second"](h)), approximate="tanh"))
        return self.head(self.norm(h))


class Llama(nn.Module):
    """Rotary positions, groups of heads, RMSNorm, gated layers, a mask made by triu."""

    def __init__(self, width=32, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.head_dim = heads, groups, width // heads
        self.table, self.norm, self.last = nn.Embedding(61, width), RmsNorm(width), RmsNorm(width)
        self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * groups * self.head_dim, bias=False)
        self.gate, self.up, self.down = (nn.Linear(width, 48, bias=False), nn.Linear(width, 48, bias=False), nn.Linear(48, width, bias=False))
        self.register_buffer("frequencies", 10000.0 ** -(torch.arange(0, self.head_dim, 2) / self.head_dim))

    def turned(self, x):
        angle = torch.arange(x.shape[2]).float()[:, None] * self.frequencies
        angle = torch.cat([angle, angle], -1)
        a, b = x.chunk(2, -1)
        return x * angle.cos() + torch.cat([-b, a], -1) * angle.sin()

    def forward(self, ids):
        h = self.table(ids)
        b, t, _ = h.shape
        n = self.norm(h)
        q = self.q(n).view(b, t, self.heads, self.head_dim).transpose(1, 2)
        k, v = (p.view(b, t, self.groups, self.head_dim).transpose(1, 2) for p in self.kv(n).chunk(2, -1))
        k, v = (p.repeat_interleave(self.heads // self.groups, 1) for p in (self.turned(k), v))
        scores = self.turned(q) @ k.transpose(-1, -2) / math.sqrt(self.head_dim)
        scores = scores + torch.triu(torch.full((t, t), float("-inf")), 1)
        h = h + (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, -1)
        n = self.last(h)
        return h + self.down(F.silu(self.gate(n)) * self.up(n))


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(layer.hidden_size * (2 if layer.bidirectional else 1), 3)

    def forward(self, x):
        h, _ = self.layer(x)
        return self.head(h[:, -1])


class AttentiveLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.memory = nn.Embedding(40, 12), nn.LSTM(12, 10, 2, batch_first=True, bidirectional=True)
        self.score, self.head = nn.Linear(20, 1), nn.Linear(20, 4)

    def forward(self, ids):
        h, (last, cell) = self.memory(self.table(ids))
        weights = torch.softmax(self.score(torch.tanh(h)), 1)
        return self.head((weights * h).sum(1)), last[-1], cell[0]


class CellLoop(nn.Module):
    """A cell in a loop of Python, which exporters unroll."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(5, 6), nn.Linear(6, 2)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 6)
        for t in range(4):
            h = self.cell(x[:, t], h)
        return self.head(h)


class Tcn(nn.Module):
    """Causal convolutions over time, dilated, with a residual path."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.utils.parametrizations.weight_norm(nn.Conv1d(4 if i == 0 else 8, 8, 3, dilation=2 ** i)) for i in range(3)])
        self.skip, self.head = nn.Conv1d(4, 8, 1), nn.Linear(8, 2)

    def forward(self, x):
        h = x
        for i, layer in enumerate(self.layers):
            next_one = torch.relu(layer(F.pad(h, (2 * 2 ** i, 0))))
            h = next_one + (self.skip(h) if i == 0 else h)
        return self.head(h[:, :, -1])


def autoencoder():
    return nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 49, 10),
                         nn.Linear(10, 8 * 49), nn.Unflatten(1, (8, 7, 7)), nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1), nn.ReLU(),
                         nn.ConvTranspose2d(4, 1, 3, 2, 1, output_padding=1), nn.Sigmoid())


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean, self.spread, self.back = nn.Linear(20, 16), nn.Linear(16, 4), nn.Linear(16, 4), nn.Linear(4, 20)

    def forward(self, x, noise):
        h = F.softplus(self.body(x))
        mean, spread = self.mean(h), self.spread(h)
        return torch.sigmoid(self.back(mean + noise * torch.exp(0.5 * spread))), mean, spread


def generator():
    layers, c = [], 10
    for width in [32, 16, 8]:
        layers += [nn.ConvTranspose2d(c, width, 4, 1 if c == 10 else 2, 0 if c == 10 else 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
        c = width
    return nn.Sequential(*layers, nn.ConvTranspose2d(c, 3, 4, 2, 1, bias=False), nn.Tanh())


def discriminator():
    layers, c = [], 3
    for width in [8, 16, 32]:
        layers += [nn.utils.spectral_norm(nn.Conv2d(c, width, 4, 2, 1, bias=False)), nn.BatchNorm2d(width), nn.LeakyReLU(0.2, True)]
        c = width
    return nn.Sequential(*layers, nn.Conv2d(c, 1, 4, 1, 0, bias=False), nn.Flatten(), nn.Sigmoid())


def sharper():
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.PReLU(16), nn.Conv2d(16, 9, 3, padding=1, padding_mode="reflect"), nn.PixelShuffle(3),
                         nn.PixelUnshuffle(3), nn.Conv2d(9, 9, 1), nn.PixelShuffle(3))


class Normalizations(nn.Module):
    def __init__(self, rms):
        super().__init__()
        self.layers = nn.Sequential(nn.GroupNorm(4, 8), nn.Conv2d(8, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.SiLU(), nn.InstanceNorm2d(8),
                                    nn.LayerNorm([8, 6, 6]), nn.LocalResponseNorm(3), nn.GroupNorm(1, 8), nn.Mish())
        self.rms, self.plain = rms(6), nn.LayerNorm(6, elementwise_affine=False)

    def forward(self, x):
        return F.normalize(self.plain(self.rms(self.layers(x))), dim=1)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.mean, self.head = nn.EmbeddingBag(30, 6, mode="sum"), nn.EmbeddingBag(30, 6, mode="mean"), nn.Linear(12, 3)

    def forward(self, ids):
        return self.head(torch.cat([self.bag(ids), self.mean(ids)], 1))


class Experts(nn.Module):
    """The best two of four experts for each token, found by topk, spread by scatter, read by gather."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.first, self.second = nn.Parameter(torch.randn(4, 8, 16) * 0.3), nn.Parameter(torch.randn(4, 16, 8) * 0.3)

    def forward(self, x):
        best, places = torch.topk(self.router(x), 2, -1)
        weights = torch.zeros(x.shape[0], x.shape[1], 4).scatter(2, places, torch.softmax(best, -1))
        h = torch.relu(torch.einsum("btd,edh->bteh", x, self.first))
        y = torch.einsum("bteh,ehd->bted", h, self.second)
        chosen = torch.gather(y, 2, places.unsqueeze(-1).expand(-1, -1, -1, 8))
        return (y * weights.unsqueeze(-1)).sum(2) + chosen.mean(2)


class Indexing(nn.Module):
    """What forward methods do between layers."""

    def forward(self, x, mask):
        rows = torch.arange(x.shape[1])
        h = torch.where(mask.unsqueeze(-1), x, torch.full_like(x, -2.0)).masked_fill(x > 2, 0.5)
        h = torch.cat([h[:, ::2], h.flip(1)[:, 1:], h[:, rows % 3 == 1]], 1).roll(1, 1)
        h = h.cumsum(1) + torch.clamp(h, -1, 1).std(-1, keepdim=True) + h.amax(-1, keepdim=True)
        h = torch.stack(h.unbind(-1)[:3], 1).pow(2).sum(1, keepdim=True).sqrt() * h.new_ones(1, 1, 1)
        return h.permute(0, 2, 1).contiguous(), h.argmax(2), torch.tril(x @ x.transpose(1, 2))


def all_cases():
    cases = {
        "mlp": lambda: Case(mlp(), rows(13)),
        "lenet": lambda: Case(Lenet(), images(1, 28)),
        "vgg": lambda: Case(vgg(), images(3, 32)),
        "unet_transposed": lambda: Case(Unet(True), images(3, 32)),
        "unet_resized": lambda: Case(Unet(False), images(3, 32)),
        "resized_odd": lambda: Case(Resized(), lambda n: (torch.randn(n, 3, 15 + 2 * n, 17),), {0: "batch", 2: "height"}),
        "vit": lambda: Case(Vit(), images(3, 32)),
        "transformer": lambda: Case(Seq2seq(), lambda n: (torch.randint(0, 50, (n, 9)), torch.randint(0, 50, (n, 7)))),
        "encoder": lambda: Case(Encoder(), tokens(9, 100)),
        "encoder_any_length": lambda: Case(Encoder(), lambda n: (torch.randint(0, 100, (n, 5 + 2 * n)),), {0: "batch", 1: "time"}),
        "multihead_attention": lambda: Case(Attended(), rows(7, 16)),
        "gpt": lambda: Case(Gpt(), lambda n: (torch.randint(0, 97, (n, 5 + 2 * n)),), {0: "batch", 1: "time"}),
        "llama": lambda: Case(Llama(), lambda n: (torch.randint(0, 61, (n, 5 + 2 * n)),), {0: "batch", 1: "time"}),
        "lstm": lambda: Case(Recurrent(nn.LSTM(5, 8, 2, batch_first=True)), rows(9, 5)),
        "gru": lambda: Case(Recurrent(nn.GRU(5, 8, batch_first=True)), rows(9, 5)),
        "rnn": lambda: Case(Recurrent(nn.RNN(5, 8, 2, nonlinearity="relu", batch_first=True)), rows(9, 5)),
        "bidirectional": lambda: Case(Recurrent(nn.LSTM(5, 8, 2, batch_first=True, bidirectional=True)), rows(9, 5)),
        "lstm_attention": lambda: Case(AttentiveLstm(), tokens(11, 40)),
        "gru_cell": lambda: Case(CellLoop(), rows(4, 5)),
        "tcn": lambda: Case(Tcn(), rows(4, 20)),
        "autoencoder": lambda: Case(autoencoder(), images(1, 28)),
        "vae": lambda: Case(Vae(), lambda n: (torch.randn(n, 20), torch.randn(n, 4))),
        "generator": lambda: Case(generator(), lambda n: (torch.randn(n, 10, 1, 1),)),
        "discriminator": lambda: Case(discriminator(), images(3, 32)),
        "pixel_shuffle": lambda: Case(sharper(), images(1, 11)),
        "normalizations": lambda: Case(Normalizations(RmsNorm), images(8, 8)),
        "rms_norm": lambda: Case(Normalizations(nn.RMSNorm), images(8, 8)),
        "embedding_bag": lambda: Case(Bag(), tokens(6, 30)),
        "experts": lambda: Case(Experts(), rows(5, 8)),
        "indexing": lambda: Case(Indexing(), lambda n: (torch.randn(n, 6, 5), torch.randn(n, 6) > 0)),
        "conv3d": lambda: Case(nn.Sequential(nn.Conv3d(1, 4, 3, 2, 1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(32, 3)),
                               lambda n: (torch.randn(n, 1, 8, 8, 8),)),
    }
    if torchvision is not None:
        # Of torchvision, with few classes; images as small as the network takes.
        for name, size in [("resnet18", 64), ("mobilenet_v2", 64), ("mobilenet_v3_small", 64), ("efficientnet_b0", 64), ("shufflenet_v2_x0_5", 64),
                           ("densenet121", 64), ("squeezenet1_1", 64), ("googlenet", 64), ("convnext_tiny", 64), ("swin_t", 64), ("mnasnet0_5", 64),
                           ("regnet_y_400mf", 64), ("inception_v3", 128)]:
            more = {"init_weights": True, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
            cases[name] = lambda name=name, size=size, more=more: Case(vision.get_model(name, weights=None, num_classes=10, **more), images(3, size))
    return cases

