#pragma once

#include <tapegraph/ops/concat.hpp>
#include <tapegraph/ops/lstm_second.hpp>
#include <tapegraph/ops/step_mask.hpp>

/// lstm: a long short-term memory over [batch, time, features] (Hochreiter and Schmidhuber 1997; gates, shapes and defaults as
/// in Keras).

namespace tapegraph {

/// The function of the candidate and of the output.
enum class cell_activation : std::int64_t { tanh, relu };
/// The function of the gates. The hard one is relu6(x + 3) / 6.
enum class gate_activation : std::int64_t { sigmoid, hard_sigmoid };

struct lstm_options {
    cell_activation activation = cell_activation::tanh;
    gate_activation recurrent_activation = gate_activation::sigmoid;
    bool return_sequences = false; ///< the output of every step instead of the last one's
    bool go_backwards = false;     ///< from the last step to the first; outputs come in that order
    /// Nothing is stored but the result, and a derivative computes states and gates again: between the passes x W + b is kept,
    /// 4 units a step, instead of 6. Also what to say where no derivative is expected. (In a `checkpoint` x alone is kept.)
    bool recompute = false;
};

/// Where a recurrence starts: h and c [batch, units]. Derivatives flow to both.
template <handle H>
struct initial_state {
    H hidden, cell;
};
/// Factors of the h that every step's gates see, [batch, units]: a dropout mask, the same in all steps. Constant for
/// derivatives.
template <handle H>
struct recurrent_dropout {
    H factors;
};
template <class H>
initial_state(H, H) -> initial_state<H>;
template <class H>
recurrent_dropout(H) -> recurrent_dropout<H>;

/// In the place of a bias: there is none.
struct no_bias_t {};
inline constexpr no_bias_t no_bias{};

/// What `lstm_with_state` gives; hidden and cell are those after the last step.
template <class H>
struct lstm_values {
    H output, hidden, cell;
};

namespace detail {

template <class T>
inline constexpr int recurrent_extra = -1;
template <class H>
inline constexpr int recurrent_extra<initial_state<H>> = 0;
template <class M>
inline constexpr int recurrent_extra<step_mask<M>> = 1;
template <class H>
inline constexpr int recurrent_extra<recurrent_dropout<H>> = 2;

template <class T>
concept recurrent_argument = recurrent_extra<T>
>= 0;

template <int Which, class... E>
inline constexpr bool has_extra = ((recurrent_extra<E> == Which) || ...);
/// The extra of that kind; there is one.
template <int Which, class First, class... Rest>
constexpr const auto& extra_of(const First& first, const Rest&... rest) {
    if constexpr (recurrent_extra<First> == Which)
        return first;
    else
        return extra_of<Which>(rest...);
}

struct lstm_texts {
    static constexpr const char* text(std::int64_t reason) {
        switch (reason) {
        case 0: return "lstm: input must be [batch, time, features]";
        case 1: return "lstm: kernel must be [features, 4 units] and recurrent kernel [units, 4 units]";
        default: return "lstm: bias must be [4 units]";
        }
    }
};

/// From x W + b on: the result rows of lstm_rows, and c behind them if `a` says so.
template <handle H, class... E>
constexpr H lstm_recurrence(const lstm_attributes& a, bool recompute, std::source_location where, const H& projected,
                            const H& recurrent, const E&... extras) {
    constexpr int kinds = (has_extra<0, E...> ? 4 : 0) | (has_extra<1, E...> ? 1 : 0) | (has_extra<2, E...> ? 2 : 0);
    const auto with = [&](const auto&... operands) -> H {
        if (recompute) return invoke<lstm_op<kinds>>(a, nullptr, where, projected, recurrent, operands...);
        const H states = invoke<lstm_states_op<kinds>>(a, nullptr, where, projected, recurrent, operands...);
        return invoke<lstm_result_op<kinds>>(a, nullptr, where, states, projected, recurrent, operands...);
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
    if constexpr (has_extra<0, E...>)
        return with_mask(extra_of<0>(extras...).hidden, extra_of<0>(extras...).cell);
    else
        return with_mask();
}

template <handle H, class B, class... E>
constexpr H lstm_rows_of(const lstm_options& o, bool cell, std::source_location where, const H& x, const H& kernel,
                         const H& recurrent, const B& bias, const E&... extras) {
    lstm_attributes a;
    a.relu = o.activation == cell_activation::relu;
    a.hard = o.recurrent_activation == gate_activation::hard_sigmoid;
    a.rows = o.return_sequences ? lstm_attributes::sequence : lstm_attributes::last;
    a.cell = cell;
    if (shape_of(x).rank() != 3) return refuse<lstm_texts>(0, where, x);
    if (shape_of(kernel).rank() != 2 || shape_of(recurrent).rank() != 2)
        return refuse<lstm_texts>(1, where, x, kernel, recurrent);
    const H input = o.go_backwards ? H(reverse(x, 1, where)) : x;
    const H product = matmul(input, kernel, {}, where);
    const auto biased = [&]() -> H {
        if constexpr (std::is_same_v<B, no_bias_t>) {
            return product;
        } else {
            const H b = eval(bias, where);
            if (shape_of(b).rank() != 1 || !equal_or_required(shape_of(b)[0], shape_of(kernel)[1]))
                return refuse<lstm_texts>(2, where, b, kernel);
            return eval(product + b, where);
        }
    };
    const H projected = biased();
    return lstm_recurrence(a, o.recompute, where, projected, recurrent, extras...);
}

/// The mask goes backwards with the input.
template <class E>
constexpr auto recurrent_order(const E& extra, bool backwards, std::source_location where) {
    if constexpr (recurrent_extra<E> == 1)
        return E{backwards ? decltype(extra.steps)(reverse(extra.steps, 1, where)) : extra.steps};
    else
        return extra;
}

} // namespace detail

/// An LSTM over x [batch, time, features]: kernel W [features, 4 units], recurrent kernel R [units, 4 units], bias b [4 units]
/// (or `no_bias`), gates in Keras's order i, f, c, o:
///
///     i, f, o = sigmoid(x_t W + h R + b),  c' = f c + i tanh(x_t W_c + h R_c + b_c),  h' = o tanh(c')
///
/// Gives h of the last step [batch, units], or of every step [batch, time, units]. Behind the options may stand, in any order,
/// `initial_state{h, c}`, `step_mask{bool}` and `recurrent_dropout{factors}`; the state starts at zero without the first.
/// First and second derivatives flow to everything floating but the dropout's factors; a third one is refused.
template <tensor_like X, tensor_like W, tensor_like R, class B, detail::recurrent_argument... E>
    requires(tensor_like<B> || std::is_same_v<B, no_bias_t>)
constexpr auto lstm(const X& x, const W& kernel, const R& recurrent, const B& bias, const lstm_options& options = {},
                    const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = eval(x, where);
    using handle_type = std::remove_const_t<decltype(input)>;
    const handle_type rows =
        detail::lstm_rows_of<handle_type>(options, false, where, input, eval(kernel, where), eval(recurrent, where),
                                          bias, detail::recurrent_order(extras, options.go_backwards, where)...);
    const shape of = shape_of(rows);
    if (options.return_sequences || of.rank() != 3) return rows;
    return handle_type(detail::without_axis(rows, 1, where));
}

/// The same with the state after the last step: `const auto [y, h, c] = tg::lstm_with_state(...)`.
template <tensor_like X, tensor_like W, tensor_like R, class B, detail::recurrent_argument... E>
    requires(tensor_like<B> || std::is_same_v<B, no_bias_t>)
constexpr auto lstm_with_state(const X& x, const W& kernel, const R& recurrent, const B& bias,
                               const lstm_options& options = {}, const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = eval(x, where);
    using handle_type = std::remove_const_t<decltype(input)>;
    const handle_type rows =
        detail::lstm_rows_of<handle_type>(options, true, where, input, eval(kernel, where), eval(recurrent, where),
                                          bias, detail::recurrent_order(extras, options.go_backwards, where)...);
    if (shape_of(rows).rank() != 3) return lstm_values<handle_type>{rows, rows, rows};
    const handle_type cell = take(rows, -1, 1, where), hidden = take(rows, -2, 1, where);
    if (!options.return_sequences) return lstm_values<handle_type>{hidden, hidden, cell};
    const extent steps = shape_of(rows)[1] - 1;
    return lstm_values<handle_type>{detail::part_of(rows, 1, extent(0, steps.table), steps, where), hidden, cell};
}

} // namespace tapegraph
