"""The values that stand for tensors while a file is translated, and the C++ text of operators."""

import numpy


KEYWORDS = set("""and or not xor auto bool break case char class const default delete do double else enum false float for goto if int long
namespace new operator return short signed sizeof static struct switch template this true typename union unsigned using void while scope
x""".split())


class Unsupported(Exception):
    """The reason why a node cannot be translated."""


class Value:
    """A tensor of the model: axis i in memory is axis axes[i] of ONNX. `flat` = (extents, order) of a flattened last axis."""

    def __init__(self, text, dims, dtype, axes=None, flat=None, inner=None):
        self.text, self.dims, self.dtype, self.flat, self.inner = text, list(dims), dtype, flat, inner
        self.axes = list(axes) if axes is not None else list(range(len(self.dims)))

    rank = property(lambda self: len(self.dims))
    plain = property(lambda self: self.axes == list(range(self.rank)) and not self.flat)

    def extent(self, axis):
        """The extent of an ONNX axis as C++."""
        d = self.dims[axis]
        return d if isinstance(d, int) else f"shape_of({self.text})[{self.axes.index(axis)}]"


class Constant:
    """An initializer, or a value computed from initializers."""

    def __init__(self, array, name=None):
        self.array, self.name = array, name

    dims = property(lambda self: list(self.array.shape))
    rank = property(lambda self: self.array.ndim)


class Extents:
    """Extents that are known when the model is traced: numbers, or C++."""

    def __init__(self, items, scalar=False):
        self.items, self.scalar = list(items), scalar


class Filled:
    """A tensor filled with one number."""

    def __init__(self, number, extents, dtype):
        self.number, self.extents, self.dtype = number, list(extents), dtype

    dims = property(lambda self: [e if isinstance(e, int) else None for e in self.extents])
    rank = property(lambda self: len(self.extents))


CPP_TYPES = {1: "float", 11: "double", 6: "std::int32_t", 7: "std::int64_t", 9: "bool", 2: "std::uint8_t", 10: "tg::half", 16: "tg::bfloat16"}
NUMPY_TYPES = {"float32": 1, "float64": 11, "int32": 6, "int64": 7, "bool": 9, "uint8": 2, "float16": 10}
UNARY = {
    "Abs": "abs({0})", "Acos": "acos({0})", "Acosh": "acosh({0})", "Asin": "asin({0})", "Asinh": "asinh({0})", "Atan": "atan({0})",
    "Atanh": "atanh({0})", "Ceil": "ceil({0})", "Cos": "cos({0})", "Cosh": "cosh({0})", "Erf": "erf({0})", "Exp": "exp({0})",
    "Floor": "floor({0})", "HardSwish": "hard_swish({0})", "IsInf": "tg::is_inf({0})", "IsNaN": "tg::is_nan({0})", "Log": "log({0})",
    "Mish": "mish({0})", "Neg": "-{0}", "Not": "tg::logical_not({0})", "Reciprocal": "reciprocal({0})", "Relu": "relu({0})",
    "Round": "round({0})", "Selu": "tg::selu({0})", "Sigmoid": "sigmoid({0})", "Sign": "sign({0})", "Sin": "sin({0})",
    "Sinh": "sinh({0})", "Softplus": "softplus({0})", "Softsign": "softsign({0})", "Sqrt": "sqrt({0})", "Tan": "tan({0})", "Tanh": "tanh({0})",
}
BINARY = {
    "Add": "{0} + {1}", "Sub": "{0} - {1}", "Mul": "{0} * {1}", "Div": "{0} / {1}", "Pow": "pow({0}, {1})", "Less": "{0} < {1}",
    "LessOrEqual": "{0} <= {1}", "Greater": "{0} > {1}", "GreaterOrEqual": "{0} >= {1}", "Equal": "{0} == {1}",
    "And": "tg::logical_and({0}, {1})", "Or": "tg::logical_or({0}, {1})", "Xor": "tg::logical_xor({0}, {1})",
    "PRelu": "leaky_relu({0}, {1})",
}
PREDICATES = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "And", "Or", "Xor", "Not", "IsInf", "IsNaN"}
REDUCTIONS = {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "prod"}
HEADERS = {
    "embedding": "nn/layers/embedding", "lstm": "nn/layers/recurrent", "gru": "nn/layers/gru", "simple_rnn": "nn/layers/simple_rnn",
    "layer_normalization": "nn/layers/sequence", "conv_transpose": "nn/layers/transposed_convolution", "lp_pool": "ops/pooling/lp_pooling",
    "ordering": "ops/ordering/ordering", "cumulative": "ops/cumulative/cumulative", "gather": "ops/gather/gather", "fill": "ops/movement/fill",
    "padding": "ops/movement/padding", "ops": "ops/ops",
}


def braces(items):
    return "{" + ", ".join(str(i) for i in items) + "}"


def channels_last(rank):
    return [0] + list(range(2, rank)) + [1]


def number_text(value):
    """Formats a scalar as C++."""
    if isinstance(value, (bool, numpy.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, numpy.integer)):
        return str(int(value))
    value = float(value)
    if value != value or value in (float("inf"), float("-inf")):
        sign = "-" if value < 0 else ""
        return sign + "std::numeric_limits<double>::" + ("quiet_NaN()" if value != value else "infinity()")
    short = str(numpy.float32(value))
    text = short if numpy.float32(value) == value else repr(value)
    return text[:-2] if text.endswith(".0") and abs(value) < 1e15 else text
