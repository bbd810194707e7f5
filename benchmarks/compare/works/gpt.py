"""A transformer that predicts characters (benchmarks/models/gpt.hpp)."""

from study import Study

TIME, VOCABULARY, WIDTH, BLOCKS = 256, 65, 384, 6
STUDY = Study(None, (TIME,), "adam", 1e-4, classes=VOCABULARY, vocabulary=VOCABULARY, successors=True)
ROWS = ()


def step_flop(batch, length):
    """Of a block: 12 width^2 weights, and the scores of all pairs, two products."""
    return 3 * 2 * batch * TIME * (BLOCKS * (12 * WIDTH**2 + 2 * TIME * WIDTH) + WIDTH * VOCABULARY)


def torch_model(weights):
    import torch
    from scopes import Scope
    from torch import nn
    from torch_layers import embedding, layer_normalization, linear, parameter

    class Attention(nn.Module):
        """Causal. One product for query, key and value, as is usual in PyTorch code written by
        hand."""

        def __init__(self, scope):
            super().__init__()
            parts = [scope / part for part in ("query", "key", "value")]
            width, self.heads, _ = parts[0]["kernel"].shape
            self.all, self.last = nn.Linear(width, 3 * width), nn.Linear(width, width)
            with torch.no_grad():
                for i, part in enumerate(parts):
                    rows = slice(i * width, (i + 1) * width)
                    self.all.weight[rows] = torch.from_numpy(part["kernel"].reshape(width, width).T.copy())
                    self.all.bias[rows] = torch.from_numpy(part["bias"].reshape(width).copy())
            last = scope / "attention_output"
            self.last.weight, self.last.bias = parameter(last["kernel"].reshape(width, width).T), parameter(last["bias"])

        def forward(self, x):
            batch, time, width = x.shape
            q, k, v = (each.view(batch, time, self.heads, -1).transpose(1, 2) for each in self.all(x).split(width, dim=2))
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.last(seen.transpose(1, 2).reshape(batch, time, width))

    class Decoder(nn.Module):
        def __init__(self, scope):
            super().__init__()
            self.norm1, self.norm2 = layer_normalization(scope / "norm1"), layer_normalization(scope / "norm2")
            self.attention = Attention(scope / "attention")
            self.wide, self.narrow = linear(scope / "wide"), linear(scope / "narrow")

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
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
