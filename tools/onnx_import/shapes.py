"""Extents, and operators that only change the layout: reshapes, transposes, broadcasts."""

import numpy
from onnx import numpy_helper

from .values import CPP_TYPES, Constant, Extents, Filled, NUMPY_TYPES, Value, braces, number_text


class Shapes:
    def of_extents(self, node, values, settings):
        """Evaluates arithmetic of extents when the model is traced. Returns False if the result is
        used elsewhere."""
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

    def side_by_side(self, values):
        """Returns operands as C++ in one order of axes: (texts, axes, dims, flat)."""
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
            for v in values:  # operands that do not fit between permuted axes are transposed
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

    def on_identity(self, node, values, settings):
        return values[0]

    on_dropout = on_identity

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
        """Merges the axes from `first` on."""
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
        """Reshapes to extents that are numbers, C++, None (the remaining one) or, like 0 in ONNX,
        ("same", axis)."""
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
