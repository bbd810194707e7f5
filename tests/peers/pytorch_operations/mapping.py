"""PyTorch's operations in the library's words.

For a sample of PyTorch's (input, args, kwargs), MAPPED[name] yields cases: the library's operation, its words and numbers, the
operands as the library takes them, and what PyTorch makes of these.
"""
import torch
import torch.nn.functional as F

MAPPED = {}
OF_INTEGERS = ("bincount", "nn.functional.one_hot")


class Case:
    """One call: `ours` with attributes `whole` and `real`, and `theirs`, a function of the operands."""

    def __init__(self, ours, operands, theirs, whole=(), real=(), derivatives=2, elementwise=False):
        self.ours, self.operands, self.theirs = ours, list(operands), theirs
        self.whole, self.real = [int(v) for v in whole], [float(v) for v in real]
        self.derivatives, self.elementwise = derivatives, elementwise
        self.source = ""


def mapped(*names):
    def keep(f):
        for name in names:
            MAPPED[name] = f
        return f
    return keep


def like(x, value):
    """A number as a tensor of x's type; None where it is another kind of number."""
    if isinstance(value, torch.Tensor):
        return value if value.dtype == x.dtype else None
    if isinstance(value, complex) or value is None:
        return None
    return torch.tensor(float(value), dtype=x.dtype)


def is_float(x):
    return isinstance(x, torch.Tensor) and x.dtype.is_floating_point


# --- elementwise ---------------------------------------------------------------------------------------------------------------

UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh",
    "ceil": "ceil", "cos": "cos", "cosh": "cosh", "erf": "erf", "erfc": "erfc", "exp": "exp", "exp2": "exp2", "expm1": "expm1",
    "floor": "floor", "isfinite": "is_finite", "isinf": "is_inf", "isnan": "is_nan", "log": "log", "log10": "log10",
    "log1p": "log1p", "log2": "log2", "logical_not": "logical_not", "neg": "negate", "reciprocal": "reciprocal",
    "round": "round", "rsqrt": "rsqrt", "sigmoid": "sigmoid", "sign": "sign", "sgn": "sign", "sin": "sin", "sinh": "sinh",
    "sqrt": "sqrt", "square": "square", "tan": "tan", "tanh": "tanh", "trunc": "trunc", "nn.functional.relu": "relu",
    "nn.functional.relu6": "relu6", "nn.functional.selu": "selu", "nn.functional.silu": "swish", "nn.functional.mish": "mish",
    "nn.functional.hardsigmoid": "hard_sigmoid", "nn.functional.hardswish": "hard_swish",
    "nn.functional.logsigmoid": "log_sigmoid", "nn.functional.softsign": "softsign",
}


def unary(ours):
    def cases(op, x, args, kwargs):
        kwargs = {k: v for k, v in kwargs.items() if k != "inplace" and not (k == "decimals" and v == 0)}
        if not args and not kwargs:
            yield Case(ours, [x], op, elementwise=True)
    return cases


for name, ours in UNARY.items():
    MAPPED[name] = unary(ours)

BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div/no_rounding_mode": "divide", "true_divide": "divide",
    "div/floor_rounding": "floor_divide", "floor_divide": "floor_divide", "remainder": "remainder", "hypot": "hypot",
    "atan2": "atan2", "maximum": "maximum", "minimum": "minimum", "max/binary": "maximum", "min/binary": "minimum",
    "pow": "pow", "float_power": "pow", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "__radd__": "add", "__rmul__": "multiply", "clamp_min": "maximum", "clamp_max": "minimum",
}


def binary(ours):
    def cases(op, x, args, kwargs):
        rounding = kwargs.get("rounding_mode")
        if len(args) != 1 or kwargs.get("alpha", 1) != 1 or not is_float(x) or rounding == "trunc":
            return
        if op.name == "float_power" and x.dtype != torch.float64: # computes in double
            return
        y = like(x, args[0])
        if y is None:
            return
        made = Case(ours, [x, y], lambda a, b: op(a, b, **kwargs), elementwise=True)
        if ours in ("maximum", "minimum") and not isinstance(args[0], torch.Tensor): # PyTorch knows no derivative by a number
            made = Case(ours + " with number", [x], lambda a: op(a, *args), real=[args[0]], elementwise=True)
        yield made
    return cases


