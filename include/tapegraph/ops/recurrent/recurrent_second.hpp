#pragma once

#include <tapegraph/ops/recurrent/recurrent_gradient.hpp>

/// Second derivatives of recurrent layers, and their forward mode.

namespace tapegraph {

namespace detail {
template <class Cell>
struct recurrent_third_texts {
    static constexpr const char* text(std::int64_t) {
        return cell_text<Cell,
                         ": has first and second derivatives; a third, or the tangent of a tangent, was requested">;
    }
};
} // namespace detail

/// Maps (v, states, x W + b, R, extras), v with the shape of the gradient's value, to the tangent
/// of the rows along v. With J the derivative of the rows, this is J v and the gradient J^T dy:
/// each is the other's adjoint, and second derivatives are those of dy^T J v.
template <class Cell, int Extras>
struct recurrent_tangent_op {
    static constexpr bool registers_where_used = true; // by cell and operands (graph/kernel_registry.hpp)
    static constexpr int variant = Extras;
    static constexpr std::string_view name = detail::cell_text<Cell, "_tangent">;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 2 + detail::recurrent_operands<Cell, Extras>;
    static constexpr std::uint32_t unread_operands = 1u << 2;
    using attributes = recurrent_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::recurrent_fits<Cell, Extras>(io, 2))
            detail::recurrent_result_shape<Cell>(a, io.in[2].dims, io.in[3].dims[0], io);
    }
    /// The first and the second derivative, which share their pass.
    template <class Gradient, class Second>
    struct both {
        Gradient gradient;
        Second second;
    };
    static constexpr auto shared(const attributes& a, const auto& d, const auto& v, const auto& states, const auto& z,
                                 const auto& r, const auto&... rest);
    template <int I>
        requires(I != 1 && I < 2 + detail::recurrent_sources<Cell, Extras>)
    static constexpr auto flow(const attributes& a, const auto& both, const auto& d, const auto& v, const auto& states,
                               const auto& z, const auto& r, const auto&... rest);
    template <int I>
        requires(I != 1 && I < 2 + detail::recurrent_sources<Cell, Extras>)
    static constexpr auto vjp(const attributes& a, auto d, auto... operands) {
        return flow<I>(a, shared(a, d, operands...), d, operands...);
    }
    static double flops(const kernel_call& c) { return detail::recurrence_flops(c, 1, 3); }
};

/// Maps (v, dL/d rows, states, x W + b, R, extras) to the derivative of dy^T J v by the operands of
/// the rows, [batch, (given + columns) time + states, units]: the tangent along v of the operand of
/// R in each step, then the derivative by the columns, and those by the initial states.
template <class Cell, int Extras>
struct recurrent_second_op {
    static constexpr bool registers_where_used = true; // by cell and operands (graph/kernel_registry.hpp)
    static constexpr int variant = Extras;
    static constexpr std::string_view name = detail::cell_text<Cell, "_second">;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 3 + detail::recurrent_operands<Cell, Extras>;
    static constexpr std::uint32_t unread_operands = 1u << 3;
    using attributes = recurrent_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (!detail::recurrent_fits<Cell, Extras>(io, 3)) return;
        const shape& z = io.in[3].dims;
        io.result.push_back(z[0]);
        io.result.push_back(z[1] * (Cell::given(a) + Cell::columns(a)) + Cell::states);
        io.result.push_back(io.in[4].dims[0]);
    }
    // It is linear in v; by any other operand this would be a third derivative, or the tangent of a
    // tangent.
    template <int I>
        requires(I < 3 + detail::recurrent_sources<Cell, Extras>)
    static constexpr auto vjp(const attributes& a, auto d, auto v, auto dy, auto states, auto z, auto r, auto... rest);
    static double flops(const kernel_call& c) { return detail::recurrence_flops(c, 2, 4, 3); }
};

template <class Cell, int Extras>
constexpr auto recurrent_gradient_op<Cell, Extras>::shared(const attributes& a, const auto& v, const auto& dy,
                                                           const auto& states, const auto& z, const auto& r,
                                                           const auto&... rest) {
    return detail::call_without_last(
        [&](const auto&... extras) {
            return invoke<recurrent_second_op<Cell, Extras>>(a, nullptr, std::source_location::current(), v, dy, states,
                                                             z, r, extras...);
        },
        rest...);
}

template <class Cell, int Extras>
template <int I>
    requires(I != 1 && I < 2 + detail::recurrent_sources<Cell, Extras>)
