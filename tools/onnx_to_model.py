#!/usr/bin/env python3
"""Turns an ONNX file into a model header and a safetensors file: a network made elsewhere becomes a model that can be compiled and trained on.

    onnx_to_model.py m.onnx [--name network] [--header network.hpp] [--weights network.safetensors]

Needs PyPI's onnx and numpy. What it does not know is named, all of it at once, and nothing is written. See docs/onnx.md.
"""
import argparse
import json
import os
import pathlib
import re
import struct
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

KEYWORDS = set("""and or not xor auto bool break case char class const default delete do double else enum false float for goto if int long
namespace new operator return short signed sizeof static struct switch template this true typename union unsigned using void while scope
x""".split())


class Unsupported(Exception):
    """Why a node cannot be translated."""


class Value:
    """A tensor of the model: axis i in memory is axis axes[i] of ONNX. `flat` = (extents, order) of a flattened last axis."""

    def __init__(self, text, dims, dtype, axes=None, flat=None, inner=None):
        self.text, self.dims, self.dtype, self.flat, self.inner = text, list(dims), dtype, flat, inner
        self.axes = list(axes) if axes is not None else list(range(len(self.dims)))

    rank = property(lambda self: len(self.dims))
    plain = property(lambda self: self.axes == list(range(self.rank)) and not self.flat)

    def extent(self, axis):
        """An ONNX axis' extent as C++."""
        d = self.dims[axis]
        return d if isinstance(d, int) else f"shape_of({self.text})[{self.axes.index(axis)}]"


class Constant:
    """An initializer, or what is computed from some."""

    def __init__(self, array, name=None):
        self.array, self.name = array, name

    dims = property(lambda self: list(self.array.shape))
    rank = property(lambda self: self.array.ndim)


class Extents:
    """Extents that are known when the model is traced: numbers, or C++."""

    def __init__(self, items, scalar=False):
        self.items, self.scalar = list(items), scalar


class Filled:
    """One number everywhere."""

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
    """A scalar as C++."""
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


