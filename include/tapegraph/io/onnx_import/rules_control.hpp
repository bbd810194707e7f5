#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

/// Scan and Loop with known numbers of steps: their bodies are unrolled.

namespace tapegraph::io::onnx_import {

namespace rules {

/// The limit of steps: graphs of more take too long to build.
inline constexpr std::int64_t most_steps = 1000;

inline std::vector<value_pointer> run_body(call& c, const file_graph& g, const std::vector<value_pointer>& in) {
    if (in.size() != g.inputs.size()) refuse("a body of " + std::to_string(g.inputs.size()) + " inputs");
    environment inside;
    inside.around = &c.around();
    inside.values[""] = nullptr;
    for (std::size_t i = 0; i < in.size(); ++i) inside.values[g.inputs[i].name] = in[i];
    const auto results = c.on.run_graph(g, inside);
    for (const value_pointer& v : results)
        if (v->refused) refuse("its body is refused");
    return results;
}
inline value_pointer stacked_parts(call& c, std::vector<value_pointer> parts, int axis, bool backwards) {
    for (const value_pointer& v : parts)
        if (v->sequence) refuse("a sequence for each step");
    if (backwards) std::reverse(parts.begin(), parts.end());
    return joined(c, std::move(parts), axis, true);
}

inline void scan_rule(call& c) {
    const attribute* const body = c.find("body");
    const auto scanned = static_cast<int>(c.integer("num_scan_inputs", 0));
    if (body == nullptr || !body->g || scanned < 1) refuse("without a body");
    const bool old = c.opset() < 9; // has a leading batch axis, and lengths
    const std::vector<std::int64_t> reverse_in = c.integers(old ? "directions" : "scan_input_directions"),
                                    reverse_out = c.integers("scan_output_directions"),
                                    axes_in = c.integers("scan_input_axes"), axes_out = c.integers("scan_output_axes");
    if (old && c.has(0)) refuse("lengths");
    const int first = old ? 1 : 0, states = c.inputs() - first - scanned;
    if (states < 0) refuse("fewer inputs than it scans");
    std::int64_t batch = 1;
    if (old) batch = known_extent(c.dims(first)[0], "batches");
    const auto at = [](const std::vector<std::int64_t>& list, int k, std::int64_t otherwise) {
        return static_cast<std::size_t>(k) < list.size() ? list[static_cast<std::size_t>(k)] : otherwise;
    };
    const auto scanned_axis = [&](int k) { return old ? 1 : c.axis(at(axes_in, k, 0), c.rank(first + states + k)); };
    const std::int64_t steps = known_extent(c.dims(first + states)[scanned_axis(0)], "steps");
    if (steps < 1 || steps * batch > most_steps) refuse("of " + std::to_string(steps) + " steps");
    std::vector<std::vector<node>> whole(static_cast<std::size_t>(c.outputs()));
    for (std::int64_t b = 0; b < batch; ++b) {
        std::vector<value_pointer> state;
        std::vector<std::vector<value_pointer>> parts(static_cast<std::size_t>(std::max(c.outputs() - states, 0)));
        for (int k = 0; k < states; ++k)
            state.push_back(old ? c.on.make(take(c.plain(first + k), b, 0), c.type(first + k)) : c.pointer(first + k));
        for (std::int64_t t = 0; t < steps; ++t) {
            std::vector<value_pointer> in = state;
            for (int k = 0; k < scanned; ++k) {
                const int i = first + states + k;
                const node x = old ? take(c.plain(i), b, 0) : c.plain(i);
                const std::int64_t step = at(reverse_in, k, 0) != 0 ? steps - 1 - t : t;
                in.push_back(c.on.make(take(x, step, old ? 0 : scanned_axis(k)), c.type(i)));
            }
            const auto results = run_body(c, *body->g, in);
            if (static_cast<int>(results.size()) < states) refuse("a body with fewer outputs than states");
            for (int k = 0; k < states; ++k) state[static_cast<std::size_t>(k)] = results[static_cast<std::size_t>(k)];
            for (std::size_t k = 0; k < parts.size() && states + k < results.size(); ++k)
                parts[k].push_back(results[static_cast<std::size_t>(states) + k]);
        }
        for (int k = 0; k < c.outputs(); ++k) {
            if (k < states) {
                if (!old) c.give(k, state[static_cast<std::size_t>(k)]);
                if (old)
                    whole[static_cast<std::size_t>(k)].push_back(
                        with_axis(c.on.plain(*state[static_cast<std::size_t>(k)]), 0));
                continue;
            }
            const auto& all_parts = parts[static_cast<std::size_t>(k - states)];
            if (all_parts.empty()) refuse("a body with fewer outputs");
            const int axis = c.axis(old ? 0 : at(axes_out, k - states, 0), all_parts[0]->rank() + 1);
            const value_pointer side_by_side = stacked_parts(c, all_parts, axis, at(reverse_out, k - states, 0) != 0);
            if (old)
                whole[static_cast<std::size_t>(k)].push_back(with_axis(c.on.plain(*side_by_side), 0));
            else
                c.give(k, side_by_side);
        }
    }
    for (int k = 0; old && k < c.outputs(); ++k) c.give(k, tapegraph::concat(whole[static_cast<std::size_t>(k)], 0));
}

inline void loop_rule(call& c) {
    const attribute* const body = c.find("body");
    if (body == nullptr || !body->g) refuse("without a body");
    const int states = c.inputs() - 2;
    std::int64_t most = most_steps + 1;
    if (c.has(0)) most = c.integers(0, "steps").at(0);
    value_pointer go_on = c.has(1) ? c.pointer(1) : nullptr;
    std::vector<value_pointer> state;
    for (int k = 0; k < states; ++k) state.push_back(c.has(k + 2) ? c.pointer(k + 2) : nullptr);
    std::vector<std::vector<value_pointer>> parts(static_cast<std::size_t>(std::max(c.outputs() - states, 0)));
    array yes(dtype::boolean, {});
    *static_cast<bool*>(yes.data()) = true;
    for (std::int64_t t = 0; t < most; ++t) {
        if (go_on != nullptr) {
            if (!go_on->known) refuse_symbols("a number of steps that is computed from values");
            if (go_on->known->integer(0) == 0) break;
        }
        if (t >= most_steps) refuse("of more than " + std::to_string(most_steps) + " steps");
        std::vector<value_pointer> in{c.on.make_known(array::integers({t}, true)),
                                      go_on != nullptr ? go_on : c.on.make_known(yes)};
        in.insert(in.end(), state.begin(), state.end());
        const auto results = run_body(c, *body->g, in);
        if (static_cast<int>(results.size()) < states + 1) refuse("a body with fewer outputs than states");
        go_on = results[0];
        for (int k = 0; k < states; ++k) state[static_cast<std::size_t>(k)] = results[static_cast<std::size_t>(k) + 1];
        for (std::size_t k = 0; k < parts.size() && states + 1 + k < results.size(); ++k)
            parts[k].push_back(results[static_cast<std::size_t>(states) + 1 + k]);
    }
    for (int k = 0; k < c.outputs(); ++k) {
        if (k < states) {
            c.give(k, state[static_cast<std::size_t>(k)]);
            continue;
        }
        const auto& all_parts = parts[static_cast<std::size_t>(k - states)];
        if (all_parts.empty()) refuse("of no step");
        c.give(k, stacked_parts(c, all_parts, 0, false));
    }
}

inline void optional_has_element(call& c) {
    array there(dtype::boolean, {});
    *static_cast<bool*>(there.data()) = c.has(0);
    c.give_known(0, std::move(there));
}

inline std::span<const operator_rule> control() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"OptionalHasElement", &optional_has_element}, // of tensors, which no optional value holds
        {"OptionalGetElement", [](call& c) { c.give(0, c.pointer(0)); }},
        {"Scan", &scan_rule},
        {"Loop", &loop_rule},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