for name, ours in BINARY.items():
    MAPPED[name] = binary(ours)
SWAPPED = {"rsub": "subtract", "__rsub__": "subtract", "__rdiv__": "divide", "__rmod__": "remainder", "__rpow__": "pow"}


def swapped(ours):
    def cases(op, x, args, kwargs):
        y = like(x, args[0]) if len(args) == 1 and kwargs.get("alpha", 1) == 1 else None
        if y is not None:
            yield Case(ours, [y, x], lambda b, a: op(a, b), elementwise=True)
    return cases


for name, ours in SWAPPED.items():
    MAPPED[name] = swapped(ours)


@mapped("pow")
def power(op, x, args, kwargs):
    y = like(x, args[0]) if is_float(x) else None
    if y is not None:
        yield Case("pow", [x, y], op, elementwise=True)
        if not isinstance(args[0], torch.Tensor):
            yield Case("pow of number", [x], lambda a: op(a, args[0]), real=[args[0]], elementwise=True)
            if args[0] in (2, 3, -1, -2):
                yield Case(f"power of {int(args[0])}", [x], lambda a: op(a, args[0]), elementwise=True)


@mapped("clamp", "nn.functional.hardtanh")
def clamp(op, x, args, kwargs):
    low, high = (list(args) + [kwargs.get("min", kwargs.get("min_val", -1.0)), kwargs.get("max", kwargs.get("max_val", 1.0))])[:2]
    if not is_float(x) or low is None or high is None:
        return
    if any(isinstance(v, torch.Tensor) for v in (low, high)):
        low, high = like(x, low), like(x, high)
        if low is not None and high is not None:
            yield Case("clip", [x, low, high], op, elementwise=True)
    else:
        yield Case("clip to numbers", [x], lambda a: op(a, low, high), real=[low, high], elementwise=True)


@mapped("lerp")
def lerp(op, x, args, kwargs):
    t = like(x, args[1])
    if t is not None:
        yield Case("lerp", [x, args[0], t], op, elementwise=True)


@mapped("where")
def where(op, x, args, kwargs): # torch.where(condition, x, y); the sample's input is x
    if len(args) == 2 and all(like(x, v) is not None for v in (args[1],)):
        yield Case("where", [args[0].contiguous(), x, like(x, args[1])], torch.where, elementwise=True)


@mapped("masked_fill")
def masked_fill(op, x, args, kwargs):
    v = like(x, args[1])
    if v is not None and v.ndim == 0:
        yield Case("where", [args[0].contiguous(), v, x], lambda m, b, a: torch.where(m, b, a), elementwise=True)


@mapped("nn.functional.gelu")
def gelu(op, x, args, kwargs):
    tanh = kwargs.get("approximate", args[0] if args else "none") == "tanh"
    yield Case("gelu_tanh" if tanh else "gelu", [x], lambda a: op(a, approximate="tanh" if tanh else "none"), elementwise=True)


@mapped("nn.functional.softplus")
def softplus(op, x, args, kwargs):
    yield Case("softplus", [x], lambda a: torch.logaddexp(a, torch.zeros((), dtype=a.dtype)), elementwise=True)


@mapped("nn.functional.elu")
def elu(op, x, args, kwargs):
    alpha = kwargs.get("alpha", args[0] if args else 1.0)
    yield Case("elu of number", [x], lambda a: op(a, alpha), real=[alpha], elementwise=True)


@mapped("nn.functional.leaky_relu")
def leaky_relu(op, x, args, kwargs):
    slope = kwargs.get("negative_slope", args[0] if args else 0.01)
    yield Case("leaky_relu of number", [x], lambda a: op(a, slope), real=[slope], elementwise=True)