class Translation:
    def __init__(self, model, name):
        self.model, self.name = model, name
        self.values, self.lines, self.weights, self.problems, self.needs = {}, [], {}, [], set()
        self.taken, self.paths, self.variables = set(KEYWORDS), set(), {}
        graph = model.graph
        self.types = {}
        for info in list(graph.value_info) + list(graph.input) + list(graph.output):
            t = info.type.tensor_type
            dims = [d.dim_value if d.HasField("dim_value") else None for d in t.shape.dim] if t.HasField("shape") else None
            self.types[info.name] = (t.elem_type, dims)
        self.uses = {}
        for node in graph.node:
            for each in node.input:
                self.uses.setdefault(each, []).append(node)
        for output in graph.output:
            self.uses.setdefault(output.name, []).append(None)
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 17)
        self.skip = set()

    # --- names ---

    def variable_name(self, wanted):
        name = re.sub(r"\W+", "_", wanted).strip("_").lower() or "h"
        if name[0].isdigit():
            name = "h" + name
        unique, k = name, 1
        while unique in self.taken:
            k += 1
            unique = f"{name}{k}"
        self.taken.add(unique)
        return unique

    def path_of(self, node, constant=None):
        """The scope of a layer: that of its weight's name, else the node's."""
        name = constant.name if constant is not None and constant.name and "::" not in constant.name else None
        if name is not None:
            name = re.sub(r"(?<=\w)\.(?=\w)", "/", name)
            path = name.rsplit("/", 1)[0] if "/" in name else name
        else:
            path = (node.name or node.output[0]).strip("/")
            path = path.rsplit("/", 1)[0] if "/" in path else path
        path = re.sub(r"[^\w/.\-]+", "_", path).strip("/") or node.op_type.lower()
        unique, k = path, 1
        while unique in self.paths:
            k += 1
            unique = f"{path}_{k}"
        self.paths.add(unique)
        return unique

    def scope(self, path):
        return "scope / " + " / ".join(json.dumps(part) for part in path.split("/"))

    def emit(self, expression, hint="h", binding=None):
        if binding:
            names = [self.variable_name(b) for b in binding]
            self.lines.append((names, f"const auto [{', '.join(names)}] = {expression};"))
            return names
        name = self.variable_name(hint)
        self.lines.append(([name], f"const auto {name} = {expression};"))
        return name

    # --- values ---

    def keep(self, name, array):
        self.weights[name] = numpy.ascontiguousarray(array)

    def variable(self, constant, array, path=None):
        """A free weight, in some order of its axes."""
        if array.dtype not in (numpy.float32, numpy.float64):
            raise Unsupported(f"a constant of {array.dtype} {list(array.shape)} as an operand")
        key = (constant.name, array.shape, array.tobytes())
        if key not in self.variables:
            wanted = constant.name or f"constant_{len(self.variables)}"
            name = re.sub(r"[^\w/.\-]+", "_", re.sub(r"(?<=\w)\.(?=\w)", "/", wanted)).strip("/")
            unique, k = name, 1
            while unique in self.weights:
                k += 1
                unique = f"{name}_{k}"
            self.keep(unique, array)
            kind = "double" if array.dtype == numpy.float64 else "float"
            self.variables[key] = self.emit(f'scope.template variable<{kind}>({json.dumps(unique)}, {braces(array.shape)})', unique.split("/")[-1])
        return self.variables[key]

    def tensor(self, v):
        """As a Value, whatever it is."""
        if isinstance(v, Value):
            return v
        if isinstance(v, Filled):
            self.needs.add("fill")
            kind = CPP_TYPES[v.dtype]
            return Value(self.emit(f"tg::fill<{kind}>({self.first}, shaped({braces(v.extents)}), {number_text(v.number)})"), v.dims, v.dtype)
        if isinstance(v, Extents):
            raise Unsupported("extents as elements of a tensor")
        if v.array.size == 1 or (v.array.size and (v.array == v.array.flat[0]).all() and v.array.dtype.kind in "bi"):
            return self.tensor(Filled(v.array.flat[0].item(), v.dims, NUMPY_TYPES[str(v.array.dtype)]))
        return Value(self.variable(v, v.array), v.dims, NUMPY_TYPES[str(v.array.dtype)])

    def arranged(self, v, axes):
        """Its text, with these axes in memory."""
        v = self.tensor(v)
        if v.flat:
            extents, order = v.flat
            before = [v.extent(i) for i in range(v.rank - 1)]
            text = f"tg::reshape({v.text}, shaped({braces(before + [extents[a] for a in order])}))"
            back = list(range(v.rank - 1)) + [v.rank - 1 + order.index(a) for a in range(len(extents))]
            text = f"tg::reshape(tg::transpose({text}, {braces(back)}), shaped({braces(before + [v.dims[-1]])}))"
            v = Value(self.emit(text), v.dims, v.dtype)
        if v.axes == list(axes):
            return v.text
        return self.emit(f"tg::transpose({v.text}, {braces(v.axes.index(a) for a in axes)})", v.text)

    def plain(self, v):
        return self.arranged(v, range(v.rank))

    def lying(self, v):
        """The same without a flattened axis."""
        v = self.tensor(v)
        return Value(self.plain(v), v.dims, v.dtype) if v.flat else v

    def integers(self, v):
        if isinstance(v, Constant):
            return [int(i) for i in v.array.reshape(-1)]
        if isinstance(v, Extents) and all(isinstance(i, int) for i in v.items):
            return v.items
        raise Unsupported("axes or amounts that are computed")

    def extents(self, v):
        if isinstance(v, Extents):
            return v.items
        return self.integers(v)

    # --- running ---

    def run(self):
        graph = self.model.graph
        for each in graph.initializer:
            self.values[each.name] = Constant(numpy_helper.to_array(each), each.name)
        self.inputs = [i for i in graph.input if i.name not in self.values]
        for info in self.inputs:
            dtype, dims = self.types[info.name]
            if dims is None:
                raise Unsupported(f"input '{info.name}' without a rank")
            self.values[info.name] = Value(self.variable_name(info.name if info.name != "x" else "input"), dims, dtype)
        self.first = self.values[self.inputs[0].name].text
        self.values[""] = None
        for node in graph.node:
            if any(i not in self.values for i in node.input):
                continue  # of something that has been named already
            try:
                self.translate(node)
            except Unsupported as why:
                self.problems.append(f"{node.op_type} '{node.name or node.output[0]}'" + (f": {why}" if str(why) else ""))
        if self.problems:
            return
        results = [(o.name, self.plain(self.tensor(self.values[o.name]))) for o in graph.output]
        if len(results) == 1:
            self.returns = results[0][1]
        else:
            self.returns = "tg::outputs{" + ", ".join(f"tg::output<{json.dumps(n)}>({t})" for n, t in results) + "}"

    def translate(self, node):
        if node.output[0] in self.skip:
            return
        values = [self.values[i] for i in node.input]
        settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        settings = {k: v.decode() if isinstance(v, bytes) else v for k, v in settings.items()}
        if node.domain not in ("", "ai.onnx"):
            raise Unsupported(f"domain {node.domain}")
        if node.op_type == "Constant":
            array = numpy_helper.to_array(settings["value"]) if "value" in settings else numpy.array(next(iter(settings.values())))
            if array.dtype == numpy.float64 and "value" not in settings:
                array = array.astype(numpy.float32)
            self.values[node.output[0]] = Constant(array)
            return
        if values and all(v is None or isinstance(v, Constant) for v in values):
            if self.fold(node, values):
                return
        if any(isinstance(v, Extents) for v in values) and self.of_extents(node, values, settings):
            return
        rule = getattr(self, "on_" + node.op_type.lower(), None)
        if node.op_type in UNARY or node.op_type in BINARY:
            result = self.elementwise(node, (UNARY.get(node.op_type) or BINARY[node.op_type]), values)
        elif node.op_type in REDUCTIONS:
            result = self.reduction(node, values, settings)
        elif rule is None:
            raise Unsupported()
        else:
            result = rule(node, values, settings)
        if not isinstance(result, tuple):
            result = (result,)
        for name, value in zip(node.output, result):
            if name and value is not None:
                self.values[name] = value

    def fold(self, node, values):
        """Evaluates a node of constants alone."""
        graph = onnx.helper.make_graph([node], "fold", [], [onnx.helper.make_empty_tensor_value_info(o) for o in node.output if o],
                                       [numpy_helper.from_array(v.array, n) for n, v in dict(zip(node.input, values)).items() if v is not None])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        results = ReferenceEvaluator(model).run(None, {})
        names = [v.name for v in values if v is not None and v.name]
        for output, array in zip([o for o in node.output if o], results):
            self.values[output] = Constant(numpy.asarray(array), names[0] if names else None)
        return True

    def of_extents(self, node, values, settings):
        """Arithmetic of extents, done when the model is traced. False: something else reads them."""
        op, items = node.op_type, [v.items if isinstance(v, Extents) else v for v in values]
        out = node.output[0]
        if op in ("Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape") and isinstance(values[0], Extents):
            target = CPP_TYPES.get(settings.get("to"), "")
            if op == "Cast" and target not in ("std::int64_t", "std::int32_t"):
                return False
            scalar = op == "Squeeze" or (op == "Cast" and values[0].scalar)
            self.values[out] = Extents(items[0], scalar)
        elif op == "Gather" and isinstance(values[0], Extents) and isinstance(values[1], Constant):
            at = values[1].array
            self.values[out] = Extents([items[0][int(i)] for i in at.reshape(-1)], at.ndim == 0)
        elif op == "Slice" and isinstance(values[0], Extents):
            begin, end = self.integers(values[1])[0], self.integers(values[2])[0]
            step = self.integers(values[4])[0] if len(values) > 4 else 1
            self.values[out] = Extents(items[0][begin:end:step])
        elif op == "Concat":
            self.values[out] = Extents([i for v in values for i in self.extents(v)])
        elif op in ("Add", "Sub", "Mul", "Div") and all(isinstance(v, Extents) or (isinstance(v, Constant) and v.array.dtype.kind == "i") for v in values):
            a, b = (self.extents(v) for v in values)
            count = max(len(a), len(b))
            a, b = (v * count if len(v) == 1 else v for v in (a, b))
            sign = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}[op]
            done = [(x // y if op == "Div" else {"+": x + y, "-": x - y, "*": x * y}[sign]) if isinstance(x, int) and isinstance(y, int) else
                    f"({x} {sign} {y})" for x, y in zip(a, b)]
            self.values[out] = Extents(done, all(not isinstance(v, Extents) or v.scalar for v in values))
        else:
            return False
        return True

    # --- elementwise ---

    def side_by_side(self, values):
        """Operands as C++ in one order of axes; (texts, axes, dims, flat)."""
        wide = max(v.rank for v in values if not isinstance(v, Extents))
        full = [v for v in values if isinstance(v, Value) and v.rank == wide]
        flattened = [v for v in full if v.flat]
        others = [v for v in values if not (isinstance(v, Value) and v.flat)]
        dims = [1] * wide
        for v in values:
            for i, d in enumerate(v.dims if not isinstance(v, Extents) else []):
                at = i + wide - v.rank
                dims[at] = d if dims[at] == 1 else dims[at]
        if flattened and len(full) == 1 and all(isinstance(v, Constant) and v.array.size == 1 for v in others):
            axes, flat = flattened[0].axes, flattened[0].flat
        else:
            axes, flat = (self.lying(full[0]).axes if full else list(range(wide))), None
            for v in values:  # what does not fit between permuted axes is moved
                if isinstance(v, Value) and 0 < v.rank < wide and axes != list(range(wide)):
                    own = [a - (wide - v.rank) for a in axes if a >= wide - v.rank]
                    if own != sorted(own):
                        axes = list(range(wide))
        texts = []
        for v in values:
            if isinstance(v, Constant) and v.array.size == 1:
                texts.append(number_text(v.array.reshape(-1)[0]))
            elif isinstance(v, Constant):
                array = v.array.reshape([1] * (wide - v.rank) + v.dims).transpose(axes)
                while array.ndim > 1 and array.shape[0] == 1:
                    array = array[0]
                texts.append(self.variable(v, array))
            elif isinstance(v, Extents):
                texts.append(f"extent_number({full[0].text}, {v.items[0]})" if len(v.items) == 1 else self.plain(v))
            elif flat and v.flat:
                texts.append(v.text)
            elif v.rank == wide:
                texts.append(self.arranged(v, axes))
            else:
                text = self.plain(v)
                missing = [i for i, a in enumerate(axes) if a < wide - v.rank] if axes != list(range(wide)) and v.rank else []
                texts.append(f"tg::expand_dims({text}, {braces(missing)})" if missing else text)
        return texts, axes, dims, flat

    def elementwise(self, node, form, values, dtype=None):
        if all(not isinstance(v, (Value, Filled)) for v in values):
            raise Unsupported("operands that are numbers alone")
        values = [self.tensor(v) if isinstance(v, Filled) else v for v in values]
        texts, axes, dims, flat = self.side_by_side(values)
        if dtype is None:
            dtype = 9 if node.op_type in PREDICATES else next(v.dtype for v in values if isinstance(v, Value))
        return Value(self.emit(f"eval({form.format(*texts)})"), dims, dtype, axes, flat)

    def on_max(self, node, values, settings, name="maximum"):
        result = values[0]
        for v in values[1:]:
            result = self.elementwise(node, name + "({0}, {1})", [result, v])
        return result

    def on_min(self, node, values, settings):
        return self.on_max(node, values, settings, "minimum")

    def on_sum(self, node, values, settings):
        return self.elementwise(node, " + ".join("{%d}" % i for i in range(len(values))), values)

    def on_where(self, node, values, settings):
        numbers = [v for v in values[1:] if not isinstance(v, Value)]
        if len(numbers) == 2 and all(isinstance(v, Constant) and v.array.size == 1 for v in numbers):
            values[1] = Filled(values[1].array.item(), [1], NUMPY_TYPES[str(values[1].array.dtype)])
        kind = next((v.dtype for v in values[1:] if isinstance(v, (Value, Filled))), 1)
        return self.elementwise(node, "where({0}, {1}, {2})", values, kind)

    def on_clip(self, node, values, settings):
        low = values[1] if len(values) > 1 else None
        high = values[2] if len(values) > 2 else None
        if low is None and "min" in settings:
            low = Constant(numpy.float32(settings["min"]).reshape(()))
        if high is None and "max" in settings:
            high = Constant(numpy.float32(settings["max"]).reshape(()))
        if low is not None and high is not None:
            return self.elementwise(node, "clip({0}, {1}, {2})", [values[0], low, high])
        if low is None and high is None:
            return values[0]
        return self.elementwise(node, "maximum({0}, {1})" if high is None else "minimum({0}, {1})", [values[0], low if high is None else high])

    def on_mod(self, node, values, settings):
        if not settings.get("fmod", 0):
            return self.elementwise(node, "{0} % {1}", values)
        return self.elementwise(node, "{0} - trunc({0} / {1}) * {1}", values)

    def on_leakyrelu(self, node, values, settings):
        return self.elementwise(node, f"leaky_relu({{0}}, {number_text(numpy.float32(settings.get('alpha', 0.01)))})", values)

    def on_elu(self, node, values, settings):
        return self.elementwise(node, f"elu({{0}}, {number_text(settings.get('alpha', 1.0))})", values)

    def on_hardsigmoid(self, node, values, settings):
        a, b = settings.get("alpha", 0.2), settings.get("beta", 0.5)
        return self.elementwise(node, f"clip({{0}} * {number_text(a)} + {number_text(b)}, 0, 1)", values)

    def on_gelu(self, node, values, settings):
        return self.elementwise(node, "gelu({0}, tg::approximate)" if settings.get("approximate") == "tanh" else "gelu({0})", values)

    def on_cast(self, node, values, settings):
        if settings["to"] not in CPP_TYPES:
            raise Unsupported("to an element type that there is not")
        if isinstance(values[0], Extents):
            self.needs.add("fill")
            text = f"extent_number(tg::fill<{CPP_TYPES[settings['to']]}>({self.first}, {{}}, 0), {values[0].items[0]})"
            if len(values[0].items) != 1:
                raise Unsupported("extents as numbers")
            return Value(self.emit(f"eval({text})"), [] if values[0].scalar else [1], settings["to"])
        v = self.tensor(values[0])
        if v.dtype == settings["to"]:
            return v
        return self.elementwise(node, f"tg::cast<{CPP_TYPES[settings['to']]}>({{0}})", [v], settings["to"])

    def on_identity(self, node, values, settings):
        return values[0]

    on_dropout = on_identity

    # --- shapes ---

    def on_shape(self, node, values, settings):
        v = values[0]
        first, last = settings.get("start", 0), settings.get("end", v.rank)
        if isinstance(v, Value):
            return Extents([v.extent(i) for i in range(v.rank)][first:last])
        return Extents((v.extents if isinstance(v, Filled) else v.dims)[first:last])

    def on_transpose(self, node, values, settings):
        v = self.lying(values[0])
        order = settings.get("perm", list(range(v.rank))[::-1])
        return Value(v.text, [v.dims[a] for a in order], v.dtype, [order.index(a) for a in v.axes])

    def on_flatten(self, node, values, settings):
        v = self.lying(values[0])
        axis = settings.get("axis", 1) % (v.rank + 1)
        if axis == 1:
            return self.merged(v, 1)
        size = lambda dims: int(numpy.prod(dims, dtype=int)) if all(isinstance(d, int) for d in dims) else None
        return self.reshaped(v, [size(v.dims[:axis]), size(v.dims[axis:])])

    def merged(self, v, first):
        """The axes from `first` on as one."""
        tail = v.dims[first:]
        size = int(numpy.prod(tail, dtype=int)) if all(isinstance(d, int) for d in tail) else None
        if v.axes[first:] == list(range(first, v.rank)):  # in their order, the others in any
            texts = [v.extent(a) for a in v.axes[:first]] + [size if size is not None else -1]
            return Value(self.emit(f"tg::reshape({v.text}, shaped({braces(texts)}))"), v.dims[:first] + [size], v.dtype, v.axes[:first] + [first])
        if v.axes[:first] == list(range(first)) and size is not None:
            texts = [v.extent(a) for a in range(first)] + [size]
            text = f"tg::flatten({v.text})" if first == 1 else f"tg::reshape({v.text}, shaped({braces(texts)}))"
            return Value(self.emit(text), v.dims[:first] + [size], v.dtype, None, (tail, [a - first for a in v.axes[first:]]))
        return self.merged(Value(self.plain(v), v.dims, v.dtype), first)

    def reshaped(self, v, target):
        """To extents that are numbers, C++, None (what is left) or, as 0 would be, ("same", axis)."""
        known = [d if isinstance(d, int) else None for d in target]
        texts = [-1 if d is None else d for d in target]
        return Value(self.emit(f"tg::reshape({self.plain(v)}, shaped({braces(texts)}))"), known, v.dtype)

    def on_reshape(self, node, values, settings):
        v = self.lying(values[0])
        wanted = self.extents(values[1])
        target = []
        for i, e in enumerate(wanted):
            if e == 0 and not settings.get("allowzero", 0):
                e = v.extent(i)
            target.append(None if e == -1 else e)
        sizes = [v.extent(i) for i in range(v.rank)]
        same = 0
        while same < min(len(target), v.rank) and target[same] == sizes[same]:
            same += 1
        if len(target) == v.rank and same == v.rank:
            return v
        if len(target) == same + 1 and same < v.rank - 1 and v.rank > 1:
            return self.merged(v, same)
        known = self.types.get(node.output[0], (0, None))[1]
        result = self.reshaped(v, target)
        if known is not None:
            result.dims = [d if isinstance(d, int) else k for d, k in zip(result.dims, known)]
        return result

    def axes_of(self, values, settings):
        return self.integers(values[1]) if len(values) > 1 and values[1] is not None else list(settings.get("axes", []))

    def on_squeeze(self, node, values, settings):
        v = self.lying(values[0])
        gone = sorted(a % v.rank for a in self.axes_of(values, settings)) or [i for i, d in enumerate(v.dims) if d == 1]
        if v.inner is not None and gone == [v.inner[0]]:
            return v.inner[1]
        left = [a for a in range(v.rank) if a not in gone]
        axes = [left.index(a) for a in v.axes if a in left]
        places = [v.axes.index(a) for a in gone]
        return Value(self.emit(f"tg::squeeze({v.text}, {braces(sorted(places))})"), [v.dims[a] for a in left], v.dtype, axes)

    def on_unsqueeze(self, node, values, settings):
        given = values[0]
        if isinstance(given, Filled):
            given = self.tensor(given)
        v = self.lying(given)
        added = self.axes_of(values, settings)
        rank = v.rank + len(added)
        added = sorted(a % rank for a in added)
        old = [a for a in range(rank) if a not in added]
        dims = [1 if a in added else v.dims[old.index(a)] for a in range(rank)]
        if v.plain:
            inner = (added[0], v) if len(added) == 1 else None
            return Value(self.emit(f"tg::expand_dims({v.text}, {braces(added)})"), dims, v.dtype, None, None, inner)
        axes = added + [old[a] for a in v.axes]
        inner = (added[0], v) if len(added) == 1 else None
        return Value(self.emit(f"tg::expand_dims({v.text}, {braces(range(len(added)))})"), dims, v.dtype, axes, None, inner)

    def on_expand(self, node, values, settings):
        target = self.extents(values[1])
        v = values[0]
        if isinstance(v, Constant) and v.array.size == 1:
            return Filled(v.array.item(), [1] * max(0, v.rank - len(target)) + list(target), NUMPY_TYPES[str(v.array.dtype)])
        v = self.tensor(v)
        offset = len(target) - v.rank
        texts = [v.extent(i - offset) if e == 1 and i >= offset else e for i, e in enumerate(target)]
        return Value(self.emit(f"tg::broadcast_to({self.plain(v)}, shaped({braces(texts)}))"), [t if isinstance(t, int) else None for t in texts], v.dtype)

    def on_constantofshape(self, node, values, settings):
        value = numpy_helper.to_array(settings["value"]) if "value" in settings else numpy.zeros(1, numpy.float32)
        return Filled(value.item(), self.extents(values[0]), NUMPY_TYPES[str(value.dtype)])

    def on_concat(self, node, values, settings):
        parts = [self.lying(v) for v in values]
        axis = settings["axis"] % parts[0].rank
        axes = next((p.axes for p, v in zip(parts, values) if isinstance(v, Value)), parts[0].axes)
        dims = list(parts[0].dims)
        sizes = [p.dims[axis] for p in parts]
        dims[axis] = sum(sizes) if all(isinstance(s, int) for s in sizes) else None
        texts = [self.arranged(p, axes) for p in parts]
        return Value(self.emit(f"tg::concat({braces(texts)}, {axes.index(axis)})"), dims, parts[0].dtype, axes)

    def on_slice(self, node, values, settings):
        v = self.lying(values[0])
        starts = self.extents(values[1]) if len(values) > 1 else settings["starts"]
        ends = self.extents(values[2]) if len(values) > 2 else settings["ends"]
        axes = self.axes_of([None, values[3] if len(values) > 3 else None], settings) or list(range(len(starts)))
        steps = self.integers(values[4]) if len(values) > 4 and values[4] is not None else [1] * len(starts)
        ranges, dims, special = [None] * v.rank, list(v.dims), None
        for start, end, axis, step in zip(starts, ends, axes, steps):
            axis %= v.rank
            if not isinstance(start, int):
                raise Unsupported("from a place that is computed")
            if not isinstance(end, int):
                special = (axis, start, end, step)
                dims[axis] = None
                continue
            open_end = end >= 2**31 - 1 or end <= -(2**31 - 1)
            place = v.axes.index(axis)
            if step < 0 and open_end and start == -1 and step == -1:
                ranges[place] = "reverse"
                continue
            size = v.dims[axis]
            if isinstance(size, int):
                dims[axis] = len(range(size)[slice(start, None if open_end else end, step)])
            else:
                dims[axis] = None
                if not open_end and (start < 0) == (end < 0) and step > 0:
                    dims[axis] = len(range(start, end, step))
            stop = "tg::all.end" if open_end else end
            ranges[place] = f"{{{start}, {stop}, {step}}}" if step != 1 or open_end else f"{{{start}, {end}}}"
            if open_end and step == 1:
                ranges[place] = f"{{{start}}}"
        text = v.text
        backwards = [i for i, r in enumerate(ranges) if r == "reverse"]
        if backwards:
            text = f"tg::reverse({text}, {braces(backwards)})"
        if any(r not in (None, "reverse") for r in ranges):
            last = max(i for i, r in enumerate(ranges) if r not in (None, "reverse"))
            text = f"tg::slice({text}, {braces('tg::all' if r in (None, 'reverse') else r for r in ranges[:last + 1])})"
        if special:
            axis, start, end, step = special
            if step != 1 or start < 0:
                raise Unsupported("to a place that is computed, in steps")
            place = v.axes.index(axis)
            text = f"tg::detail::part_of(eval({text}), {place}, {start}, {end} - {start}, std::source_location::current())"
        return Value(self.emit(text), dims, v.dtype, v.axes)

    def on_split(self, node, values, settings):
        v = self.lying(values[0])
        axis = settings.get("axis", 0) % v.rank
        sizes = self.integers(values[1]) if len(values) > 1 and values[1] is not None else settings.get("split")
        place, count = v.axes.index(axis), len(node.output)
        if not sizes:
            size = v.dims[axis]
            if not isinstance(size, int):
                raise Unsupported("of an axis whose extent is not a number")
            part = -(-size // count)
            sizes = [min(part, size - i * part) for i in range(count)]
        results, at = [], 0
        for size in sizes:
            ranges = ["tg::all"] * place + [f"{{{at}, {at + size}}}"]
            dims = list(v.dims)
            dims[axis] = size
            results.append(Value(self.emit(f"tg::slice({v.text}, {braces(ranges)})"), dims, v.dtype, v.axes))
            at += size
        return tuple(results)

    def on_pad(self, node, values, settings):
        v = self.lying(values[0])
        amounts = self.integers(values[1]) if len(values) > 1 else settings["pads"]
        if len(values) > 3 and values[3] is not None:
            raise Unsupported("of named axes")
        mode = settings.get("mode", "constant")
        if min(amounts) < 0 or mode not in ("constant", "reflect", "edge", "wrap"):
            raise Unsupported("negative amounts, or in a way that there is not")
        value = values[2].array.item() if len(values) > 2 and values[2] is not None else settings.get("value", 0)
        pairs = [f"{{{amounts[a]}, {amounts[a + v.rank]}}}" for a in v.axes]
        options = f"{{.value = {number_text(value)}}}" if mode == "constant" else f"{{.mode = tg::pad_mode::{mode}}}"
        dims = [d + amounts[i] + amounts[i + v.rank] if isinstance(d, int) else None for i, d in enumerate(v.dims)]
        self.needs.add("padding")
        return Value(self.emit(f"tg::pad({v.text}, {braces(pairs)}, {options})"), dims, v.dtype, v.axes)

    # --- choosing ---

    def on_gather(self, node, values, settings):
        table, indices = values
        axis = settings.get("axis", 0)
        if isinstance(table, Constant) and table.rank == 2 and axis == 0 and table.array.dtype == numpy.float32 and isinstance(indices, Value):
            path = self.path_of(node, table)
            self.keep(path + "/embeddings", table.array)
            self.needs.add("embedding")
            rows, width = table.dims
            at = self.lying(indices)
            text = f"tg::embedding({self.scope(path)}, {at.text}, {{.input_dim = {rows}, .output_dim = {width}}})"
            return Value(self.emit(text, path.split("/")[-1]), at.dims + [width], 1, at.axes + [at.rank])
        v = self.lying(table)
        axis %= v.rank
        place = v.axes.index(axis)
        if isinstance(indices, Constant) and indices.rank == 0:
            left = [a for a in range(v.rank) if a != axis]
            axes = [left.index(a) for a in v.axes if a != axis]
            return Value(self.emit(f"tg::take({v.text}, {int(indices.array)}, {place})"), [v.dims[a] for a in left], v.dtype, axes)
        if isinstance(indices, Constant) and indices.rank == 1:
            return self.runs(v, axis, [int(i) for i in indices.array])
        self.needs.add("gather")
        at = self.tensor(indices)
        dims = v.dims[:axis] + at.dims + v.dims[axis + 1:]
        return Value(self.emit(f"tg::gather({self.plain(v)}, {self.plain(at)}, {axis})"), dims, v.dtype)

    def runs(self, v, axis, picks):
        """Elements at known places: slices behind one another."""
        place, size = v.axes.index(axis), v.dims[axis]
        picks = [p + size if p < 0 and isinstance(size, int) else p for p in picks]
        if not picks or min(picks) < 0:
            raise Unsupported("at places from the end of an axis whose extent is not a number")
        parts, i = [], 0
        while i < len(picks):
            k = i + 1
            step = picks[k] - picks[i] if k < len(picks) and abs(picks[k] - picks[i]) == 1 else 1
            while k < len(picks) and picks[k] - picks[k - 1] == step:
                k += 1
            low, high = min(picks[i:k]), max(picks[i:k])
            part = f"tg::slice({v.text}, {braces(['tg::all'] * place + [f'{{{low}, {high + 1}}}'])})"
            parts.append(part if step > 0 else f"tg::reverse({part}, {place})")
            i = k
        if len(parts) > 64:
            raise Unsupported("at more than 64 runs of places")
        dims = list(v.dims)
        dims[axis] = len(picks)
        text = parts[0] if len(parts) == 1 else f"tg::concat({braces(parts)}, {place})"
        return Value(self.emit(text), dims, v.dtype, v.axes)

    def on_gathernd(self, node, values, settings):
        v, at = self.tensor(values[0]), self.tensor(values[1])
        batch = settings.get("batch_dims", 0)
        self.needs.add("gather")
        if batch == 0:
            return Value(self.emit(f"tg::gather_nd({self.plain(v)}, {self.plain(at)})"), at.dims[:-1] + v.dims[at.dims[-1]:], v.dtype)
        if at.dims[-1] != 1:
            raise Unsupported("of batches by more than one index")
        inner = at.inner[1] if at.inner is not None and at.inner[0] == at.rank - 1 else None
        index = self.plain(inner) if inner is not None else f"tg::squeeze({self.plain(at)}, {at.rank - 1})"
        return Value(self.emit(f"tg::gather({self.plain(v)}, {index}, {batch}, {batch})"), at.dims[:-1] + v.dims[batch + 1:], v.dtype)

    def on_gatherelements(self, node, values, settings):
        v, at = self.tensor(values[0]), self.tensor(values[1])
        self.needs.add("gather")
        return Value(self.emit(f"tg::take_along({self.plain(v)}, {self.plain(at)}, {settings.get('axis', 0)})"), at.dims, v.dtype)

    def on_onehot(self, node, values, settings):
        at, depth, pair = self.tensor(values[0]), self.integers(values[1])[0], values[2].array
        axis = settings.get("axis", -1) % (at.rank + 1)
        self.needs.add("gather")
        dtype = NUMPY_TYPES[str(pair.dtype)]
        text = (f"tg::one_hot<{CPP_TYPES[dtype]}>({self.plain(at)}, {depth}, "
                f"{{.axis = {axis}, .on = {number_text(pair[1])}, .off = {number_text(pair[0])}}})")
        return Value(self.emit(text), at.dims[:axis] + [depth] + at.dims[axis:], dtype)

    def on_range(self, node, values, settings):
        begin, end, step = ((v.items[0] if isinstance(v, Extents) else v.array.item()) if v is not None else None for v in values)
        if not isinstance(begin, int) or step != 1:
            raise Unsupported("from a place or in steps that are computed")
        self.needs.add("fill")
        return Value(self.emit(f"tg::arange<std::int64_t>({self.first}, {end} - {begin}, {begin})" if begin else
                               f"tg::arange<std::int64_t>({self.first}, {end})"), [end - begin if isinstance(end, int) else None], 7)

    def on_topk(self, node, values, settings):
        v = self.tensor(values[0])
        axis = settings.get("axis", -1) % v.rank
        k = self.extents(values[1])[0]
        whole = not isinstance(k, int) or k == v.dims[axis]
        self.needs.update(("ordering", "gather"))
        x, down = self.plain(v), "true" if settings.get("largest", 1) else "false"
        at = self.emit(f"tg::argsort({x}, {axis}, {{.descending = {down}}})")
        dims = list(v.dims)
        if not whole:
            at = self.emit(f"tg::slice({at}, {braces(['tg::all'] * axis + [f'{{0, {k}}}'])})")
            dims[axis] = k
        return Value(self.emit(f"tg::take_along({x}, {at}, {axis})"), dims, v.dtype), Value(at, dims, 6)

    def on_argmax(self, node, values, settings, name="argmax"):
        v = self.tensor(values[0])
        axis, keep = settings.get("axis", 0) % v.rank, settings.get("keepdims", 1)
        if settings.get("select_last_index", 0):
            raise Unsupported("the last of several")
        self.needs.add("ordering")
        text = f"tg::{name}({self.plain(v)}, {axis}, {{.keepdims = {'true' if keep else 'false'}}})"
        return Value(self.emit(text), [1 if i == axis else d for i, d in enumerate(v.dims) if keep or i != axis], 6)

    def on_argmin(self, node, values, settings):
        return self.on_argmax(node, values, settings, "argmin")

    # --- reductions ---

    def reduction(self, node, values, settings):
        v = self.lying(values[0])
        axes = sorted(a % v.rank for a in self.axes_of(values, settings))
        keep = settings.get("keepdims", 1)
        if not axes:
            if settings.get("noop_with_empty_axes", 0):
                return v
            axes = list(range(v.rank))
        left = list(range(v.rank)) if keep else [a for a in range(v.rank) if a not in axes]
        options = ", {.keepdims = true}" if keep else ""
        text = f"tg::{REDUCTIONS[node.op_type]}({v.text}, {braces(sorted(v.axes.index(a) for a in axes))}{options})"
        return Value(self.emit(text), [1 if a in axes else v.dims[a] for a in left], v.dtype, [left.index(a) for a in v.axes if a in left])

    def on_softmax(self, node, values, settings, name="softmax"):
        v = self.lying(values[0])
        axis = settings.get("axis", -1 if self.opset >= 13 else 1) % v.rank
        if self.opset < 13 and axis != v.rank - 1:
            raise Unsupported("over several axes, as before opset 13")
        return Value(self.emit(f"tg::{name}({v.text}, {v.axes.index(axis)})"), v.dims, v.dtype, v.axes)

    def on_logsoftmax(self, node, values, settings):
        return self.on_softmax(node, values, settings, "log_softmax")

    def on_cumsum(self, node, values, settings):
        v = self.lying(values[0])
        place = v.axes.index(self.integers(values[1])[0] % v.rank)
        self.needs.add("cumulative")
        options = [f".{n} = true" for n in ("exclusive", "reverse") if settings.get(n, 0)]
        return Value(self.emit(f"tg::cumulative_sum({v.text}, {place}" + (f", {braces(options)}" if options else "") + ")"), v.dims, v.dtype, v.axes)

    # --- layers ---

    def dense(self, node, v, kernel, kernel_array, bias_array):
        path = self.path_of(node, kernel)
        if v.flat:
            extents, order = v.flat
            columns = kernel_array.shape[1]
            kernel_array = kernel_array.reshape(list(extents) + [columns]).transpose(list(order) + [len(order)]).reshape(-1, columns)
        self.keep(path + "/kernel", kernel_array)
        units = kernel_array.shape[1]
        if bias_array is not None:
            self.keep(path + "/bias", numpy.broadcast_to(bias_array.reshape(-1), [units]))
        options = f"{{.units = {units}" + ("" if bias_array is not None else ", .use_bias = false") + "}"
        return Value(self.emit(f"tg::dense({self.scope(path)}, {v.text}, {options})", path.split("/")[-1]), v.dims[:-1] + [units], v.dtype, v.axes)

    def on_gemm(self, node, values, settings):
        a, b, c = values[0], values[1], values[2] if len(values) > 2 else None
        alpha, beta = settings.get("alpha", 1.0), settings.get("beta", 1.0)
        row = c is None or (isinstance(c, Constant) and (c.rank < 2 or c.dims[0] == 1))
        if isinstance(b, Constant) and not settings.get("transA", 0) and row and isinstance(a, Value):
            kernel = (b.array.T if settings.get("transB", 0) else b.array) * b.array.dtype.type(alpha)
            v = a if a.flat else Value(self.plain(a), a.dims, a.dtype)
            return self.dense(node, v, b, kernel, None if c is None else c.array * c.array.dtype.type(beta))
        texts = [f"tg::transpose({self.plain(self.tensor(v))})" if settings.get(f"trans{n}", 0) else self.plain(self.tensor(v)) for v, n in ((a, "A"), (b, "B"))]
        sizes = [v.dims[::-1] if settings.get(f"trans{n}", 0) else v.dims for v, n in ((a, "A"), (b, "B"))]
        y = Value(self.emit(f"tg::matmul({texts[0]}, {texts[1]})"), [sizes[0][0], sizes[1][1]], self.tensor(a).dtype)
        if alpha != 1:
            y = self.elementwise(node, f"{{0}} * {number_text(alpha)}", [y])
        if c is None:
            return y
        return self.elementwise(node, "{0} + {1}" if beta == 1 else f"{{0}} + {number_text(beta)} * {{1}}", [y, c])

    def on_matmul(self, node, values, settings):
        a, b = values
        if isinstance(b, Constant) and b.rank == 2 and isinstance(a, Value):
            bias, users = None, self.uses.get(node.output[0], [])
            if len(users) == 1 and users[0] is not None and users[0].op_type == "Add":
                other = [i for i in users[0].input if i != node.output[0]]
                c = self.values.get(other[0]) if other else None
                if isinstance(c, Constant) and c.rank == 1 and c.dims[0] == b.dims[1] and c.array.dtype == b.array.dtype:
                    bias = c
            v = a if a.flat or a.axes[-1] == a.rank - 1 else Value(self.plain(a), a.dims, a.dtype)
            y = self.dense(node, v, b, b.array, None if bias is None else bias.array)
            if bias is not None:
                self.skip.add(users[0].output[0])
                self.values[users[0].output[0]] = y
            return y
        x, w = self.tensor(a), self.tensor(b)
        if x.rank < 2 or w.rank < 2:
            raise Unsupported("of vectors")
        dims = (x.dims[:-2] if x.rank >= w.rank else w.dims[:-2]) + [x.dims[-2], w.dims[-1]]
        return Value(self.emit(f"tg::matmul({self.plain(x)}, {self.plain(w)})"), dims, x.dtype)

    def padding(self, settings, taps, strides, dilations):
        spatial = len(taps)
        auto = settings.get("auto_pad", "NOTSET")
        pads = settings.get("pads", [0] * 2 * spatial)
        if auto == "SAME_UPPER":
            return "tg::padding::same()"
        if auto == "SAME_LOWER":
            raise Unsupported("auto_pad SAME_LOWER")
        if auto == "VALID" or not any(pads):
            return ""
        effective = [(k - 1) * d for k, d in zip(taps, dilations)]
        if all(s == 1 for s in strides) and pads == [e // 2 for e in effective] + [e - e // 2 for e in effective]:
            return "tg::padding::same()"
        both = [0, 0, pads[0], pads[1]] if spatial == 1 else [pads[0], pads[2], pads[1], pads[3]]
        return f"tg::padding::amounts({', '.join(map(str, both))})"

    def window(self, settings, spatial, taps=None):
        taps = settings.get("kernel_shape", taps)
        strides = settings.get("strides", [1] * spatial)
        dilations = settings.get("dilations", [1] * spatial)
        return taps, strides, dilations, self.padding(settings, taps, strides, dilations)

    @staticmethod
    def sizes(items):
        return str(items[0]) if len(items) == 1 else braces(items)

    def image(self, v, what="convolution"):
        v = self.tensor(v)
        if v.rank not in (3, 4):
            raise Unsupported(f"{what} of {v.rank - 2} axes")
        axes = channels_last(v.rank)
        return Value(self.arranged(v, axes), v.dims, v.dtype, axes)

    def result_dims(self, node, v, channels=None):
        known = self.types.get(node.output[0], (0, None))[1]
        dims = list(known) if known is not None else [None] * v.rank
        return [v.dims[0], v.dims[1] if channels is None else channels] + dims[2:]

    def on_conv(self, node, values, settings):
        w, b = values[1], values[2] if len(values) > 2 else None
        if not isinstance(w, Constant) or not (b is None or isinstance(b, Constant)):
            raise Unsupported("by a kernel that is computed")
        v = self.image(values[0])
        spatial = v.rank - 2
        taps, strides, dilations, padding = self.window(settings, spatial, w.dims[2:])
        path = self.path_of(node, w)
        self.keep(path + "/kernel", w.array.transpose(list(range(2, v.rank)) + [1, 0]))
        if b is not None:
            self.keep(path + "/bias", b.array)
        options = [f".filters = {w.dims[0]}", f".kernel_size = {self.sizes(taps)}"]
        options += [f".stride = {self.sizes(strides)}"] if any(s != 1 for s in strides) else []
        options += [f".padding = {padding}"] if padding else []
        options += [f".dilation = {self.sizes(dilations)}"] if any(d != 1 for d in dilations) else []
        options += [f".groups = {settings['group']}"] if settings.get("group", 1) != 1 else []
        options += [".use_bias = false"] if b is None else []
        text = f"tg::conv{spatial}d({self.scope(path)}, {v.text}, {braces(options)})"
        return Value(self.emit(text, path.split("/")[-1]), self.result_dims(node, v, w.dims[0]), v.dtype, v.axes)

    def on_convtranspose(self, node, values, settings):
        w, b = values[1], values[2] if len(values) > 2 else None
        if not isinstance(w, Constant) or not (b is None or isinstance(b, Constant)):
            raise Unsupported("by a kernel that is computed")
        if settings.get("output_shape") or settings.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
            raise Unsupported("with output_shape or auto_pad")
        if settings.get("group", 1) != 1:
            raise Unsupported("in groups")
        v = self.image(values[0])
        spatial = v.rank - 2
        taps, strides, dilations = settings.get("kernel_shape", w.dims[2:]), settings.get("strides", [1] * spatial), settings.get("dilations", [1] * spatial)
        pads, more = settings.get("pads", [0] * 2 * spatial), settings.get("output_padding", [0] * spatial)
        both = [0, 0, pads[0], pads[1]] if spatial == 1 else [pads[0], pads[2], pads[1], pads[3]]
        path = self.path_of(node, w)
        self.keep(path + "/kernel", w.array.transpose(list(range(2, v.rank)) + [1, 0]))
        if b is not None:
            self.keep(path + "/bias", b.array)
        options = [f".filters = {w.dims[1]}", f".kernel_size = {self.sizes(taps)}", f".stride = {self.sizes(strides)}",
                   f".padding = tg::padding::amounts({', '.join(map(str, both))})", f".output_padding = {self.sizes(more)}"]
        options += [f".dilation = {self.sizes(dilations)}"] if any(d != 1 for d in dilations) else []
        options += [".use_bias = false"] if b is None else []
        self.needs.add("conv_transpose")
        text = f"tg::conv{spatial}d_transpose({self.scope(path)}, {v.text}, {braces(options)})"
        return Value(self.emit(text, path.split("/")[-1]), self.result_dims(node, v, w.dims[1]), v.dtype, v.axes)

    def on_maxpool(self, node, values, settings, name="max_pooling"):
        if settings.get("ceil_mode", 0) or settings.get("storage_order", 0) or len([o for o in node.output if o]) > 1:
            raise Unsupported("with ceil_mode, storage_order or indices")
        v = self.image(values[0], "pooling")
        spatial = v.rank - 2
        taps, strides, dilations, padding = self.window(settings, spatial)
        options = [f".pool_size = {self.sizes(taps)}", f".stride = {self.sizes(strides)}"]
        options += [f".padding = {padding}"] if padding else []
        options += [f".dilation = {self.sizes(dilations)}"] if any(d != 1 for d in dilations) else []
        options += [".count_include_pad = true"] if settings.get("count_include_pad", 0) and name == "average_pooling" else []
        power = ""
        if name == "lp_pooling":
            self.needs.add("lp_pool")
            power = f"{settings.get('p', 2)}, "
        return Value(self.emit(f"tg::{name}{spatial}d({v.text}, {power}{braces(options)})", "pooled"), self.result_dims(node, v), v.dtype, v.axes)

    def on_averagepool(self, node, values, settings):
        return self.on_maxpool(node, values, settings, "average_pooling")

    def on_lppool(self, node, values, settings):
        return self.on_maxpool(node, values, settings, "lp_pooling")

    def on_globalaveragepool(self, node, values, settings, name="mean"):
        v = self.lying(values[0])
        places = sorted(v.axes.index(a) for a in range(2, v.rank))
        text = f"tg::{name}({v.text}, {braces(places)}, {{.keepdims = true}})"
        return Value(self.emit(text, "pooled"), v.dims[:2] + [1] * (v.rank - 2), v.dtype, v.axes)

    def on_globalmaxpool(self, node, values, settings):
        return self.on_globalaveragepool(node, values, settings, "max")

    def on_batchnormalization(self, node, values, settings):
        if settings.get("training_mode", 0):
            raise Unsupported("in training mode")
        if not all(isinstance(v, Constant) for v in values[1:]):
            raise Unsupported("by averages that are computed")
        v = self.tensor(values[0])
        axes = channels_last(v.rank) if v.rank > 2 else list(range(v.rank))
        text = self.arranged(v, axes)
        path = self.path_of(node, values[3] if values[1].name is None else values[1])
        for name, each in zip(("gamma", "beta", "moving_mean", "moving_variance"), values[1:]):
            self.keep(f"{path}/{name}", each.array)
        options = f"{{.momentum = {number_text(settings.get('momentum', 0.9))}, .epsilon = {number_text(settings.get('epsilon', 1e-5))}}}"
        return Value(self.emit(f"tg::batch_normalization({self.scope(path)}, {text}, {options})", path.split("/")[-1]), v.dims, v.dtype, axes)

    def on_layernormalization(self, node, values, settings):
        scale, shift = values[1], values[2] if len(values) > 2 else None
        v = self.lying(values[0])
        first = settings.get("axis", -1) % v.rank
        if not isinstance(scale, Constant) or not (shift is None or isinstance(shift, Constant)) or len([o for o in node.output if o]) > 1:
            raise Unsupported("with a scale that is computed, or more outputs")
        if v.axes[first:] != list(range(first, v.rank)):
            v = Value(self.plain(v), v.dims, v.dtype)
        extents = v.dims[first:]
        path = self.path_of(node, scale)
        self.keep(path + "/gamma", numpy.broadcast_to(scale.array, extents))
        if shift is not None:
            self.keep(path + "/beta", numpy.broadcast_to(shift.array, extents))
        self.needs.add("layer_normalization")
        options = f"{{.axis = {braces(range(first, v.rank)) if first < v.rank - 1 else -1}, .epsilon = {number_text(settings.get('epsilon', 1e-5))}"
        options += "" if shift is not None else ", .center = false"
        return Value(self.emit(f"tg::layer_normalization({self.scope(path)}, {v.text}, {options}}})", path.split("/")[-1]), v.dims, v.dtype, v.axes)

    # --- recurrent ---

    def on_lstm(self, node, values, settings, kind="lstm"):
        gates, states, blocks = {"lstm": (4, 2, [0, 2, 3, 1]), "gru": (3, 1, [0, 1, 2]), "simple_rnn": (1, 1, [0])}[kind]
        values = values + [None] * (8 - len(values))
        x, w, r, b, lengths, hidden, cell, peephole = values[:8]
        if not all(v is None or isinstance(v, Constant) for v in (w, r, b)):
            raise Unsupported("by kernels that are computed")
        if peephole is not None or settings.get("clip") or settings.get("layout", 0) or settings.get("input_forget", 0):
            raise Unsupported("with peepholes, clip, layout or input_forget")
        direction = settings.get("direction", "forward")
        directions = 2 if direction == "bidirectional" else 1
        functions = [f.decode() if isinstance(f, bytes) else f for f in settings.get("activations", [])]
        usual = {"lstm": ["Sigmoid", "Tanh", "Tanh"], "gru": ["Sigmoid", "Tanh"], "simple_rnn": ["Tanh"]}[kind]
        functions = functions or usual * directions
        if functions[: len(usual)] * directions != functions:
            raise Unsupported("with other functions in each direction")
        own = functions[-1]
        gate = functions[0] if kind != "simple_rnn" else "Sigmoid"
        if own not in ("Tanh", "Relu") or gate not in ("Sigmoid", "HardSigmoid") or (kind == "lstm" and functions[1] != own):
            raise Unsupported(f"activations {functions}")
        if gate == "HardSigmoid" and abs(settings.get("activation_alpha", [0.2])[0] - 1 / 6) > 1e-6:
            raise Unsupported("HardSigmoid of another slope than 1/6")
        units = r.dims[-1]
        after = bool(settings.get("linear_before_reset", 0))
        v = self.tensor(x)
        text = self.arranged(v, [1, 0, 2])
        batch, time = v.dims[1], v.dims[0]
        wants = [bool(i < len(node.output) and node.output[i] and self.uses.get(node.output[i])) for i in range(3)]
        self.needs.add(kind)
        base = self.path_of(node, w)
        zero = lambda s: s is None or (isinstance(s, (Filled, Constant)) and not numpy.any(s.number if isinstance(s, Filled) else s.array))
        results = []
        for d in range(directions):
            back = direction == "reverse" or d == 1
            path = base if directions == 1 else f"{base}/{'backward' if back else 'forward'}"
            order = lambda array: numpy.concatenate([array[g * units:(g + 1) * units] for g in blocks])
            self.keep(path + "/kernel", order(w.array[d]).T)
            self.keep(path + "/recurrent_kernel", order(r.array[d]).T)
            if b is not None:
                halves = order(b.array[d][: gates * units]), order(b.array[d][gates * units:])
                self.keep(path + "/bias", numpy.stack(halves) if kind == "gru" and after else halves[0] + halves[1])
            extras = ""
            states_given = [hidden, cell][:states]
            if not all(zero(s) for s in states_given):
                texts = []
                for s in states_given:
                    s = self.tensor(s)
                    part = s.inner[1] if s.inner is not None and s.inner[0] == 0 else None
                    texts.append(self.plain(part) if part is not None else f"tg::take({self.plain(s)}, {d}, 0)")
                extras += f", tg::initial_state{braces(texts)}"
            if lengths is not None:
                self.needs.add("fill")
                mask = self.emit(f"tg::sequence_mask({self.plain(self.tensor(lengths))}, shape_of({text})[1])", "counted")
                extras += f", tg::step_mask{{{mask}}}"
            if back and lengths is not None:
                raise Unsupported("backwards with lengths")
            options = [f".units = {units}"]
            options += [".activation = tg::cell_activation::relu"] if own == "Relu" else []
            options += [".recurrent_activation = tg::gate_activation::hard_sigmoid"] if gate == "HardSigmoid" else []
            options += [".reset_after = false"] if kind == "gru" and not after else []
            options += [".return_sequences = true"] if wants[0] else []
            options += [".go_backwards = true"] if back else []
            options += [".use_bias = false"] if b is None else []
            options += [".zero_output_for_mask = true"] if lengths is not None and wants[0] else []
            kind_of = f"tg::{kind}_layer_options" + braces(options)
            hint = path.split("/")[-1]
            if (wants[0] and wants[1]) or wants[2]:
                names = ["steps", "hidden", "cell"][: states + 1]
                y, *last = self.emit(f"tg::{kind}_with_state({self.scope(path)}, {text}, {kind_of}{extras})", hint, [f"{hint}_{n}" for n in names])
            else:
                y = self.emit(f"tg::{kind}({self.scope(path)}, {text}, {kind_of}{extras})", hint)
                last = [y]
            if back and wants[0]:
                y = self.emit(f"tg::reverse({y}, 1)", hint)
            results.append((y, last))
        return self.recurrent_outputs(results, wants, time, batch, units, v.dtype)

    def recurrent_outputs(self, results, wants, time, batch, units, dtype):
        """Y [time, directions, batch, units], and the states [directions, batch, units]."""
        count, values = len(results), []
        for k in range(3):
            if not wants[k]:
                values.append(None)
            elif k == 0:
                if count == 1:
                    steps = Value(results[0][0], [time, batch, units], dtype, [1, 0, 2])
                    text = self.emit(f"tg::expand_dims({steps.text}, 2)")
                    values.append(Value(text, [time, 1, batch, units], dtype, [2, 0, 1, 3], None, (1, steps)))
                else:
                    text = self.emit("tg::concat({" + ", ".join(f"tg::expand_dims({y}, 2)" for y, _ in results) + "}, 2)")
                    values.append(Value(text, [time, count, batch, units], dtype, [2, 0, 1, 3]))
            else:
                last = [l[k - 1] for _, l in results]
                if count == 1:
                    state = Value(last[0], [batch, units], dtype)
                    values.append(Value(self.emit(f"tg::expand_dims({last[0]}, 0)"), [1, batch, units], dtype, None, None, (0, state)))
                else:
                    text = self.emit("tg::concat({" + ", ".join(f"tg::expand_dims({h}, 0)" for h in last) + "}, 0)")
                    values.append(Value(text, [count, batch, units], dtype))
        return tuple(values)

    def on_gru(self, node, values, settings):
        return self.on_lstm(node, values[:6], settings, "gru")

    def on_rnn(self, node, values, settings):
        return self.on_lstm(node, values[:6], settings, "simple_rnn")

    # --- the file ---

    def spec(self, info):
        t = info.type.tensor_type
        extents = []
        for axis, d in enumerate(t.shape.dim):
            if d.HasField("dim_value"):
                extents.append(str(d.dim_value))
            elif axis == 0 and d.dim_param in ("", "batch", "batch_size", "N"):
                extents.append("tg::dyn")
            else:
                extents.append(f'tg::dim<{json.dumps(d.dim_param or "axis_%d" % axis)}>')
        if t.elem_type not in CPP_TYPES:
            raise Unsupported(f"input '{info.name}' of an element type that there is not")
        return f"tg::spec<{', '.join([CPP_TYPES[t.elem_type]] + extents)}>"

    def header(self, source, weights):
        used, kept = self.returns, []
        for names, line in reversed(self.lines):  # what nothing reads is left out
            if any(re.search(rf"\b{n}\b", used) for n in names):
                kept.append("        " + line)
                used += " " + line
        parameters = ", ".join(f"auto {self.values[i.name].text}" for i in self.inputs)
        if len(self.inputs) == 1:
            spec = self.spec(self.inputs[0])
        else:
            names = ", ".join(f"tg::named_input<{json.dumps(i.name)}, {self.spec(i)}>" for i in self.inputs)
            spec = f"tg::inputs<{names}>"
        body = "\n".join(reversed(kept))
        includes = "".join(f"#include <tapegraph/{h}.hpp>\n" for h in sorted(HEADERS[n] for n in self.needs))
        limits = "#include <limits>\n" if "std::numeric_limits" in body else ""
        helper = ""
        if "shaped(" in body:
            helper = ("    /// A shape of numbers and of extents that the input has.\n"
                      "    static constexpr tg::shape shaped(std::initializer_list<tg::extent> extents) {\n        tg::shape s;\n"
                      "        for (const tg::extent& e : extents) s.push_back(e);\n        return s;\n    }\n\n")
        scope = "scope" if "scope" in body else "[[maybe_unused]] scope"
        scope = "auto scope" if scope == "scope" else "auto"
        return (f"#pragma once\n\n// From {source} by tools/onnx_to_model.py; its weights are in {weights}:\n//\n"
                f"//     auto model = tg::compile<tg::graph>({self.name}{{}}, {self.name}::inputs{{}}, loss{{}}, tg::adam{{}});\n"
                f'//     model.load("{weights}"); // tapegraph/io/weights.hpp\n\n'
                f"#include <tapegraph/tapegraph.hpp>\n\n{includes and includes + chr(10)}#include <cstdint>\n#include <initializer_list>\n{limits}\n"
                f"struct {self.name} {{\n    using inputs = {spec.replace('tg::', 'tapegraph::')};\n\n"
                f"{helper.replace('tg::', 'tapegraph::')}"
                f"    constexpr auto operator()({scope}, {parameters}) const {{\n        namespace tg = tapegraph;\n{body}\n        return {self.returns};\n    }}\n}};\n")


def write_safetensors(path, tensors):
    kinds = {"float32": "F32", "float64": "F64", "float16": "F16"}
    header, at = {}, 0
    for name, array in sorted(tensors.items()):
        header[name] = {"dtype": kinds[str(array.dtype)], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    replace(path, [struct.pack("<Q", len(text)), text] + [array.tobytes() for _, array in sorted(tensors.items())])


def replace(path, pieces):
    """Writes beside a file, then in its place."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        for piece in pieces:
            file.write(piece)
    os.chmod(beside, 0o644)
    os.replace(beside, path)


def convert(source, name, header, weights):
    """Writes both files; gives what is not supported, and then writes none."""
    model = onnx.load(source)
    onnx.checker.check_model(model) if not any(t.data_location for t in model.graph.initializer) else None
    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except (ValueError, shape_inference.InferenceError):
        pass  # over 2 GiB, or unknown operations, which are named below
    t = Translation(model, name)
    try:
        t.run()
        text = "" if t.problems else t.header(source.name, weights.name)
    except Unsupported as why:
        t.problems.append(str(why))
    if t.problems:
        return t.problems
    write_safetensors(weights, t.weights)
    replace(header, [text.encode()])
    return []


def main():
    parser = argparse.ArgumentParser(description="An ONNX file as a model header and a safetensors file")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--name", help="of the model; the file's by default")
    parser.add_argument("--header", type=pathlib.Path)
    parser.add_argument("--weights", type=pathlib.Path)
    given = parser.parse_args()
    name = given.name or re.sub(r"\W+", "_", given.source.stem)
    header = given.header or given.source.with_name(name + ".hpp")
    weights = given.weights or given.source.with_name(name + ".safetensors")
    problems = convert(given.source, name, header, weights)
    if problems:
        sys.exit(f"{given.source}: not supported: " + "; ".join(problems))
    print(f"{header}, {weights}")


if __name__ == "__main__":
    main()
