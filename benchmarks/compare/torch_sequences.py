"""Layers of sequences of PyTorch that have our weights."""

import numpy
import torch
from torch import nn
from torch_layers import parameter


def fill(to, values):
    with torch.no_grad():
        to.copy_(torch.from_numpy(values.copy()))


def joined_heads(scope):
    """Kernel [3 width, width] and bias of one product for query, key and value, as is usual in
    PyTorch."""
    parts = [scope / part for part in ("query", "key", "value")]
    width = parts[0]["kernel"].shape[0]
    kernels = [torch.from_numpy(part["kernel"].reshape(width, width).T.copy()) for part in parts]
    return torch.cat(kernels), torch.cat([torch.from_numpy(part["bias"].reshape(width).copy()) for part in parts])


class Attention(nn.Module):
    """Causal attention of a text to itself. With `kept`, keys and values of the places before, it
    goes on by one character."""

    def __init__(self, scope):
        super().__init__()
        width, self.heads, _ = scope["query/kernel"].shape
        self.all, self.last = nn.Linear(width, 3 * width), nn.Linear(width, width)
        with torch.no_grad():
            for to, values in zip((self.all.weight, self.all.bias), joined_heads(scope)):
                to.copy_(values)
        output = scope / "attention_output"
        self.last.weight, self.last.bias = parameter(output["kernel"].reshape(width, width).T), parameter(output["bias"])

    def forward(self, x, attend=lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)):
        batch, time, width = x.shape
        q, k, v = (each.view(batch, time, self.heads, -1).transpose(1, 2) for each in self.all(x).split(width, dim=2))
        return self.last(attend(q, k, v).transpose(1, 2).reshape(batch, time, width))


def encoder_layer(scope):
    """nn.TransformerEncoderLayer, normalized after each sum, without dropout."""
    width, heads, _ = scope["attention/query/kernel"].shape
    layer = nn.TransformerEncoderLayer(width, heads, scope["wide/kernel"].shape[1], 0, "gelu", 1e-3, batch_first=True)
    for to, values in zip((layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias), joined_heads(scope / "attention")):
        fill(to, values.numpy())
    output = scope / "attention/attention_output"
    fill(layer.self_attn.out_proj.weight, output["kernel"].reshape(width, width).T)
    fill(layer.self_attn.out_proj.bias, output["bias"])
    for to, name in ((layer.linear1, "wide"), (layer.linear2, "narrow")):
        fill(to.weight, scope[f"{name}/kernel"].T)
        fill(to.bias, scope[f"{name}/bias"])
    for to, name in ((layer.norm1, "norm1"), (layer.norm2, "norm2")):
        fill(to.weight, scope[f"{name}/gamma"])
        fill(to.bias, scope[f"{name}/beta"])
    return layer


class Gru(nn.Module):
    """The last step of several layers. Gates are reset, update, new here, and update, reset, new in
    our weights."""

    def __init__(self, scopes):
        super().__init__()
        features, gates = scopes[0]["kernel"].shape
        self.layer = nn.GRU(features, gates // 3, len(scopes), batch_first=True)
        for i, scope in enumerate(scopes):
            for name, values in (("weight_ih", scope["kernel"].T), ("weight_hh", scope["recurrent_kernel"].T),
                                 ("bias_ih", scope["bias"][0]), ("bias_hh", scope["bias"][1])):
                update, reset, new = values.reshape(3, gates // 3, -1)
                to = getattr(self.layer, f"{name}_l{i}")
                fill(to, numpy.concatenate([reset, update, new]).reshape(tuple(to.shape)))

    def forward(self, x):
        return self.layer(x)[0][:, -1]


class BidirectionalLstm(nn.Module):
    """The last steps of both directions. Ours has one bias, so the second one here is zero and stays
    zero."""

    def __init__(self, scopes):
        super().__init__()
        features, gates = scopes[0]["forward_lstm/kernel"].shape
        self.layer = nn.LSTM(features, gates // 4, len(scopes), batch_first=True, bidirectional=True)
        for i, scope in enumerate(scopes):
            for direction, end in (("forward", ""), ("backward", "_reverse")):
                one = scope / f"{direction}_lstm"
                fill(getattr(self.layer, f"weight_ih_l{i}{end}"), one["kernel"].T)
                fill(getattr(self.layer, f"weight_hh_l{i}{end}"), one["recurrent_kernel"].T)
                fill(getattr(self.layer, f"bias_ih_l{i}{end}"), one["bias"])
                second = getattr(self.layer, f"bias_hh_l{i}{end}")
                fill(second, 0 * one["bias"])
                second.requires_grad_(False)

    def forward(self, x):
        ends = self.layer(x)[1][0]
        return torch.cat([ends[-2], ends[-1]], 1)
