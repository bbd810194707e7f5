#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

/// Recurrent layers that the library's recurrences do not have: other activations, clipped sums,
/// peepholes, coupled gates. Their steps are unrolled (onnx.ai/onnx/operators/onnx__LSTM.html and its kin).

namespace tapegraph::io::onnx_import {

namespace rules {

/// The most steps that are unrolled.
inline constexpr std::int64_t most_unrolled_steps = 4096;

struct gate_function {
    std::string name; ///< in small letters
    double alpha = 0, beta = 0;
};
/// An activation with the file's numbers for it, if it takes some: `alphas` and `betas` are consumed. Those that
/// are operators, too, have the operators' defaults; Affine and ScaledTanh have none.
inline gate_function gate_function_of(const std::string& name, std::vector<float>& alphas, std::vector<float>& betas) {
    struct row {
        const char* name;
        bool alpha, beta;
        double a, b;
    };
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    static constexpr row table[11] = {{"sigmoid", false, false, 0, 0},
                                      {"tanh", false, false, 0, 0},
                                      {"relu", false, false, 0, 0},
                                      {"softsign", false, false, 0, 0},
                                      {"softplus", false, false, 0, 0},
                                      {"affine", true, true, none, none},
                                      {"leakyrelu", true, false, 0.01, 0},
                                      {"thresholdedrelu", true, false, 1, 0},
                                      {"scaledtanh", true, true, none, none},
                                      {"hardsigmoid", true, true, 0.2, 0.5},
                                      {"elu", true, false, 1, 0}};
    const auto taken = [](std::vector<float>& list, bool takes, double otherwise) {
        if (!takes || list.empty()) return otherwise;
        const auto v = static_cast<double>(list.front());
        list.erase(list.begin());
        return v;
    };
    for (const row& r : table)
        if (name == r.name) {
            const gate_function f{name, taken(alphas, r.alpha, r.a), taken(betas, r.beta, r.b)};
            if (std::isnan(f.alpha) || std::isnan(f.beta))
                refuse("the activation '" + name + "' without activation_alpha and activation_beta");
            return f;
        }
    refuse("the activation '" + name + "'");
}
inline node activated(const node& x, const gate_function& f) {
    if (f.name == "sigmoid") return eval(sigmoid(x));
    if (f.name == "tanh") return eval(tanh(x));
    if (f.name == "relu") return eval(relu(x));
    if (f.name == "softsign") return eval(softsign(x));
    if (f.name == "softplus") return eval(softplus(x));
    if (f.name == "affine") return eval(f.alpha * x + f.beta);
    if (f.name == "leakyrelu") return eval(where(x < 0, f.alpha * x, x));
    if (f.name == "thresholdedrelu") return eval(where(x > f.alpha, x, 0));
    if (f.name == "scaledtanh") return eval(f.alpha * tanh(f.beta * x));
    if (f.name == "hardsigmoid") return eval(minimum(maximum(f.alpha * x + f.beta, 0), 1));
    return eval(where(x < 0, f.alpha * expm1(x), x)); // elu
}

struct recurrent_steps {
    std::vector<gate_function> functions; ///< of gates, of the new value, of the output
    double clip = 0;                      ///< limits what activations take; 0: no limit
    bool coupled = false;                 ///< LSTM's forget gate is 1 - its input gate
    bool after = false;                   ///< GRU resets what the recurrent kernel gave
    node peepholes;                       ///< [3 units], of input, output and forget gates
    bool has_peepholes = false;
    /// Products with the kernel of the input and with the recurrent one, of layers whose kernels are integers.
    std::function<node(const node&)> by_input, by_state;
};
struct recurrent_results {
    node y, hidden, cell; ///< [batch, steps, units], [batch, units] twice
};

/// Runs `gates` gates over x [batch, steps, size]: 4 are an LSTM's (input, output, forget, new), 3 a GRU's
/// (update, reset, new), 1 a plain layer's. Kernels are [gates units, size] and [gates units, units], biases
/// [gates units]. Where `counts` [batch, steps] is false, a state stays.
inline recurrent_results run_steps(const recurrent_steps& how, int gates, const node& x, const node& w, const node& r,
                                   const node& b, const node& b_recurrent, node h, node cell, const node* counts) {
    const std::int64_t steps = known_extent(x.shape()[1], "steps"), units = known_extent(h.shape()[1], "units");
    if (steps < 1 || steps > most_unrolled_steps)
        refuse(std::to_string(steps) + " steps with such settings; 1 to 4096 are unrolled");
    const node from_x = eval((how.by_input ? how.by_input(x) : matmul(x, w, {.transpose_b = true})) + b);
    const auto limited = [&](const node& v) {
        return how.clip > 0 ? node(eval(minimum(maximum(v, -how.clip), how.clip))) : v;
    };
    const auto gate = [&](const node& v, int k) { return part(v, 1, k * units, units); };
    const auto peephole = [&](const node& v, int k, const node& c) {
        return how.has_peepholes ? node(eval(v + part(how.peepholes, 0, k * units, units) * c)) : v;
    };
    const auto applied = [&](const node& v, std::size_t f) { return activated(limited(v), how.functions[f]); };
    std::vector<node> all;
    for (std::int64_t t = 0; t < steps; ++t) {
        const node in = take(from_x, t, 1);
        const node back = how.by_state ? how.by_state(h) : matmul(h, r, {.transpose_b = true});
        node next, next_cell = cell;
        if (gates == 3) {
            const node sum = eval(in + back + b_recurrent);
            const node z = applied(gate(sum, 0), 0), reset = applied(gate(sum, 1), 0);
            const node recurrent_bias = part(b_recurrent, 0, 2 * units, units);
            const node fresh =
                how.after ? node(eval(reset * (gate(back, 2) + recurrent_bias)))
                          : node(eval(matmul(eval(reset * h), part(r, 0, 2 * units, units), {.transpose_b = true}) +
                                      recurrent_bias));
            next = eval((1 - z) * applied(eval(gate(in, 2) + fresh), 1) + z * h);
        } else if (gates == 4) {
            const node sum = eval(in + back + b_recurrent);
            const node i = applied(peephole(gate(sum, 0), 0, cell), 0);
            const node f = how.coupled ? node(eval(1 - i)) : applied(peephole(gate(sum, 2), 2, cell), 0);
            next_cell = eval(f * cell + i * applied(gate(sum, 3), 1));
            const node o = applied(peephole(gate(sum, 1), 1, next_cell), 0);
            next = eval(o * activated(next_cell, how.functions[2]));
        } else {
            next = applied(eval(in + back + b_recurrent), 0);
        }
        if (counts != nullptr) {
            const node here = part(*counts, 1, t, 1);
            next = eval(where(here, next, h));
            if (gates == 4) next_cell = eval(where(here, next_cell, cell));
        }
        h = next, cell = next_cell;
        all.push_back(with_axis(h, 1));
    }
    return {tapegraph::concat(all, 1), h, cell};
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
