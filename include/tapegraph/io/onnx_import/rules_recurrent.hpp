#pragma once

#include <tapegraph/graph/kernel_registry.hpp>
#include <tapegraph/io/onnx_import/recurrent_steps.hpp>
#include <tapegraph/ops/recurrent/gru.hpp>
#include <tapegraph/ops/recurrent/lstm.hpp>
#include <tapegraph/ops/recurrent/simple_rnn.hpp>

/// LSTM, GRU and RNN through the library's recurrences, whose gates are in another order, or by their steps.

namespace tapegraph::io::onnx_import {

namespace rules {

struct recurrent_kind {
    std::vector<int> gates; ///< as recurrent_gates gives them
    int states;
    std::vector<std::string> functions;
};

/// Reverses the steps of each sequence; steps after its length stay in place. x [batch, time, ...].
inline node reversed_steps(const node& x, const node& lengths) {
    const node l = with_axis(lengths, 1), t = with_axis(arange<std::int64_t>(x, x.shape()[1]), 0);
    return gather(x, eval(where(t < l, l - 1 - t, t)), 1, 1);
}

inline void recurrent(call& c, const recurrent_kind& kind) {
    const std::string direction = c.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
        refuse("direction = '" + direction + "'");
    const int directions = direction == "bidirectional" ? 2 : 1, gates = static_cast<int>(kind.gates.size());
    const std::int64_t units = known_extent(c.dims(2)[2], "units");
    if (c.integer("hidden_size", units) != units) refuse("hidden_size other than its kernels'");
    const double clip = c.number("clip", 0);
    const bool coupled = c.integer("input_forget", 0) != 0;
    std::vector<float> alphas = c.numbers("activation_alpha"), betas = c.numbers("activation_beta");
    const bool batch_first = c.integer("layout", 0) != 0, after = c.integer("linear_before_reset", 0) != 0;
    c.ignore("output_sequence");
    const std::size_t each = kind.functions.size(), wanted = each * static_cast<std::size_t>(directions);
    std::vector<std::string> functions = c.texts("activations");
    for (std::string& f : functions)
        std::transform(f.begin(), f.end(), f.begin(), [](unsigned char k) { return std::tolower(k); });
    if (functions.empty())
        for (int d = 0; d < directions; ++d)
            functions.insert(functions.end(), kind.functions.begin(), kind.functions.end());
    if (functions.size() != wanted)
        refuse(std::to_string(functions.size()) + " activations, not " + std::to_string(wanted));
    bool unrolled = clip != 0 || coupled || c.has(7);
    for (std::size_t k = 0; k < wanted; ++k) unrolled = unrolled || functions[k] != kind.functions[k % each];
    std::vector<gate_function> gate_functions;
    for (const std::string& f : functions) gate_functions.push_back(gate_function_of(f, alphas, betas));
    if (!alphas.empty() || !betas.empty()) refuse("activation_alpha or activation_beta for activations without");
    if (c.type(0) != dtype::f32 && c.type(0) != dtype::f64) refuse(std::string("of ") + name_of(c.type(0)));

    const node x = batch_first ? c.plain(0) : c.arranged(0, {1, 0, 2});
    node lengths;
    if (c.has(4)) lengths = converted(c.plain(4), c.type(4), dtype::i64);
    const node nothing = c.on.number(0, c.type(0));
    const auto spread = [&](std::vector<std::int64_t> dims) {
        return node(eval(broadcast_to(nothing, shape_of_items(c, dims))));
    };
    const auto ordered = [&](const node& v) { // [gates units, ...] in the library's order
        std::vector<node> parts;
        for (const int g : kind.gates) parts.push_back(part(v, 0, g * units, units));
        return gates == 1 ? v : tapegraph::concat(parts, 0);
    };
    const auto state = [&](int i, int d) -> node {
        if (!c.has(i)) return spread({x.shape()[0].value, units});
        return take(c.plain(i), d, batch_first ? 1 : 0);
    };
    std::vector<node> steps, hidden, cells;
    for (int d = 0; d < directions; ++d) {
        const bool back = direction == "reverse" || d == 1;
        const auto kernel = [&](int i) -> node {
            node kept; // [directions, in, gates units] in the library's order
            if (!c.on.kept_so(c.operand(i), kind.gates, {0, 2, 1}, kept))
                return c.on.transposed(ordered(take(c.plain(i), d, 0)), {1, 0});
            return directions == 1 ? reshape(kept, shape{kept.shape()[1].value, kept.shape()[2].value}) : take(kept, d, 0);
        };
        const node w = kernel(1), r = kernel(2);
        node b, b_recurrent;
        if (c.has(3)) {
            const node both = take(c.plain(3), d, 0);
            b = ordered(part(both, 0, 0, gates * units)),
            b_recurrent = ordered(part(both, 0, gates * units, gates * units));
        } else {
            b = b_recurrent = spread({gates * units});
        }
        const node joined = eval(b + b_recurrent);
        const bool by_lengths = c.has(4);
        const node in = !back ? x : by_lengths ? reversed_steps(x, lengths) : node(reverse(x, axes_of({1})));
        node y, h, cell;
        const auto run = [&](const auto&... mask) {
            if (kind.states == 2) {
                const auto v = lstm_with_state(in, w, r, joined, {.return_sequences = true, .recompute = true},
                                               initial_state<node, 2>{state(5, d), state(6, d)}, mask...);
                y = v.output, h = v.hidden, cell = v.cell;
            } else if (gates == 3) {
                const node bias = after ? stack(std::vector<node>{b, b_recurrent}, 0) : joined;
                const auto v =
                    gru_with_state(in, w, r, bias, {.reset_after = after, .return_sequences = true, .recompute = true},
                                   initial_state<node, 1>{state(5, d)}, mask...);
                y = v.output, h = v.hidden;
            } else {
                const auto v = simple_rnn_with_state(in, w, r, joined, {.return_sequences = true, .recompute = true},
                                                     initial_state<node, 1>{state(5, d)}, mask...);
                y = v.output, h = v.hidden;
            }
        };
        if (unrolled) {
            recurrent_steps how;
            how.clip = clip, how.coupled = coupled, how.after = after;
            how.functions.assign(gate_functions.begin() + static_cast<std::ptrdiff_t>(each) * d,
                                 gate_functions.begin() + static_cast<std::ptrdiff_t>(each) * (d + 1));
            how.has_peepholes = c.has(7);
            if (how.has_peepholes) how.peepholes = take(c.plain(7), d, 0);
            node own = spread({2 * gates * units}), counts;
            if (c.has(3)) own = take(c.plain(3), d, 0);
            if (by_lengths) counts = sequence_mask(lengths, x.shape()[1]);
            const auto found =
                run_steps(how, gates, in, take(c.plain(1), d, 0), take(c.plain(2), d, 0),
                          part(own, 0, 0, gates * units), part(own, 0, gates * units, gates * units), state(5, d),
                          kind.states == 2 ? state(6, d) : state(5, d), by_lengths ? &counts : nullptr);
            y = by_lengths ? node(eval(where(with_axis(counts, 2), found.y, 0))) : found.y;
            h = found.hidden, cell = found.cell;
        } else if (by_lengths) {
            const node counts = sequence_mask(lengths, x.shape()[1]);
            run(step_mask<node>{counts});
            y = eval(where(with_axis(counts, 2), y, 0));
        } else {
            run();
        }
        if (back) y = by_lengths ? reversed_steps(y, lengths) : node(reverse(y, axes_of({1})));
        steps.push_back(with_axis(y, 2)); // [batch, time, 1, units]
        hidden.push_back(with_axis(h, batch_first ? 1 : 0));
        if (kind.states == 2) cells.push_back(with_axis(cell, batch_first ? 1 : 0));
    }
    const auto all_of_them = [&](const std::vector<node>& v, int axis) {
        return v.size() == 1 ? v[0] : tapegraph::concat(v, axis);
    };
    const dtype type = c.type(0);
    const node y = all_of_them(steps, 2);
    if (c.wants(0)) c.give_laid(0, y, type, batch_first ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{2, 0, 1, 3});
    if (c.wants(1)) c.give(1, all_of_them(hidden, batch_first ? 1 : 0), type);
    if (c.wants(2) && kind.states == 2) c.give(2, all_of_them(cells, batch_first ? 1 : 0), type);
}

inline std::span<const operator_rule> recurrences() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"LSTM",
         [](call& c) {
             recurrent(c, {recurrent_gates("LSTM"), 2, {"sigmoid", "tanh", "tanh"}});
         }},
        {"GRU",
         [](call& c) {
             recurrent(c, {recurrent_gates("GRU"), 1, {"sigmoid", "tanh"}});
         }},
        {"RNN",
         [](call& c) {
             recurrent(c, {recurrent_gates("RNN"), 1, {"tanh"}});
         }},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
