"""PyTorch's operations that move elements, products, windows and losses, in the library's words (see mapping.py)."""
import torch
import torch.nn.functional as F

from mapping import Case, is_float, mapped


@mapped("reshape", "view", "view_copy", "reshape_as", "view_as", "flatten", "unflatten", "atleast_1d", "atleast_2d", "atleast_3d")
def reshape(op, x, args, kwargs):
    if isinstance(x, torch.Tensor):
        y = op(x, *args, **kwargs)
        if isinstance(y, torch.Tensor):
            yield Case("reshape", [x], lambda a: op(a, *args, **kwargs), whole=y.shape)


@mapped("unsqueeze", "unsqueeze_copy")
def unsqueeze(op, x, args, kwargs):
    yield Case("expand_dims", [x], lambda a: op(a, *args, **kwargs), whole=[kwargs.get("dim", args[0] if args else 0)])


@mapped("squeeze", "squeeze_copy", "squeeze/multiple")
def squeeze(op, x, args, kwargs):
    if not args:
        yield Case("squeeze", [x], op)
        return
    axes = list(args[0]) if isinstance(args[0], (tuple, list)) else [args[0]]
    if axes and x.ndim and all(x.shape[a] == 1 for a in axes): # ours refuses other axes, PyTorch leaves them
        yield Case("squeeze", [x], lambda a: op(a, *args), whole=axes)


@mapped("permute", "permute_copy")
def permute(op, x, args, kwargs):
    if x.ndim and x.ndim <= 5:
        yield Case("transpose", [x], lambda a: op(a, *args), whole=args[0])


@mapped("transpose", "transpose_copy")
def transpose(op, x, args, kwargs):
    a, b = kwargs.get("dim0", args[0] if args else None), kwargs.get("dim1", args[1] if len(args) > 1 else None)
    if x.ndim:
        yield Case("swap_axes", [x], lambda v: op(v, *args, **kwargs), whole=[a, b])


@mapped("t", "t_copy", "T", "mT")
def transposed(op, x, args, kwargs):
    if x.ndim == 2:
        yield Case("transpose", [x], op)


@mapped("movedim")
def movedim(op, x, args, kwargs):
    a, b = (list(v) if isinstance(v, (tuple, list)) else [v] for v in args)
    if x.ndim and a:
        yield Case("move_axis", [x], lambda v: op(v, *args), whole=a + b)


@mapped("broadcast_to", "expand", "expand_as", "expand_copy")
def expand(op, x, args, kwargs):
    yield Case("broadcast_to", [x], lambda a: op(a, *args), whole=op(x, *args).shape)


def ranges(shape, axis, begin, end, step=1):
    words = []
    for i, n in enumerate(shape):
        words += [begin, end, step] if i == axis % len(shape) else [0, 2 ** 62, 1]
    return words


@mapped("narrow", "narrow_copy", "slice", "select", "chunk", "unsafe_chunk", "split", "unsafe_split", "split/list_args",
        "split_with_sizes", "split_with_sizes_copy", "tensor_split", "hsplit", "vsplit", "dsplit", "unbind", "unbind_copy")
def parts(op, x, args, kwargs):
    if x.ndim == 0 or x.ndim > 5:
        return
    if op.name == "select":
        yield Case("take", [x], lambda a: op(a, *args), whole=args[:2])
    elif op.name in ("narrow", "narrow_copy"):
        axis, begin, count = args
        if not isinstance(begin, torch.Tensor):
            begin = begin % x.shape[axis] if begin < 0 else begin
            yield Case("slice", [x], lambda a: op(a, *args), whole=ranges(x.shape, axis, begin, begin + count))
    elif op.name == "slice":
        axis, begin, end, step = (list(args) + [None] * 4)[:4]
        yield Case("slice", [x], lambda a: op(a, *args),
                   whole=ranges(x.shape, axis or 0, begin or 0, 2 ** 62 if end is None else end, step or 1))
    elif op.name in ("unbind", "unbind_copy"):
        axis = kwargs.get("dim", args[0] if args else 0)
        for i in range(min(x.shape[axis], 2)):
            yield Case("take", [x], lambda a, i=i: op(a, axis)[i], whole=[axis, i])
    else:
        axis = {"hsplit": 1 if x.ndim > 1 else 0, "vsplit": 0, "dsplit": 2}.get(op.name)
        if axis is None:
            axis = kwargs.get("dim", args[1] if len(args) > 1 else 0)
        begin = 0
        for i, part in enumerate(op(x, *args, **kwargs)):
            end = begin + part.shape[axis]
            yield Case("slice", [x], lambda a, i=i: op(a, *args, **kwargs)[i], whole=ranges(x.shape, axis, begin, end))
            begin = end


