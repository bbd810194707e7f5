"""Recurrent layers."""

import numpy

from .values import Constant, Filled, Unsupported, Value, braces


class Recurrent:
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
        """Returns Y [time, directions, batch, units], and the states [directions, batch, units]."""
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
