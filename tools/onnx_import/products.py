"""Reductions, softmax, products of matrices, normalizations."""

import numpy

from .values import Constant, REDUCTIONS, Unsupported, Value, braces, channels_last, number_text


class Products:
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
