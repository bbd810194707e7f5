"""Convolutions and pooling."""

from .values import Constant, Unsupported, Value, braces, channels_last


class Windows:
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