@mapped("nn.functional.prelu")
def prelu(op, x, args, kwargs):
    w = args[0] if args else kwargs["weight"]
    if w.ndim == 0 or w.numel() == 1:
        yield Case("leaky_relu", [x, w.reshape(())], lambda a, b: op(a, b.reshape(1)), elementwise=True)
    elif x.ndim >= 2:
        shaped = w.reshape((-1,) + (1,) * (x.ndim - 2))
        yield Case("leaky_relu", [x, shaped], lambda a, b: op(a, b.reshape(-1)), elementwise=True)


@mapped("zeros_like", "ones_like", "full_like")
def filled(op, x, args, kwargs):
    y = op(x, *args, **kwargs)
    if is_float(x) and y.dtype == x.dtype and y.numel() > 0:
        value = float(y.reshape(-1)[0])
        yield Case("full_like", [x], lambda a: torch.full_like(a, value), real=[value], elementwise=True)


@mapped("ravel", "H", "mH")
def unchanged(op, x, args, kwargs):
    if op.name == "ravel":
        yield Case("ravel", [x], op)
    elif x.ndim >= 2:
        yield Case("swap_axes", [x], lambda a: op(a), whole=[-1, -2])


# --- reductions ----------------------------------------------------------------------------------------------------------------

REDUCTIONS = {"sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "mean": "mean", "any": "any", "all": "all",
              "logsumexp": "logsumexp", "count_nonzero": "count_nonzero"}


def axes_of(dim):
    return [] if dim is None else list(dim) if isinstance(dim, (tuple, list)) else [dim]


def reduction(ours):
    def cases(op, x, args, kwargs):
        if not is_float(x) or kwargs.get("dtype") not in (None, x.dtype):
            return
        axes = axes_of(kwargs.get("dim", args[0] if args else None))
        keep = bool(kwargs.get("keepdim", args[1] if len(args) > 1 else False))
        yield Case(ours, [x], lambda a: op(a, *args, **kwargs), whole=[keep] + axes)
    return cases


for name, ours in REDUCTIONS.items():
    MAPPED[name] = reduction(ours)


@mapped("var", "std", "var/unbiased", "std/unbiased")
def spread(op, x, args, kwargs):
    args = list(args)
    unbiased = args.pop(0) if args and isinstance(args[0], bool) else kwargs.get("unbiased", True)
    axes = axes_of(kwargs.get("dim", args[0] if args else None))
    correction = kwargs.get("correction", 1 if unbiased else 0)
    correction = 1 if correction is None else correction
    count = x.numel() if not axes or x.ndim == 0 else torch.tensor([x.shape[a] for a in axes]).prod().item()
    if correction == int(correction) and count > correction:
        keep = bool(kwargs.get("keepdim", False))
        yield Case("variance" if op.name == "var" else "stddev", [x], lambda a: op(a, *args, **kwargs) if args else op(a, **kwargs)
                   if kwargs else op(a, bool(unbiased)), whole=[keep] + axes, real=[correction])


@mapped("max/reduction_no_dim", "min/reduction_no_dim")
def extreme_of_all(op, x, args, kwargs):
    yield Case(op.name, [x], lambda a: op(a), whole=[0])


@mapped("max/reduction_with_dim", "min/reduction_with_dim")
def extreme(op, x, args, kwargs):
    axes, keep = axes_of(kwargs.get("dim", args[0] if args else None)), kwargs.get("keepdim", False) or (len(args) > 1 and args[1])
    if axes: # the values; torch.amax is what shares derivatives among ties as ours does
        yield Case(op.name, [x], lambda a: op(a, *args, **kwargs)[0], whole=[keep] + axes)


@mapped("linalg.vector_norm")
def vector_norm(op, x, args, kwargs):
    order = kwargs.get("ord", args[0] if args else 2)
    axes = axes_of(kwargs.get("dim"))
    if kwargs.get("dtype") in (None, x.dtype):
        yield Case("norm", [x], lambda a: op(a, *args, **kwargs), whole=[kwargs.get("keepdim", False)] + axes, real=[order])


