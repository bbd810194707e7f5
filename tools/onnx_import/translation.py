"""Translates an ONNX graph into the source of a model: names, values and nodes; the operators are
in the other modules of this folder."""

import json
import re

import numpy
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from .elementwise import Elementwise
from .movement import Movement
from .products import Products
from .recurrent import Recurrent
from .shapes import Shapes
from .values import BINARY, CPP_TYPES, Constant, Extents, Filled, HEADERS, KEYWORDS, NUMPY_TYPES, REDUCTIONS, UNARY, Unsupported, Value, braces, number_text
from .windows import Windows


class Translation(Elementwise, Movement, Products, Recurrent, Shapes, Windows):
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
        """Returns the scope of a layer: that of its weight's name, else the node's."""
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

    def keep(self, name, array):
        self.weights[name] = numpy.ascontiguousarray(array)

    def variable(self, constant, array, path=None):
        """Declares a free weight, in some order of its axes."""
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
        """Converts any kind of value to a Value."""
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
        """Returns its text, with these axes in memory."""
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
        """Returns the same value without a flattened axis."""
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
                continue  # of something that is named already
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
        """Evaluates a node whose inputs are constants."""
        graph = onnx.helper.make_graph([node], "fold", [], [onnx.helper.make_empty_tensor_value_info(o) for o in node.output if o],
                                       [numpy_helper.from_array(v.array, n) for n, v in dict(zip(node.input, values)).items() if v is not None])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        results = ReferenceEvaluator(model).run(None, {})
        names = [v.name for v in values if v is not None and v.name]
        for output, array in zip([o for o in node.output if o], results):
            self.values[output] = Constant(numpy.asarray(array), names[0] if names else None)
        return True

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
        for names, line in reversed(self.lines):  # drops lines that nothing reads
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
