#pragma once

#include <tapegraph/ops/recurrent/recurrent_second.hpp>
#include <tapegraph/ops/scan/step_mask.hpp>

/// Shared by recurrent operations: options, the arguments that may follow them, and the calls of a
/// layer's operations.

namespace tapegraph {

/// The function of the candidate and of the output.
enum class cell_activation : std::int64_t { tanh, relu };
/// The function of the gates. The hard one is relu6(x + 3) / 6.
enum class gate_activation : std::int64_t { sigmoid, hard_sigmoid };

/// The initial state of a recurrence: h, and c for an lstm, [batch, units]. Derivatives flow to
/// both.
template <handle H, int States = 2>
struct initial_state {
    H hidden, cell;
};
template <handle H>
struct initial_state<H, 1> {
    H hidden;
};
/// Factors of the h that the gates read at every step, [batch, units]: a dropout mask, the same in
/// all steps. Constant for derivatives.
template <handle H>
struct recurrent_dropout {
    H factors;
};
template <class H>
initial_state(H, H) -> initial_state<H, 2>;
template <class H>
initial_state(H) -> initial_state<H, 1>;
template <class H>
recurrent_dropout(H) -> recurrent_dropout<H>;

/// Passed instead of a bias to a layer that has none.
struct no_bias_t {};
inline constexpr no_bias_t no_bias{};

/// The result of `gru_with_state` and `simple_rnn_with_state`; hidden is h after the last step.
template <class H>
struct recurrent_values {
    H output, hidden;
};

namespace detail {

template <class T>
inline constexpr int recurrent_extra = -1;
template <class H, int States>
inline constexpr int recurrent_extra<initial_state<H, States>> = 0;
template <class M>
inline constexpr int recurrent_extra<step_mask<M>> = 1;
template <class H>
inline constexpr int recurrent_extra<recurrent_dropout<H>> = 2;

template <class T>
concept recurrent_argument = recurrent_extra<T>
>= 0;

template <int Which, class... E>
inline constexpr bool has_extra = ((recurrent_extra<E> == Which) || ...);
/// The one extra argument of that kind.
template <int Which, class First, class... Rest>
constexpr const auto& extra_of(const First& first, const Rest&... rest) {
    if constexpr (recurrent_extra<First> == Which)
        return first;
    else
        return extra_of<Which>(rest...);
}

/// Whether an initial state, if one is given, has as many parts as the cell has states.
template <class Cell, class T>
inline constexpr bool fitting_state = true;
template <class Cell, class H, int States>
inline constexpr bool fitting_state<Cell, initial_state<H, States>> = States == Cell::states;

template <class Cell>
struct recurrent_texts {
    static constexpr const char* text(std::int64_t reason) {
        switch (reason) {
        case 0: return cell_text<Cell, ": input must be [batch, time, features]">;
        case 1:
            return cell_text<Cell, ": kernel must be [features, ", Cell::width, "] and recurrent kernel [units, ",
                             Cell::width, "]">;
        case 2: return cell_text<Cell, ": bias must be ", Cell::bias_shape>;
        case 3: return cell_text<Cell, ": recurrent kernel must be [units, ", Cell::width, "]">;
        default: return cell_text<Cell, ": kernel and recurrent kernel differ in units">;
        }
    }
};

/// Computes the rows that `a` selects, from x W + b on. `bias`: of the last gate's product, none or
/// one.
template <class Cell, handle H, class B, class... E>
constexpr H recurrence(const recurrent_attributes& a, bool recompute, std::source_location where, const H& projected,
                       const H& recurrent, const B& bias, const E&... extras) {
    static_assert((fitting_state<Cell, E> && ...), "initial_state: an lstm starts at h and c, other layers at h alone");
    constexpr bool biased = !std::is_same_v<B, no_bias_t>;
    constexpr int kinds =
        (biased ? 8 : 0) | (has_extra<0, E...> ? 4 : 0) | (has_extra<1, E...> ? 1 : 0) | (has_extra<2, E...> ? 2 : 0);
    const auto with = [&](const auto&... operands) -> H {
        if (recompute) return invoke<recurrent_op<Cell, kinds>>(a, nullptr, where, projected, recurrent, operands...);
        const H states = invoke<recurrent_states_op<Cell, kinds>>(a, nullptr, where, projected, recurrent, operands...);
        return invoke<recurrent_result_op<Cell, kinds>>(a, nullptr, where, states, projected, recurrent, operands...);
    };
    const auto with_dropout = [&](const auto&... before) -> H {
        if constexpr (has_extra<2, E...>)
            return with(before..., extra_of<2>(extras...).factors);
        else
            return with(before...);
    };
    const auto with_mask = [&](const auto&... before) -> H {
        if constexpr (has_extra<1, E...>)
            return with_dropout(before..., extra_of<1>(extras...).steps);
        else
            return with_dropout(before...);
    };
    const auto with_state = [&](const auto&... before) -> H {
        if constexpr (!has_extra<0, E...>)
            return with_mask(before...);
        else if constexpr (Cell::states == 2)
            return with_mask(before..., extra_of<0>(extras...).hidden, extra_of<0>(extras...).cell);
        else
            return with_mask(before..., extra_of<0>(extras...).hidden);
    };
    if constexpr (biased)
        return with_state(bias);
    else
        return with_state();
}

template <class Options>
constexpr recurrent_attributes recurrent_attributes_of(const Options& o) {
    recurrent_attributes a;
    a.relu = o.activation == cell_activation::relu;
    if constexpr (requires { o.recurrent_activation; })
        a.hard = o.recurrent_activation == gate_activation::hard_sigmoid;
    if constexpr (requires { o.reset_after; }) a.reset_after = o.reset_after;
    a.rows = o.return_sequences ? recurrent_attributes::sequence : recurrent_attributes::last;
    return a;
}

template <class Input, class Recurrent>
struct bias_parts {
    Input input;         ///< added to x W
    Recurrent recurrent; ///< to the last gate's product; may be no_bias
};

/// Base of cells whose bias [gates units] is added to x W.
struct plain_bias {
    static constexpr bool bias_fits(const recurrent_attributes&, const shape& b, extent width) {
        return b.rank() == 1 && equal_or_required(b[0], width);
    }
    template <handle H>
    static constexpr bias_parts<H, no_bias_t> biases(const recurrent_attributes&, const H& b, extent,
                                                     std::source_location) {
        return {b, no_bias};
    }
};

template <class Cell, class Options, handle H, class B, class... E>
constexpr H recurrent_rows_of(const recurrent_attributes& a, const Options& o, std::source_location where, const H& x,
                              const H& kernel, const H& recurrent, const B& bias, const E&... extras) {
    if (shape_of(x).rank() != 3) return refuse<recurrent_texts<Cell>>(0, where, x);
    if (shape_of(kernel).rank() != 2 || shape_of(recurrent).rank() != 2)
        return refuse<recurrent_texts<Cell>>(1, where, x, kernel, recurrent);
    const H input = o.go_backwards ? H(reverse(x, 1, where)) : x;
    const H product = matmul(input, kernel, {}, where);
    if constexpr (std::is_same_v<B, no_bias_t>) {
        return recurrence<Cell>(a, o.recompute, where, product, recurrent, no_bias, extras...);
    } else {
        const H b = eval(bias, where);
        if (!Cell::bias_fits(a, shape_of(b), shape_of(kernel)[1]))
            return refuse<recurrent_texts<Cell>>(2, where, b, kernel);
        const extent units = shape_of(recurrent)[0];
        if (!equal_or_required(shape_of(recurrent)[1], units * Cell::gates))
            return refuse<recurrent_texts<Cell>>(3, where, recurrent);
        if (!equal_or_required(shape_of(kernel)[1], units * Cell::gates))
            return refuse<recurrent_texts<Cell>>(4, where, kernel, recurrent);
        const auto parts = Cell::biases(a, b, units, where);
        return recurrence<Cell>(a, o.recompute, where, H(eval(product + parts.input, where)), recurrent,
                                parts.recurrent, extras...);
    }
}

/// Reverses the mask together with the input.
template <class E>
constexpr auto recurrent_order(const E& extra, bool backwards, std::source_location where) {
    if constexpr (recurrent_extra<E> == 1)
        return E{backwards ? decltype(extra.steps)(reverse(extra.steps, 1, where)) : extra.steps};
    else
        return extra;
}

/// The rows of a layer's result: the common part of its functions.
template <class Cell, class Options, tensor_like X, tensor_like W, tensor_like R, class B, class... E>
constexpr auto recurrent_rows(const recurrent_attributes& a, const Options& o, std::source_location where, const X& x,
                              const W& kernel, const R& recurrent, const B& bias, const E&... extras) {
    const auto given = eval(x, where);
    using handle_type = std::remove_const_t<decltype(given)>;
    const handle_type input = [&]() -> handle_type {
        if constexpr (has_extra<1, E...>)
            return counted_steps(given, extra_of<1>(extras...).steps, where);
        else
            return given;
    }();
    const auto weights = eval(kernel, where); // named: operands of one call are in no order
    const auto recurrent_weights = eval(recurrent, where);
    return recurrent_rows_of<Cell, Options, handle_type>(a, o, where, input, weights, recurrent_weights, bias,
                                                         recurrent_order(extras, o.go_backwards, where)...);
}

/// [batch, 1, units] as [batch, units], where one row is the whole result.
template <handle H>
constexpr H recurrent_output(const H& rows, bool sequences, std::source_location where) {
    if (sequences || shape_of(rows).rank() != 3) return rows;
    return without_axis(rows, 1, where);
}

/// The output, and h after the last step.
template <handle H>
constexpr recurrent_values<H> recurrent_output_and_state(const H& rows, bool sequences, std::source_location where) {
    if (shape_of(rows).rank() != 3) return {rows, rows};
    if (sequences) return {rows, take(rows, -1, 1, where)};
    const H last = recurrent_output(rows, false, where);
    return {last, last};
}

template <class B>
concept bias_like = tensor_like<B> || std::is_same_v<B, no_bias_t>;

} // namespace detail

} // namespace tapegraph
