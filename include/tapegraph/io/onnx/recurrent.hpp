#pragma once

#include <tapegraph/io/onnx/movement.hpp>
#include <tapegraph/ops/product/matmul.hpp>

/// LSTM, GRU and RNN. ONNX's read [time, batch, features], need transposed kernels, and only
/// support masks that are lengths.

namespace tapegraph::onnx::detail {

/// The parts of a recurrent node.
struct recurrence {
    std::string_view cell; ///< "lstm", "gru" or "simple_rnn"
    int gates = 1, states = 1;
    bool relu = false, hard = false, every = false, with_cell = false, reset_after = false;
    int projected = -1, recurrent = -1, candidate_bias = -1, hidden = -1, state = -1, mask = -1;
    int input = -1, kernel = -1, bias = -1; ///< of x W + b, if that is what `projected` is
    bool backwards = false;                 ///< x is read from its last step on
    bool valid = false;
};

template <class G>
recurrence read_recurrence(G& g, int node) {
    recurrence r;
    const std::string_view name = g.at(node).op->name;
    const bool result = name.ends_with("_result");
    r.cell = result ? name.substr(0, name.size() - 7) : name;
    if (r.cell == "lstm") r.gates = 4, r.states = 2;
    if (r.cell == "gru") r.gates = 3;
    // recurrent_attributes: relu, hard, rows, cell, reset_after
    const std::int64_t* const words = g.t.words_of(node);
    r.relu = words[0] != 0, r.hard = words[1] != 0, r.every = words[2] == 1, r.with_cell = words[3] != 0,
    r.reset_after = words[4] != 0;
    int next = result ? 1 : 0;
    const int count = g.at(node).arguments;
    r.projected = g.t.argument(node, next++);
    r.recurrent = g.t.argument(node, next++);
    if (next < count && g.rank(g.t.argument(node, next)) == 1) r.candidate_bias = g.t.argument(node, next++);
    const auto floating = [&] { return next < count && g.at(g.t.argument(node, next)).type != dtype::boolean; };
    if (floating()) {
        r.hidden = g.t.argument(node, next++);
        if (r.states == 2 && floating()) r.state = g.t.argument(node, next++);
    }
    if (next < count && !floating()) r.mask = g.t.argument(node, next++);
    r.valid = next == count && words[2] != 2 && (r.states == 1 || (r.hidden < 0) == (r.state < 0));

    int product = r.projected;
    if (g.is(product, "add")) {
        for (int k = 0; k < 2; ++k)
            if (g.is(g.t.argument(r.projected, k), "matmul") && g.rank(g.t.argument(r.projected, 1 - k)) == 1) {
                product = g.t.argument(r.projected, k);
                r.bias = g.t.argument(r.projected, 1 - k);
            }
    }
    const bool plain = g.is(product, "matmul") && g.t.words_of(product)[0] == 0 && g.t.words_of(product)[1] == 0;
    if (plain && g.rank(g.t.argument(product, 1)) == 2 && g.known(g.t.argument(product, 1))) {
        r.input = g.t.argument(product, 0);
        r.kernel = g.t.argument(product, 1);
        if (r.mask < 0 && reversed_axis(g, r.input) == 1) {
            r.backwards = true;
            r.input = g.t.argument(r.input, 0);
        }
    } else {
        r.bias = -1;
    }
    return r;
}

/// Maps gates to ONNX's order: i, o, f, c from i, f, c, o; the others have the same order.
inline std::vector<int> gate_order(const recurrence& r) {
    if (r.gates == 4) return {0, 3, 1, 2};
    if (r.gates == 3) return {0, 1, 2};
    return {0};
}

/// A kernel [in, gates units] as [1, gates units, in]. One that is computed from weights is computed in the file, too.
template <class G>
std::string recurrent_kernel(G& g, const recurrence& r, int node) {
    const std::int64_t in = g.extent_of(node, 0), units = g.extent_of(node, 1) / r.gates;
    strided_view v;
    if (!g.backed(node, v) || !v.is_contiguous()) {
        const std::string turned = g.transpose(g.plain(node), {1, 0});
        if (r.gates != 4) return g.unsqueeze(turned, {0});
        const std::string parts = g.emit("Reshape", {turned, g.integers({r.gates, units, in})});
        const std::string ordered = g.emit("Gather", {parts, g.integers({0, 3, 1, 2})}, attributes().set("axis", 0));
        return g.emit("Reshape", {ordered, g.integers({1, r.gates * units, in})});
    }
    return g.initializer(v.reshaped({in, r.gates, units}).permuted({1, 2, 0}), {1, r.gates * units, in}, gate_order(r));
}

/// A kernel that only permutes the gates to ONNX's order, for inputs that are already projected.
template <class G>
std::string identity_kernel(G& g, const recurrence& r, std::int64_t units, dtype type) {
    const std::int64_t wide = r.gates * units;
    const std::vector<int> from = gate_order(r);
    std::string bytes(static_cast<std::size_t>(wide * wide) * size_of(type), '\0');
    for (std::int64_t row = 0; row < wide; ++row) {
        const std::int64_t column = from[static_cast<std::size_t>(row / units)] * units + row % units;
        char* const at = bytes.data() + static_cast<std::size_t>(row * wide + column) * size_of(type);
        const float one = 1;
        const double wide_one = 1;
        type == dtype::f64 ? std::memcpy(at, &wide_one, 8) : std::memcpy(at, &one, 4);
    }
    return g.constants(std::move(bytes), type, {1, wide, wide});
}

/// [1, 2 gates units]: the biases of x W, and of h R.
template <class G>
std::string recurrent_bias(G& g, const recurrence& r, std::int64_t units, dtype type) {
    if (r.bias < 0 && r.candidate_bias < 0) return {};
    const std::int64_t wide = r.gates * units;
    strided_view v;
    if (r.candidate_bias < 0 && g.backed(r.bias, v) && v.is_contiguous())
        return g.initializer(v.reshaped({r.gates, units}), {1, 2 * wide}, gate_order(r));
    const auto zeros = [&](std::int64_t count) {
        return g.constants(std::string(static_cast<std::size_t>(count) * size_of(type), '\0'), type, {count});
    };
    std::string of_input = r.bias >= 0 ? g.plain(r.bias) : zeros(wide);
    if (r.gates == 4 && r.bias >= 0) {
        const std::string parts = g.emit("Reshape", {of_input, g.integers({r.gates, units})});
        of_input = g.emit("Reshape", {g.emit("Gather", {parts, g.integers({0, 3, 1, 2})}, attributes().set("axis", 0)),
                                      g.integers({wide})});
    }
    std::vector<std::string> parts{of_input};
    if (r.candidate_bias >= 0) {
        parts.push_back(zeros(wide - units));
        parts.push_back(g.plain(r.candidate_bias));
    } else {
        parts.push_back(zeros(wide));
    }
    return g.unsqueeze(g.emit("Concat", parts, attributes().set("axis", 0)), {0});
}

/// Whether a mask is true up to some step and false from there on, for all data.
template <class G>
bool is_prefix(G& g, int mask) {
    if (!g.is(mask, "less") || !g.is(g.t.argument(mask, 0), "arange")) return false;
    const int lengths = g.t.argument(mask, 1);
    return g.rank(lengths) == 2 && g.extent_of(lengths, 1) == 1;
}

/// x [batch, time, features] with the steps that count first, in their order.
template <class G>
std::string steps_in_front(G& g, const std::string& x, const std::string& counted, std::int64_t time) {
    const std::string length = g.extent_tensor(time);
    const std::string places = g.emit("Range", {g.integers({0}, true), g.squeeze(length, {0}), g.integers({1}, true)});
    const std::string keys = g.emit("Sub", {g.emit("Mul", {counted, length}), places});
    const std::string top = g.emit("TopK", {keys, length}, attributes().set("axis", 1), 2);
    return g.emit("GatherND", {x, g.unsqueeze(g.output_of(top, 1), {2})}, attributes().set("batch_dims", 1));
}

template <class G>
void write_recurrent(G& g, int node) {
    const recurrence r = read_recurrence(g, node);
    const dtype type = g.at(node).type;
    if (!r.valid) return g.refuse(node, "with dropout, or for a derivative");
    const std::int64_t units = g.extent_of(r.recurrent, 0), time = g.extent_of(r.projected, 1),
                       batch = g.extent_of(r.projected, 0);
    const int input = r.input >= 0 ? r.input : r.projected;
    const order time_first{1, 0, 2};
    const bool masked = r.mask >= 0, sorted = masked && !g.prefix_masks && !is_prefix(g, r.mask);

    std::string x, counted, lengths, hidden, state;
    if (masked) {
        counted = g.cast(g.plain(r.mask), dtype::i64);
        lengths = g.cast(g.emit("ReduceSum", {counted, g.integers({1})}, attributes().set("keepdims", 0)), dtype::i32);
    }
    x = sorted ? g.transpose(steps_in_front(g, g.plain(input), counted, time), time_first)
               : g.in_order(input, time_first);
    if (r.hidden >= 0) hidden = g.unsqueeze(g.plain(r.hidden), {0});
    if (r.state >= 0) state = g.unsqueeze(g.plain(r.state), {0});
    std::vector<std::string> operands{x,
                                      r.kernel >= 0 ? recurrent_kernel(g, r, r.kernel)
                                                    : identity_kernel(g, r, units, type),
                                      recurrent_kernel(g, r, r.recurrent),
                                      recurrent_bias(g, r, units, type),
                                      lengths,
                                      hidden,
                                      state};
    while (operands.back().empty()) operands.pop_back();

    attributes settings;
    settings.set("hidden_size", units);
    if (r.backwards) settings.set("direction", "reverse");
    const std::string function = r.relu ? "Relu" : "Tanh", gate = r.hard ? "HardSigmoid" : "Sigmoid";
    if (r.relu || r.hard) {
        settings.set("activations", r.gates == 4   ? std::vector<std::string>{gate, function, function}
                                    : r.gates == 3 ? std::vector<std::string>{gate, function}
                                                   : std::vector<std::string>{function});
        if (r.hard)
            settings.set("activation_alpha", std::vector<double>{1.0 / 6})
                .set("activation_beta", std::vector<double>{0.5});
    }
    if (r.cell == "gru") settings.set("linear_before_reset", r.reset_after ? 1 : 0);
    const std::string y = g.emit(r.cell == "lstm"  ? "LSTM"
                                 : r.cell == "gru" ? "GRU"
                                                   : "RNN",
                                 operands, settings, r.states + 1);
    const std::string last = g.output_of(y, 1);
    const auto with_cell = [&](const std::string& rows) {
        return r.with_cell ? g.emit("Concat", {rows, g.output_of(y, 2)}, attributes().set("axis", 0)) : rows;
    };
    if (!r.every) return g.define(node, with_cell(last), time_first);

    const std::string steps = g.squeeze(y, {1}); // [time, batch, units]
    if (masked) {                                // a masked step repeats the previous state
        std::string before = hidden;
        if (before.empty()) before = g.emit("Expand", {g.constant(0, type), g.shape_tensor({1, batch, units})});
        const std::string states =
            g.transpose(g.emit("Concat", {before, steps}, attributes().set("axis", 0)), time_first);
        const std::string at = g.unsqueeze(g.emit("CumSum", {counted, g.integers({1}, true)}), {2});
        const std::string rows = g.emit("GatherND", {states, at}, attributes().set("batch_dims", 1));
        if (!r.with_cell) return g.define(node, rows);
        return g.define(
            node, g.emit("Concat", {rows, g.transpose(g.output_of(y, 2), time_first)}, attributes().set("axis", 1)));
    }
    if (!r.backwards) return g.define(node, with_cell(steps), time_first);
    if (!r.with_cell) g.in_time[node] = {steps, time_first, {}, {}};
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    const std::string turned =
        g.emit("Slice", {steps, g.integers({-1}), g.integers({-end}), g.integers({0}), g.integers({-1})});
    g.define(node, with_cell(turned), time_first);
}

} // namespace tapegraph::onnx::detail
