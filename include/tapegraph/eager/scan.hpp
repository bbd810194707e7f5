#pragma once

#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/scan/scan.hpp>

#include <vector>

/// Scans in eager mode: the cell is called step by step, and its operations are recorded one by
/// one.

namespace tapegraph {

namespace detail {

/// Calls f(x_t) in order of time. The sequence is halved repeatedly instead of cut into steps
/// directly: the derivative of a part has the size of the whole that it was cut from, so direct
/// cuts would cost the square of the number of steps.
template <class T, class F>
void each_step(const tensor<T>& xs, int axis, std::source_location where, const F& f) {
    const std::int64_t steps = xs.shape()[axis].value, half = steps / 2;
    if (steps == 1) return f(tensor<T>(take(xs, 0, axis, where)));
    each_step(part_of(xs, axis, 0, half, where), axis, where, f);
    each_step(part_of(xs, axis, half, steps - half, where), axis, where, f);
}
template <class T>
void collect_steps(const tensor<T>& xs, int axis, std::source_location where, std::vector<tensor<T>>& to) {
    each_step(xs, axis, where, [&](const tensor<T>& x) { to.push_back(x); });
}

} // namespace detail

template <>
struct mode_scan<eager> {
    template <class Cell, class State, class T, class Mask, class... W>
    static auto run(const Cell& cell, State state, const tensor<T>& xs, const Mask& mask, const scan_options& o,
                    std::source_location where, const W&... weights) {
        constexpr bool masked = !std::is_same_v<Mask, detail::no_mask>;
        refuse_sequences(xs, mask, o.axis);
        using result = decltype(detail::sealed_step<State>(cell(state, xs, weights...), where));
        constexpr std::size_t carries = std::tuple_size_v<result> - 1;
        using output = std::tuple_element_t<carries, result>;
        std::vector<tensor<bool>> counted;
        if constexpr (masked) detail::collect_steps(mask, o.axis, where, counted);
        std::vector<output> outputs;
        detail::each_step(xs, o.axis, where, [&](const tensor<T>& x) {
            const result next = detail::sealed_step<State>(cell(std::as_const(state), x, weights...), where);
            output y = std::get<carries>(next);
            if constexpr (masked)
                std::apply([&](const auto&... value) { (refuse_mask(value, counted.front()), ...); }, next);
            if (y.rank() < o.axis)
                throw shape_error("scan: the cell's output " + text(y) + " has too few axes to have time at axis " +
                                  std::to_string(o.axis));
            [&]<std::size_t... I>(std::index_sequence<I...>) {
                (..., [&](auto& old, const auto& value) {
                    static_assert(
                        std::is_same_v<std::remove_cvref_t<decltype(old)>, std::remove_cvref_t<decltype(value)>>,
                        "scan: the cell's new state has another element type than the state");
                    if (!(old.shape() == value.shape()))
                        throw shape_error("scan: the cell's new state has another shape or type than the state: " +
                                          text(value) + ", " + text(old));
                    if constexpr (masked)
                        old = detail::where_counted(counted[outputs.size()], value, old, where);
                    else
                        old = value;
                }(element<I>(state), std::get<I>(next)));
            }
            (std::make_index_sequence<carries>{});
            if constexpr (masked)
                y = detail::where_counted(
                    counted[outputs.size()], y,
                    outputs.empty() ? zeros<typename output::element_type>(y.shape()) : outputs.back(), where);
            outputs.push_back(y);
        });
        const output sequence = detail::stacked(outputs.data(), static_cast<int>(outputs.size()), o.axis, where);
        return scan_values<State, output>{state, sequence};
    }

private:
    template <std::size_t I, class State>
    static auto& element(State& state) {
        if constexpr (handle<State>)
            return state;
        else
            return std::get<I>(state);
    }
    template <class T>
    static std::string text(const tensor<T>& x) {
        return name_of(x.type()) + to_string(x.shape());
    }
    template <class T>
    static void refuse_mask(const tensor<T>& value, const tensor<bool>& mask) {
        if (value.rank() < mask.rank())
            throw shape_error("scan: a state or output has fewer axes than the mask: " + text(value) + ", " +
                              text(mask));
    }
    template <class T, class Mask>
    static void refuse_sequences(const tensor<T>& xs, const Mask& mask, int axis) {
        const shape& dims = xs.shape();
        if (axis < 0 || axis >= dims.rank())
            throw shape_error("scan: xs has no axis for time there: " + text(xs) + ", axis " + std::to_string(axis));
        if (dims[axis].value == 0) throw shape_error("scan: a sequence of no steps: " + text(xs));
        if constexpr (!std::is_same_v<Mask, detail::no_mask>) {
            static_assert(std::is_same_v<Mask, tensor<bool>>, "scan: a mask is bool");
            const shape& steps = mask.shape();
            bool valid = steps.rank() > axis && steps.rank() <= dims.rank();
            for (int i = 0; valid && i < steps.rank(); ++i) valid = steps[i] == dims[i];
            if (!valid)
                throw shape_error("scan: a mask is bool, with the leading axes of xs up to time at least: " + text(xs) +
                                  ", " + text(mask));
        }
    }
};

} // namespace tapegraph
