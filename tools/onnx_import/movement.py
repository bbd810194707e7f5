"""Operators that move elements: slices, padding, gathers, sorting."""

import numpy

from .values import CPP_TYPES, Constant, Extents, Filled, NUMPY_TYPES, Unsupported, Value, braces, number_text


class Movement:
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
        """Elements at known positions: concatenated slices."""
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

    def added(self, data, values, settings, write):
        """Adds `write(shape)`, updates at indexed positions, to a tensor unless it is all zeros."""
        if settings.get("reduction", "none") != "add":
            raise Unsupported("that does anything but add")
        self.needs.add("gather")
        zeros = isinstance(data, Filled) and data.number == 0 or isinstance(data, Constant) and not data.array.any()
        if zeros:
            dtype = data.dtype if isinstance(data, Filled) else NUMPY_TYPES[str(data.array.dtype)]
            extents = data.extents if isinstance(data, Filled) else data.dims
            return Value(self.emit(write(f"shaped({braces(extents)})")), data.dims, dtype)
        v = self.tensor(data)
        text = self.plain(v)
        return Value(self.emit(f"{text} + {write(f'tg::shape_of({text})')}"), v.dims, v.dtype)

    def on_scatternd(self, node, values, settings):
        at, added = self.plain(self.tensor(values[1])), self.plain(self.tensor(values[2]))
        return self.added(values[0], values, settings, lambda dims: f"tg::scatter_nd({added}, {at}, {dims})")

    def on_scatterelements(self, node, values, settings):
        at, axis = self.tensor(values[1]), settings.get("axis", 0)
        target = values[0].dims
        if any(i != axis % len(target) and (a is None or a != b) for i, (a, b) in enumerate(zip(target, at.dims))):
            raise Unsupported("of other extents than its target beside the axis")
        index, added = self.plain(at), self.plain(self.tensor(values[2]))
        return self.added(values[0], values, settings, lambda dims: f"tg::put_along({added}, {index}, {dims}, {axis})")

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
