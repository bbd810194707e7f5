"""Single operations of PyTorch."""

import torch
from torch import nn

import operations

functional = nn.functional
OPERATIONS = {
    "matmul": lambda x, w: x @ w,
    "batched_products": lambda x, w: x @ w,
    "chain": lambda x: torch.tanh(x * 2 + 1) * 3,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "swish": functional.silu,
    "softmax": lambda x: torch.softmax(x, -1),
    "sum_of_rows": lambda x: x.sum(1),
    "sum_of_columns": lambda x: x.sum(0),
    "maximum_of_rows": lambda x: x.amax(1),
    "maximum_of_columns": lambda x: x.amax(0),
    "argmax": lambda x: x.argmax(1).float(),
    "transpose": lambda x: x.t().contiguous(),
    "dropout": lambda x: functional.dropout(x, 0.5),
    "embedding": lambda table, words: functional.embedding(words, table),
    "sum": lambda x: x.sum(),
    "cumulative_sum": lambda x: x.cumsum(-1),
    "sort": lambda x: x.sort(-1)[0],
    "sort_whole": lambda x: x.sort()[0],
    "top_k": lambda x: x.topk(10, -1)[0],
    "cross_entropy": lambda x: functional.cross_entropy(
        x, torch.arange(x.shape[0], device=x.device) * 7919 % operations.CLASSES, reduction="none"),
    "layer_normalization": lambda x: functional.layer_norm(x, x.shape[-1:], eps=1e-3),
    "group_normalization": lambda x, gamma, beta: functional.group_norm(x, 8, gamma, beta, 1e-3),
    "batch_normalization": lambda x, gamma, beta: functional.batch_norm(x, None, None, gamma, beta, True, 0, 1e-3),
    "attention": lambda q, k, v: functional.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2),
}


def convolution(c):
    if c.transposed:
        return lambda x, w: functional.conv_transpose2d(x, w, stride=c.stride)
    return lambda x, w: functional.conv2d(x, w, None, c.stride, c.padding, c.dilation, c.groups)


def product(work, x, w):
    """Writes a product into memory that is there already. MKL packs second factors that are kept."""
    (batch, m, n, k), layout = operations.product_of(work)
    x, w = (x.mT if layout[0] == "t" else x), (w.mT if layout[1] == "t" else w)
    if layout[1] == "p":
        weight = w[0].t().contiguous()
        packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, m)
        return lambda *_: torch.ops.mkl._mkl_linear(x[0], packed, weight, None, m)
    out, multiply = torch.empty((batch, m, n)), torch.bmm
    if batch == 1:
        x, w, out, multiply = x[0], w[0], out[0], torch.mm
    return lambda *_: multiply(x, w, out=out)


def of(work, arrays, last, random):
    """Returns the function of an operation, its operands, and for each of them the order of its axes
    in ours, or None. Images have channels first inside, in memory `last` where requested. Without
    `random`, dropout leaves out nothing."""
    if operations.product_of(work):
        tensors = [torch.from_numpy(each) for each in arrays]
        return product(work, *tensors), tensors, [None, None]
    images = operations.NORMALIZATIONS + tuple(operations.CONVOLUTIONS)
    function = convolution(operations.CONVOLUTIONS[work]) if work in operations.CONVOLUTIONS else OPERATIONS[work]
    if work == "dropout" and not random:
        function = lambda x: functional.dropout(x, 0.0)  # noqa: E731
    tensors, orders = [torch.from_numpy(each) for each in arrays], [None] * len(arrays)
    if work in images:
        layout = torch.channels_last if last else torch.contiguous_format
        for i, (order, back) in enumerate((((0, 3, 1, 2), (0, 2, 3, 1)), ((3, 2, 0, 1), (2, 3, 1, 0)))):
            if tensors[i].ndim == 4:
                tensors[i], orders[i] = tensors[i].permute(order).contiguous(memory_format=layout), back
    return function, tensors, orders