@mapped("flip", "fliplr", "flipud")
def flip(op, x, args, kwargs):
    axes = {"fliplr": [1], "flipud": [0]}.get(op.name) or list(kwargs["dims"])
    if axes:
        yield Case("reverse", [x], lambda a: op(a, **kwargs), whole=axes)


@mapped("nn.functional.pad/constant", "constant_pad_nd", "nn.functional.pad/reflect", "nn.functional.pad/replicate",
        "nn.functional.pad/circular")
def pad(op, x, args, kwargs):
    options = dict(zip(("pad", "value") if op.name == "constant_pad_nd" else ("pad", "mode", "value"), args)) | kwargs
    amounts = list(options["pad"])
    if any(a < 0 for a in amounts) or x.ndim == 0 or x.ndim > 5: # ours only adds
        return
    words = [0] * (2 * x.ndim)
    for k in range(len(amounts) // 2):
        words[2 * (x.ndim - 1 - k)], words[2 * (x.ndim - 1 - k) + 1] = amounts[2 * k], amounts[2 * k + 1]
    mode = {"reflect": 0, "replicate": 1, "circular": 2}.get(options.get("mode", "constant"))
    if mode is None:
        yield Case("pad", [x], lambda a: op(a, *args, **kwargs), whole=words, real=[options.get("value") or 0])
    else:
        yield Case("pad by mode", [x], lambda a: op(a, *args, **kwargs), whole=[mode] + words)


@mapped("tile", "repeat", "repeat_interleave", "roll", "tril", "triu", "diag", "diagonal", "diagonal_copy", "linalg.diagonal",
        "diag_embed")
def repeated(op, x, args, kwargs):
    if op.name in ("tile", "repeat"):
        counts = list(args[0] if isinstance(args[0], (tuple, list)) else args)
        if len(counts) <= 5 and x.ndim <= 5 and (op.name == "tile" or len(counts) >= x.ndim):
            yield Case("tile", [x], lambda a: op(a, *args), whole=counts)
    elif op.name == "repeat_interleave":
        axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
        count = kwargs.get("repeats", args[0] if args else None)
        if isinstance(count, int) and axis is not None and x.ndim:
            yield Case("repeat", [x], lambda a: op(a, count, axis), whole=[axis, count])
    elif op.name == "roll":
        shift, axis = kwargs.get("shifts", args[0]), kwargs.get("dims", args[1] if len(args) > 1 else None)
        if isinstance(shift, int) and isinstance(axis, int):
            yield Case("roll", [x], lambda a: op(a, shift, axis), whole=[axis, shift])
    elif op.name in ("tril", "triu"):
        yield Case(op.name, [x], lambda a: op(a, *args), whole=[args[0] if args else 0])
    elif op.name == "diag":
        yield Case("diag" if x.ndim == 1 else "diag_part", [x], lambda a: op(a, *args), whole=[args[0] if args else 0])
    elif op.name in ("diagonal", "diagonal_copy", "linalg.diagonal"):
        if x.ndim == 2 and not args or kwargs.get("dim1") == -2 and kwargs.get("dim2") == -1:
            yield Case("diag_part", [x], lambda a: op(a, *args, **kwargs), whole=[kwargs.get("offset", 0)])
    elif x.ndim >= 1 and set(kwargs) <= {"offset"} and len(args) <= 1:
        yield Case("diag", [x], lambda a: op(a, *args, **kwargs), whole=[args[0] if args else kwargs.get("offset", 0)])


@mapped("cat", "stack", "hstack", "vstack")
def joined(op, x, args, kwargs):
    x = list(x) + [v for v in args if isinstance(v, torch.Tensor)]
    axis = kwargs.get("dim", next((v for v in args if isinstance(v, int)), 0))
    if not 1 <= len(x) <= 3 or not all(is_float(v) and v.dtype == x[0].dtype for v in x):
        return
    number = ("one", "two", "three")[len(x) - 1]
    if op.name == "stack":
        yield Case(f"stack of {number}", x, lambda *a: op(list(a), axis), whole=[axis])
    elif all(v.ndim == x[0].ndim and v.ndim > 0 for v in x):
        if op.name == "hstack":
            axis = 0 if x[0].ndim == 1 else 1
        if op.name == "vstack" and x[0].ndim < 2:
            return
        yield Case(f"concat of {number}", x, lambda *a: torch.cat(list(a), axis), whole=[axis])


@mapped("gather", "take_along_dim", "index_select", "scatter_add", "index_add", "nn.functional.embedding", "nn.functional.one_hot")
def indexed(op, x, args, kwargs):
    if op.name == "nn.functional.embedding":
        if not any(kwargs.get(k) for k in ("max_norm", "scale_grad_by_freq", "sparse")) and kwargs.get("padding_idx") is None:
            yield Case("gather", [x, args[0].to(torch.int64)], lambda t, i: F.embedding(i, t), whole=[0])
    elif op.name == "nn.functional.one_hot":
        classes = kwargs.get("num_classes", args[0] if args else -1)
        if classes == -1:
            classes = int(x.max()) + 1 if x.numel() else 0
        if x.numel():
            yield Case("one_hot", [x], lambda a: op(a, classes), whole=[classes], derivatives=0)
    elif op.name == "gather":
        axis, i = args[0], args[1]
        if x.ndim and i.ndim == x.ndim and all(i.shape[k] == x.shape[k] for k in range(x.ndim) if k != axis % x.ndim):
            yield Case("take_along", [x, i.to(torch.int64)], lambda a, b: op(a, axis, b), whole=[axis])
    elif op.name == "take_along_dim":
        i, axis = args[0], kwargs.get("dim", args[1] if len(args) > 1 else None)
        if axis is not None and all(i.shape[k] == x.shape[k] for k in range(x.ndim) if k != axis % x.ndim):
            yield Case("take_along", [x, i], lambda a, b: op(a, b, axis), whole=[axis])
    elif op.name == "index_select":
        axis, i = args
        if x.ndim and i.ndim == 1:
            yield Case("gather", [x, i], lambda a, b: op(a, axis, b), whole=[axis])
    elif op.name == "scatter_add" and x.ndim:
        axis, i, values = args
        if i.shape == values.shape and all(i.shape[k] == x.shape[k] for k in range(x.ndim) if k != axis % x.ndim):
            yield Case("put_along", [values, i], lambda v, b: op(torch.zeros_like(x), axis, b, v), whole=[axis] + list(x.shape))
    elif op.name == "index_add" and x.ndim:
        axis, i, values = args
        if i.ndim == 1 and values.ndim == x.ndim:
            yield Case("scatter_add", [values, i], lambda v, b: op(torch.zeros_like(x), axis, b, v), whole=[axis] + list(x.shape))


# --- products ------------------------------------------------------------------------------------------------------------------

@mapped("matmul", "mm", "bmm", "mv", "__rmatmul__", "dot", "vdot", "inner", "outer", "tensordot", "einsum",
        "nn.functional.linear", "linalg.multi_dot")
def product(op, x, args, kwargs):
    if op.name in ("matmul", "mm", "bmm", "mv"):
        yield Case("matmul", [x, args[0]], lambda a, b: op(a, b))
    elif op.name == "__rmatmul__":
        yield Case("matmul", [args[0], x], lambda b, a: op(a, b))
    elif op.name in ("dot", "vdot", "inner", "outer"):
        if op.name != "inner" or x.ndim and args[0].ndim:
            yield Case(op.name, [x, args[0]], lambda a, b: op(a, b))
    elif op.name == "tensordot":
        dims = kwargs.get("dims", args[1] if len(args) > 1 else 2)
        if isinstance(dims, int):
            words = list(range(x.ndim - dims, x.ndim)) + list(range(dims))
        else:
            words = list(dims[0]) + list(dims[1])
        count = len(words) // 2
        if any(x.shape[a] != args[0].shape[b] for a, b in zip(words[:count], words[count:])): # PyTorch broadcasts extents of 1
            return
        yield Case("tensordot", [x, args[0]], lambda a, b: op(a, b, dims=dims), whole=words)
    elif op.name == "einsum":
        text = args[0].replace(" ", "")
        if "..." not in text and "->" in text and len(x) <= 2:
            yield Case("einsum" if len(x) == 2 else "einsum of one", x, lambda *a: torch.einsum(text, *a), whole=[ord(c) for c in text])
    elif op.name == "nn.functional.linear" and len(args) == 1 and args[0].ndim == 2:
        yield Case("matmul", [x, args[0].T.contiguous()], lambda a, b: op(a, b.T))
    elif op.name == "linalg.multi_dot" and len(x) == 2:
        yield Case("matmul", x, lambda a, b: op([a, b]))


def both(v):
    return [v, v] if isinstance(v, int) else list(v) if len(v) == 2 else [v[0], v[0]]


@mapped("nn.functional.conv2d", "nn.functional.conv1d")
def convolution(op, x, args, kwargs):
    flat = op.name.endswith("1d")
    names = ("stride", "padding", "dilation", "groups")
    weight, bias = args[0], args[1] if len(args) > 1 else kwargs.get("bias")
    options = dict(zip(names, args[2:])) | {k: v for k, v in kwargs.items() if k in names}
    if isinstance(options.get("padding"), str) or x.ndim != (3 if flat else 4) or bias is not None and False:
        return
    stride, padding, dilation = (both(options.get(k, d)) for k, d in zip(names, (1, 0, 1)))
    if flat: # along the width of pictures one pixel high
        x, weight = x[:, :, None], weight[:, :, None]
        stride[0], padding[0], dilation[0] = 1, 0, 1
    groups = options.get("groups", 1)
    yield Case("conv2d", [x.permute(0, 2, 3, 1).contiguous(), weight.permute(2, 3, 1, 0).contiguous()],
               lambda a, w: F.conv2d(a.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), None, stride, padding, dilation,
                                     groups).permute(0, 2, 3, 1), whole=stride + padding + dilation + [groups])