@mapped("norm", "norm/inf", "norm/fro")
def norm(op, x, args, kwargs):
    order = kwargs.get("p", args[0] if args else 2)
    axes = axes_of(kwargs.get("dim", args[1] if len(args) > 1 else None))
    if order == "fro":
        order = 2
    if isinstance(order, (int, float)) and kwargs.get("dtype") in (None, x.dtype):
        keep = kwargs.get("keepdim", args[2] if len(args) > 2 else False)
        yield Case("norm", [x], lambda a: op(a, *args, **kwargs), whole=[keep] + axes, real=[order])


@mapped("argmax", "argmin")
def arg_extreme(op, x, args, kwargs):
    dim = kwargs.get("dim", args[0] if args else None)
    keep = kwargs.get("keepdim", args[1] if len(args) > 1 else False)
    if dim is None and not keep:
        yield Case(f"{op.name} of all", [x], lambda a: op(a))
    elif dim is not None:
        yield Case(op.name, [x], lambda a: op(a, dim, keep), whole=[dim, keep])


@mapped("softmax", "log_softmax", "nn.functional.softmin", "cumsum", "cumprod")
def along(op, x, args, kwargs):
    ours = {"cumsum": "cumulative_sum", "cumprod": "cumulative_product"}.get(op.name, op.name)
    dim = kwargs.get("dim", args[0] if args else None)
    if kwargs.get("dtype") not in (None, x.dtype) or dim is None:
        return
    if op.name == "nn.functional.softmin":
        yield Case("softmax", [-x], lambda a: op(-a, dim), whole=[dim])
    else:
        yield Case(ours, [x], lambda a: op(a, dim), whole=[dim])


@mapped("sort", "argsort", "msort")
def ordered(op, x, args, kwargs):
    dim = kwargs.get("dim", args[0] if args else -1)
    descending = kwargs.get("descending", args[1] if len(args) > 1 else False)
    if op.name == "msort":
        if x.ndim > 0:
            yield Case("sort", [x], op, whole=[0, 0])
        return
    if not isinstance(dim, int) or isinstance(dim, bool):
        return
    stable = dict(dim=dim, descending=descending, stable=True)
    if op.name == "sort":
        yield Case("sort", [x], lambda a: op(a, **stable)[0], whole=[dim, descending])
    yield Case("argsort", [x], lambda a: torch.sort(a, **stable)[1], whole=[dim, descending])


@mapped("topk")
def topk(op, x, args, kwargs):
    k, dim, largest, _ = (list(args) + [-1, True, True][len(args) - 1:])[:4]
    dim, largest = kwargs.get("dim", dim), kwargs.get("largest", largest)
    yield Case("top_k values", [x], lambda a: op(a, k, dim, largest, True)[0], whole=[dim, largest, k])


@mapped("nonzero", "argwhere", "unique", "bincount", "searchsorted")
def found(op, x, args, kwargs):
    if op.name in ("nonzero", "argwhere") and not kwargs.get("as_tuple"):
        yield Case("nonzero", [x], lambda a: op(a), derivatives=0)
    elif op.name == "unique" and not args and kwargs.get("dim") is None:
        yield Case("unique", [x], lambda a: torch.unique(a, sorted=True), derivatives=0)
    elif op.name == "bincount":
        yield Case("bincount", [x.to(torch.int32)], lambda a: torch.bincount(a.to(torch.int64)), derivatives=0)
    elif op.name == "searchsorted" and "sorter" not in kwargs and isinstance(args[0], torch.Tensor) and args[0].ndim == x.ndim:
        right = kwargs.get("right", False) or kwargs.get("side") == "right"
        yield Case("searchsorted", [x, args[0]], lambda s, v: op(s, v, right=right), whole=[right], derivatives=0)
