"""Elementwise operators, one expression each."""

import numpy

from .values import CPP_TYPES, Constant, Extents, Filled, NUMPY_TYPES, PREDICATES, Unsupported, Value, number_text


class Elementwise:
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
