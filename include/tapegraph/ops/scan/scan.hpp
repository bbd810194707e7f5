#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/scan/step_mask.hpp>

#include <tuple>
#include <type_traits>

/// scan: runs a function of one step, a cell, over the steps of a sequence. graph/scan.hpp and
/// eager/scan.hpp implement it for the modes; programs include nn/scan.hpp.

namespace tapegraph {

/// Options of `scan`.
struct scan_options {
    int axis = 1; ///< of time: in xs, in a mask and in the sequence of outputs
    bool go_backwards =
        false; ///< from the last step to the first; outputs come in that order, and a mask is read in it
    /// Keeps only the state of every step for the derivative, which computes the cell again, in graph
    /// mode. In eager mode use a `checkpoint` inside the cell.
    bool recompute = false;
};

/// The result of `scan`: the state after the last step, in the form of the initial one, and the outputs
/// of all steps.
template <class State, class H>
struct scan_values {
    State last;
    H sequence;
};

/// Each mode specialises it: `run(cell, state, xs, mask, options, where, weights...)`. The state is
/// sealed, a handle or a std::tuple of handles; `mask` is a handle or no_mask.
template <class Mode>
struct mode_scan {
    static_assert(always_false<Mode>, "scan: not under vmap; a batch is an axis of what the cell computes with");
};

namespace detail {

struct no_mask {};

template <class T>
concept tuple_like = !tensor_like<T> && requires {
    std::tuple_size<T>::value;
};
template <class T>
concept scan_state = tensor_like<T> || tuple_like<T>;

template <scan_state S>
constexpr auto sealed_state(const S& state, std::source_location where) {
    if constexpr (tensor_like<S>)
        return eval(state, where);
    else
        return std::apply(
            [&](const auto&... each) { // braces: in order
                return std::tuple<decltype(eval(each, where))...>{eval(each, where)...};
            },
            state);
}

/// What a cell returned, as a tuple of sealed values: the new state's, then the output.
template <class State, class Result>
constexpr auto sealed_step(const Result& result, std::source_location where) {
    static_assert(tuple_like<Result>, "scan: a cell returns a pair, {new state, output}");
    static_assert(std::tuple_size_v<Result> == 2, "scan: a cell returns a pair, {new state, output}");
    const auto& [state, output] = result;
    using given = std::remove_cvref_t<decltype(state)>;
    static_assert(scan_state<given> && tensor_like<State> == tensor_like<given>,
                  "scan: a cell returns its state in the form in which it is given: one tensor, or a tuple of them");
    const auto y = eval(output, where);
    if constexpr (tensor_like<given>) {
        return std::tuple<decltype(eval(state, where)), std::remove_const_t<decltype(y)>>(eval(state, where), y);
    } else {
        static_assert(std::tuple_size_v<given> == std::tuple_size_v<State>,
                      "scan: a cell returns as many tensors of state as it is given");
        return std::tuple_cat(sealed_state(state, where), std::tuple<std::remove_const_t<decltype(y)>>(y));
    }
}

/// At steps that do not count, what was there before. The mask has the value's leading axes.
template <handle M, handle H>
constexpr H where_counted(const M& mask, const H& value, const H& before, std::source_location where) {
    const shape from = shape_of(mask);
    shape target = from;
    for (int i = from.rank(); i < shape_of(value).rank(); ++i) target.push_back(1);
    const M raised = invoke<reshape_op>({}, &target, where, mask);
    return eval(tapegraph::where(raised, value, before), where);
}

template <class Cell, class State, class X, class Mask, class... W>
constexpr auto scan_over(const Cell& cell, const State& initial, const X& xs, const Mask& mask, const scan_options& o,
                         std::source_location where, const W&... weights) {
    const auto state = sealed_state(initial, where);
    const auto input = eval(xs, where);
    using mode = mode_of_t<X, W...>;
    const auto ordered = [&](const auto& sequence) {
        const auto whole = eval(sequence, where);
        using handle_type = std::remove_const_t<decltype(whole)>;
        return o.go_backwards && o.axis >= 0 && o.axis < shape_of(whole).rank()
                   ? handle_type(reverse(whole, o.axis, where))
                   : whole;
    };
    const auto run = [&](const auto& sequence, const auto& steps) {
        return std::apply(
            [&](const auto&... sealed) {
                return mode_scan<mode>::run(cell, state, sequence, steps, o, where, sealed...);
            },
            std::tuple<decltype(eval(weights, where))...>{eval(weights, where)...}); // braces: in order
    };
    if constexpr (std::is_same_v<Mask, no_mask>) {
        return run(ordered(input), mask);
    } else {
        const auto counted = ordered(counted_steps(input, mask.steps, where));
        const auto steps = ordered(mask.steps);
        return run(counted, steps);
    }
}

} // namespace detail

/// Runs a cell over time: (state, y_t) = cell(state, x_t, weights...) for t = 0, 1, ... Returns the state
/// after the last step and the outputs of all steps:
///
///     const auto [last, sequence] = tg::scan(cell, initial, xs, weights...);
///
/// - cell: a function object, written with the library's functions, that returns a pair {new state,
///   output}. In graph mode it is traced once, however long the sequence, so it may not capture:
///   everything it reads is an argument. There it uses no variables of its own and prints nothing. In a
///   graph that is made at run time (tg::traced) it may capture values, scopes and data. Random numbers
///   are drawn anew in every step, in all modes the same ones.
/// - initial: one tensor or a std::tuple of them; the cell receives the state in the same form and
///   returns tensors of the same shapes and types.
/// - xs [batch, time, ...]: x_t is [batch, ...]; the sequence of outputs has time at the same axis
///   (`scan_options::axis`). Time may be a symbol; it is at least 1.
/// - weights: tensors that are the same in all steps, parameters as well as constants.
///
/// All floating-point operands have one element type, and derivatives flow to all of them: up to the
/// third in graph mode, of any order in eager mode, where the tape records the steps.
template <class Cell, detail::scan_state State, tensor_like X, tensor_like... W>
constexpr auto scan(const Cell& cell, const State& initial, const X& xs, const W&... weights) {
    return detail::scan_over(cell, initial, xs, detail::no_mask{}, {}, std::source_location::current(), weights...);
}
template <class Cell, detail::scan_state State, tensor_like X, tensor_like... W>
constexpr auto scan(const Cell& cell, const State& initial, const X& xs, const scan_options& options,
                    const W&... weights) {
    return detail::scan_over(cell, initial, xs, detail::no_mask{}, options, std::source_location::current(),
                             weights...);
}
/// With a mask, bool [batch, time]: at steps where it is false the state does not change, and the output
/// repeats that of the previous step; before the first step that counts it is zero. At these steps the
/// cell receives zeros instead of the elements of xs.
template <class Cell, detail::scan_state State, tensor_like X, handle M, tensor_like... W>
constexpr auto scan(const Cell& cell, const State& initial, const X& xs, const scan_options& options,
                    const step_mask<M>& mask, const W&... weights) {
    return detail::scan_over(cell, initial, xs, mask, options, std::source_location::current(), weights...);
}
no_such_option_in<scan_options> scan(any_argument, any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