constexpr auto recurrent_gradient_op<Cell, Extras>::flow(const attributes& a, const auto& second, const auto& v,
                                                         const auto&, const auto& states, const auto& z, const auto& r,
                                                         const auto&... rest) {
    const extent steps = shape_of(z)[1], units = shape_of(r)[0];
    const int given = Cell::given(a), columns = Cell::columns(a);
    constexpr int state = I - 4 - detail::recurrent_biased<Extras>;
    if constexpr (I == 0) {
        return detail::call_without_last(
            [&](const auto&... extras) {
                return invoke<recurrent_tangent_op<Cell, Extras>>(a, nullptr, std::source_location::current(), v,
                                                                  states, z, r, extras...);
            },
            rest...);
    } else if constexpr (state >= 0) {
        return detail::recurrent_part(second, steps * (given + columns) + state, extent(1, steps.table),
                                      shape_of(std::get<I - 4>(std::tie(rest...))));
    } else {
        const auto d =
            detail::recurrent_part(second, steps * given, steps * columns, detail::columns_like(z, units, columns));
        if constexpr (I == 2) {
            return detail::recurrent_columns(d, units, 0, Cell::gates);
        } else if constexpr (I == 3) {
            // d(g^T d) = dg^T d + g^T d(d); the value, d, is the last operand.
            return detail::call_without_last(
                [&](const auto&... extras) {
                    const auto product = [&](const auto& of, const auto& by) {
                        return detail::recurrent_weight_gradient<Cell, Extras>(a, units, of, by, extras...);
                    };
                    const auto tangent = detail::recurrent_part(second, extent(0, steps.table), steps * given,
                                                                detail::columns_like(z, units, given));
                    const auto first = detail::recurrent_column_gradient<Cell, Extras>(
                        a, std::get<sizeof...(rest) - 1>(std::tie(rest...)), z, units);
                    return eval(product(tangent, first) +
                                product(detail::recurrent_given<Cell, Extras>(a, states, z, r, extras...), d));
                },
                rest...);
        } else {
            return detail::recurrent_bias_gradient<Cell>(a, units, d);
        }
    }
}

template <class Cell, int Extras>
constexpr auto recurrent_tangent_op<Cell, Extras>::shared(const attributes& a, const auto& d, const auto& v,
                                                          const auto& states, const auto& z, const auto& r,
                                                          const auto&... rest) {
    const auto gradient = recurrent_result_op<Cell, Extras>::shared(a, d, states, z, r, rest...);
    const auto second = recurrent_gradient_op<Cell, Extras>::shared(a, v, d, states, z, r, rest...);
    return both<std::remove_const_t<decltype(gradient)>, std::remove_const_t<decltype(second)>>{gradient, second};
}

template <class Cell, int Extras>
template <int I>
    requires(I != 1 && I < 2 + detail::recurrent_sources<Cell, Extras>)
constexpr auto recurrent_tangent_op<Cell, Extras>::flow(const attributes& a, const auto& both, const auto& d,
                                                        const auto& v, const auto& states, const auto& z, const auto& r,
                                                        const auto&... rest) {
    if constexpr (I == 0)
        return both.gradient;
    else
        return detail::call_without_last(
            [&](const auto&... extras) {
                return recurrent_gradient_op<Cell, Extras>::template flow<I>(a, both.second, v, d, states, z, r,
                                                                             extras..., both.gradient);
            },
            rest...);
}

// d consists of p, for the tangents of R's operands, and w, for the rest: w^T H v and p^T J v, H
// symmetric.
template <class Cell, int Extras>
template <int I>
    requires(I < 3 + detail::recurrent_sources<Cell, Extras>)
constexpr auto recurrent_second_op<Cell, Extras>::vjp(const attributes& a, auto d, auto v, auto dy, auto states, auto z,
                                                      auto r, auto... rest) {
    const auto here = std::source_location::current();
    if constexpr (I == 0) {
        const shape of_v = shape_of(v);
        const extent steps = shape_of(z)[1], before_v = steps * Cell::given(a);
        const extent rows = steps * Cell::columns(a) + (detail::recurrent_initial<Extras> ? Cell::states : 0);
        const shape of_given = detail::columns_like(z, shape_of(r)[0], Cell::given(a));
        attributes before = a;
        before.rows = attributes::previous;
        before.cell = 0;
        return detail::call_without_last(
            [&](const auto&... extras) {
                const auto p = detail::recurrent_part(d, extent(0, steps.table), before_v, of_given);
                const auto w = detail::recurrent_part(d, before_v, rows, of_v);
                const auto second =
                    invoke<recurrent_second_op<Cell, Extras>>(a, nullptr, here, w, dy, states, z, r, extras...);
                const auto first =
                    invoke<recurrent_gradient_op<Cell, Extras>>(before, nullptr, here, p, states, z, r, extras...);
                return eval(detail::recurrent_part(second, before_v, rows, of_v) + first);
            },
            rest...);
    } else {
        return detail::refuse<detail::recurrent_third_texts<Cell>>(0, here, d);
    }
}

} // namespace tapegraph
