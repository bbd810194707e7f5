#pragma once

#include <tapegraph/io/onnx_import/recurrent_steps.hpp>
#include <tapegraph/io/onnx_import/rules_quantize.hpp>

#include <algorithm>
#include <cctype>

/// DynamicQuantizeLSTM, which onnxruntime's quantizer makes of LSTM: kernels are integers, and so is what they are
/// multiplied by, on the range that it has at that step.

namespace tapegraph::io::onnx_import {

namespace rules {

/// A kernel [in, out] of integers minus their zero points, and its scales, one or [out].
struct integer_kernel {
    node integers, scale;
    /// x [..., in] times the kernel.
    node times(const node& x) const {
        const ranged r = by_range(x);
        const node centred = converted(eval(r.integers - r.zero), dtype::f32, integers.type());
        const node sums = converted(matmul(centred, integers), integers.type(), dtype::f32);
        return eval(sums * (r.scale * scale));
    }
};

inline void dynamic_quantize_lstm(call& c) {
    const std::string direction = c.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
        refuse("direction = '" + direction + "'");
    const int directions = direction == "bidirectional" ? 2 : 1;
    if (c.rank(2) != 3) refuse("kernels of rank " + std::to_string(c.rank(2)));
    const std::int64_t units = known_extent(c.dims(2)[1], "units");
    if (c.integer("hidden_size", units) != units) refuse("hidden_size other than its kernels'");
    recurrent_steps how;
    how.clip = c.number("clip", 0);
    how.coupled = c.integer("input_forget", 0) != 0;
    std::vector<std::string> names = c.texts("activations");
    std::vector<float> alphas = c.numbers("activation_alpha"), betas = c.numbers("activation_beta");
    if (names.empty())
        for (int d = 0; d < directions; ++d) names.insert(names.end(), {"sigmoid", "tanh", "tanh"});
    if (names.size() != 3 * static_cast<std::size_t>(directions)) refuse(std::to_string(names.size()) + " activations");
    std::vector<gate_function> functions;
    for (std::string& f : names) {
        std::transform(f.begin(), f.end(), f.begin(), [](unsigned char k) { return std::tolower(k); });
        functions.push_back(gate_function_of(f, alphas, betas));
    }
    if (!alphas.empty() || !betas.empty()) refuse("activation_alpha or activation_beta for activations without");
    if (c.has(4)) refuse("with sequence_lens");
    if (c.type(0) != dtype::f32) refuse(std::string("of ") + name_of(c.type(0)));

    const node x = c.arranged(0, {1, 0, 2});
    const node nothing = c.on.number(0, dtype::f32);
    const auto spread = [&](std::vector<std::int64_t> dims) {
        return node(eval(broadcast_to(nothing, shape_of_items(c, dims))));
    };
    const auto state = [&](int i, int d) -> node {
        return c.has(i) ? take(c.plain(i), d, 0) : spread({x.shape()[0].value, units});
    };
    std::vector<node> steps, hidden, cells;
    for (int d = 0; d < directions; ++d) {
        const bool back = direction == "reverse" || d == 1;
        const auto kernel = [&](int i, int scale, int zero) {
            // Scales and zero points are one for each direction, or also for each column.
            const auto along = [&](int k) {
                const node v = converted(c.plain(k), c.type(k), dtype::f32);
                return v.rank() == 0 ? v : take(v, d, 0);
            };
            const dtype type = exact_for(c.dims(i)[1], 255, most_of(c, i, zero));
            const array* const z = c.known(zero);
            const bool one = z != nullptr && z->size() == 1;
            node w = c.on.plain(*centred(c, i, one ? zero : c.inputs(), 0, type));
            w = take(w, d, 0);
            if (!one) w = eval(w - converted(along(zero), dtype::f32, type));
            return integer_kernel{w, along(scale)};
        };
        const integer_kernel w = kernel(1, 8, 9), r = kernel(2, 10, 11);
        how.by_input = [&](const node& v) { return w.times(v); };
        how.by_state = [&](const node& v) { return r.times(v); };
        how.functions.assign(functions.begin() + 3 * d, functions.begin() + 3 * (d + 1));
        how.has_peepholes = c.has(7);
        if (how.has_peepholes) how.peepholes = take(c.plain(7), d, 0);
        const node own = c.has(3) ? take(c.plain(3), d, 0) : spread({8 * units});
        const node in = back ? node(reverse(x, axes_of({1}))) : x;
        const auto found = run_steps(how, 4, in, w.integers, r.integers, part(own, 0, 0, 4 * units),
                                     part(own, 0, 4 * units, 4 * units), state(5, d), state(6, d), nullptr);
        const node y = back ? node(reverse(found.y, axes_of({1}))) : found.y;
        steps.push_back(with_axis(y, 2)); // [batch, time, 1, units]
        hidden.push_back(with_axis(found.hidden, 0));
        cells.push_back(with_axis(found.cell, 0));
    }
    const auto all_of_them = [&](const std::vector<node>& v, int axis) {
        return v.size() == 1 ? v[0] : tapegraph::concat(v, axis);
    };
    if (c.wants(0)) c.give_laid(0, all_of_them(steps, 2), dtype::f32, {2, 0, 1, 3});
    if (c.wants(1)) c.give(1, all_of_them(hidden, 0));
    if (c.wants(2)) c.give(2, all_of_them(cells, 0));
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