@mapped("nn.functional.max_pool2d", "nn.functional.avg_pool2d")
def pooling(op, x, args, kwargs):
    average = "avg" in op.name
    names = ("kernel_size", "stride", "padding") + (("ceil_mode", "count_include_pad") if average else ("dilation", "ceil_mode"))
    options = dict(zip(names, args)) | kwargs
    if options.get("ceil_mode") or options.get("divisor_override") or options.get("return_indices") or x.ndim != 4:
        return
    window = both(options["kernel_size"])
    stride = both(options["stride"]) if options.get("stride") else window
    padding, dilation = both(options.get("padding", 0)), both(options.get("dilation", 1))
    count = options.get("count_include_pad", True)
    if average:
        f = lambda a: F.avg_pool2d(a, window, stride, padding, False, count)
    else:
        f = lambda a: F.max_pool2d(a, window, stride, padding, dilation)
    yield Case("average_pooling2d" if average else "max_pooling2d", [x.permute(0, 2, 3, 1).contiguous()],
               lambda a: f(a.permute(0, 3, 1, 2)).permute(0, 2, 3, 1), whole=window + stride + padding + dilation + [count])


# --- losses --------------------------------------------------------------------------------------------------------------------

@mapped("nn.functional.mse_loss", "nn.functional.l1_loss", "nn.functional.huber_loss",
        "nn.functional.binary_cross_entropy_with_logits", "nn.functional.cross_entropy")
def loss(op, x, args, kwargs):
    y = args[0]
    if kwargs.get("reduction", "mean") != "mean" or kwargs.get("weight") is not None or x.ndim < 1 or len(args) > 1:
        return
    if op.name == "nn.functional.cross_entropy":
        if kwargs.get("label_smoothing") or x.ndim != 2 or not is_float(y) and "ignore_index" in kwargs:
            return
        if is_float(y):
            yield Case("softmax_cross_entropy", [x, y], F.cross_entropy)
        else:
            yield Case("sparse_softmax_cross_entropy", [x, y.to(torch.int32)], lambda a, b: F.cross_entropy(a, b.to(torch.int64)))
    elif is_float(y) and y.shape == x.shape and kwargs.get("pos_weight") is None:
        ours = {"mse": "mean_squared_error", "l1_": "mean_absolute_error", "hub": "huber", "bin": "sigmoid_cross_entropy"}
        yield Case(ours[op.name.split(".")[2][:3]], [x, y], lambda a, b: op(a, b, **kwargs), real=[kwargs.get("delta", 1.0)])
