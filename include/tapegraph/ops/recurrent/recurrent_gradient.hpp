#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/refusal.hpp>

#include <tuple>

/// The operations of which recurrent layers consist. Their operands begin with x W + b of all
/// steps, which is an ordinary product, and they end at the derivative by it, from which those by
/// x, W, R and b are products over all steps.
///
/// All that a forward pass keeps for its derivative is one value, `states`, which users never see.
/// Derivatives do not flow through it but past it: an operation that reads it also receives the
/// operands it was computed from, and is differentiated by those.
///
/// `Cell` describes the kind of layer: its name, `gates` (columns of W and R, in units) as a number
/// and in words, `states` (2 where there is c in addition to h), and, for given attributes,
///   columns   the number of arguments by which the cell is differentiated: those of its gates, and where the candidate's
///             product occurs in one of them only as a factor, that product, as the last column
///   planes    the number of planes of units for each step that are kept for derivatives
///   given     the number of operands of R in each step: h before it, and where it is 2 another one for the last gate
/// The last gate's part of R belongs to the last column, and so does its bias if there is one.

namespace tapegraph {

/// Activations of a recurrence, and which of its states are the result.
struct recurrent_attributes {
    enum : std::int64_t { last, sequence, previous };
    std::int64_t relu = 0, hard = 0;
    /// The steps of h: the last one [batch, 1, units], all of them, or the operand of R in each, h
    /// before it.
    std::int64_t rows = sequence;
    std::int64_t cell = 0;        ///< whether c of the last step is an additional row
    std::int64_t reset_after = 0; ///< of a gru

    /// States in the result along the time.
    constexpr extent count(extent time) const { return (rows == last ? extent(1, time.table) : time) + cell; }
};

namespace detail {

template <fixed_string... Parts>
inline constexpr auto joined_text = [] {
    fixed_string<(sizeof(Parts.text) + ...) - sizeof...(Parts) + 1> all;
    std::size_t at = 0;
    const auto add = [&](const auto& part) {
        for (std::size_t i = 0; i + 1 < sizeof(part.text); ++i) all.text[at++] = part.text[i];
    };
    (add(Parts), ...);
    return all;
}();
/// The cell's name, such as "lstm", followed by the parts.
template <class Cell, fixed_string... Parts>
inline constexpr const char* cell_text = joined_text<Cell::name, Parts...>.text;

/// The operands after R: with bit 3 of `Extras` the bias of the last gate's product [units], with
/// bit 2 the initial states, with bit 0 a mask, with bit 1 the recurrent dropout's factors.
constexpr bool is_recurrent_biased(int extras) { return (extras >> 3 & 1) != 0; }
constexpr bool is_recurrent_initial(int extras) { return (extras & 4) != 0; }
template <int Extras>
inline constexpr int recurrent_biased = is_recurrent_biased(Extras) ? 1 : 0;
template <int Extras>
inline constexpr bool recurrent_initial = is_recurrent_initial(Extras);
/// The number of operands from x W + b on, and of those to which derivatives flow.
template <class Cell, int Extras>
inline constexpr int recurrent_sources = 2 + recurrent_biased<Extras> + (recurrent_initial<Extras> ? Cell::states : 0);
template <class Cell, int Extras>
inline constexpr int recurrent_operands = recurrent_sources<Cell, Extras> + (Extras & 1) + (Extras >> 1 & 1);

/// Whether x W + b, R and the extras, from operand `first` on, fit.
template <class Cell, int Extras>
constexpr bool recurrent_fits(inference& io, int first) {
    const operand_info* const in = io.in + first;
    const shape &z = in[0].dims, &r = in[1].dims;
    io.type = in[0].type;
    if (!io.require(is_floating(io.type), cell_text<Cell, ": elements must be floating-point">) ||
        !io.require(z.rank() == 3 && r.rank() == 2,
                    cell_text<Cell, ": input is [batch, time, features], recurrent kernel [units, ", Cell::width, "]">))
        return false;
    io.culprit = first + 1;
    const extent units = r[0];
    if (!io.require(in[1].type == io.type && equal_or_required(r[1], units * Cell::gates),
                    cell_text<Cell, ": recurrent kernel must be [units, ", Cell::width, "]">) ||
        !io.require(equal_or_required(z[2], units * Cell::gates),
                    cell_text<Cell, ": kernel and recurrent kernel differ in units">))
        return false;
    int at = 2 + recurrent_biased<Extras>; // the bias is part of one that was checked
    const auto valid = [&](dtype type, extent second, const char* text) {
        io.culprit = first + at;
        const operand_info& x = in[at++];
        return io.require(x.type == type && x.dims.rank() == 2 && equal_or_required(x.dims[0], z[0]) &&
                              equal_or_required(x.dims[1], second),
                          text);
    };
    for (int i = 0; recurrent_initial<Extras> && i < Cell::states; ++i)
        if (!valid(io.type, units, cell_text<Cell, ": initial states must be [batch, units]">)) return false;
    if constexpr ((Extras & 1) != 0)
        if (!valid(dtype::boolean, z[1], cell_text<Cell, ": the mask must be bool [batch, time]">)) return false;
    if constexpr ((Extras & 2) != 0)
        if (!valid(io.type, units, cell_text<Cell, ": factors of the recurrent dropout must be [batch, units]">))
            return false;
    return true;
}

template <class Cell>
constexpr void recurrent_result_shape(const recurrent_attributes& a, const shape& projected, extent units,
                                      inference& io) {
    io.result.push_back(projected[0]);
    io.result.push_back(a.count(projected[1]));
    io.result.push_back(a.rows == recurrent_attributes::previous ? units * Cell::given(a) : units);
}

/// The cost of the products of the steps with the recurrent kernel [units, gates units]; x W is a
/// separate product. `steps` is the operand [batch, time, gates units], or states [planes, batch,
/// time, units].
inline double recurrence_flops(const kernel_call& c, int steps, int kernel, int products = 1) {
    const buffer_view& s = c.in[steps];
    return 2.0 * products * static_cast<double>(s.extents[s.rank - 3] * s.extents[s.rank - 2]) *
           static_cast<double>(c.in[kernel].elements());
}

/// Calls f with all arguments except the last.
template <class F, class... R>
constexpr auto call_without_last(const F& f, const R&... rest) {
    const std::tuple<const R&...> all(rest...);
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return f(std::get<K>(all)...); }
    (std::make_index_sequence<sizeof...(R) - 1>{});
}

} // namespace detail

/// Maps (x W + b, R, extras) to [planes, batch, time, units]: h, then c if there is one, of every
/// step, then the other values that the cell keeps, [batch, time, ...].
template <class Cell, int Extras>
struct recurrent_states_op {
    static constexpr bool registers_where_used = true; // by cell and operands (graph/kernel_registry.hpp)
    static constexpr int variant = Extras;
    static constexpr std::string_view name = detail::cell_text<Cell, "_states">;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing; // it has no derivative
    static constexpr int arity = detail::recurrent_operands<Cell, Extras>;
    using attributes = recurrent_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (!detail::recurrent_fits<Cell, Extras>(io, 0)) return;
        io.result.push_back(Cell::planes(a));
        io.result.push_back(io.in[0].dims[0]);
        io.result.push_back(io.in[0].dims[1]);
        io.result.push_back(io.in[1].dims[0]);
    }
    static double flops(const kernel_call& c) { return detail::recurrence_flops(c, 0, 1); }
};

/// Maps (states, x W + b, R, extras) to rows of h.
template <class Cell, int Extras>
struct recurrent_result_op {
    static constexpr bool registers_where_used = true; // by cell and operands (graph/kernel_registry.hpp)
    static constexpr int variant = Extras;
    static constexpr std::string_view name = detail::cell_text<Cell, "_result">;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 1 + detail::recurrent_operands<Cell, Extras>;
    static constexpr std::uint32_t unread_operands = 1u << 1; // x W + b is only present for the derivative
    using attributes = recurrent_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::recurrent_fits<Cell, Extras>(io, 1))
            detail::recurrent_result_shape<Cell>(a, io.in[1].dims, io.in[2].dims[0], io);
    }
    static constexpr auto shared(const attributes& a, const auto& dy, const auto& states, const auto& z, const auto& r,
                                 const auto&... rest) -> std::remove_cvref_t<decltype(dy)>;
    template <int I>
        requires(I >= 1 && I < 1 + detail::recurrent_sources<Cell, Extras>)
    static constexpr auto flow(const attributes& a, const auto& gradient, const auto&, const auto& states,
                               const auto& z, const auto& r, const auto&... rest);
    template <int I>
        requires(I >= 1 && I < 1 + detail::recurrent_sources<Cell, Extras>)
    static constexpr auto vjp(const attributes& a, auto dy, auto... operands) {
        return flow<I>(a, shared(a, dy, operands...), dy, operands...);
    }
};

/// Both in one operation that keeps nothing: the derivative starts by recomputing the states.
template <class Cell, int Extras>
struct recurrent_op {
    static constexpr bool registers_where_used = true; // by cell and operands (graph/kernel_registry.hpp)
    static constexpr int variant = Extras;
    static constexpr std::string_view name = detail::cell_text<Cell>;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = detail::recurrent_operands<Cell, Extras>;
    using attributes = recurrent_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::recurrent_fits<Cell, Extras>(io, 0))
            detail::recurrent_result_shape<Cell>(a, io.in[0].dims, io.in[1].dims[0], io);
    }
    /// States and gates that the backward pass computes again instead of keeping them.
    template <class States, class Gradient>
    struct recomputed {
        States states;
        Gradient gradient;
    };
    static constexpr auto shared(const attributes& a, const auto& dy, const auto& z, const auto& r,
                                 const auto&... rest) {
        const auto states = detail::call_without_last(
            [&](const auto&... extras) {
                return invoke<recurrent_states_op<Cell, Extras>>(a, nullptr, std::source_location::current(), z, r,
                                                                 extras...);
            },
            rest...);
        const auto gradient = recurrent_result_op<Cell, Extras>::shared(a, dy, states, z, r, rest...);
        return recomputed<std::remove_const_t<decltype(states)>, std::remove_const_t<decltype(gradient)>>{states,
                                                                                                          gradient};
    }
    template <int I>
        requires(I < detail::recurrent_sources<Cell, Extras>)
    static constexpr auto flow(const attributes& a, const auto& again, const auto& dy, const auto&... operands) {
        return recurrent_result_op<Cell, Extras>::template flow<I + 1>(a, again.gradient, dy, again.states,
                                                                       operands...);
    }
    template <int I>
        requires(I < detail::recurrent_sources<Cell, Extras>)
    static constexpr auto vjp(const attributes& a, auto dy, auto... operands) {
        return flow<I>(a, shared(a, dy, operands...), dy, operands...);
    }
    static double flops(const kernel_call& c) { return detail::recurrence_flops(c, 0, 1); }
};

/// Maps (dL/d rows, states, x W + b, R, extras) to the derivative by the columns [batch, time,
/// columns units]; with an initial state to [batch, columns time + states, units], where those by
/// the states follow.
template <class Cell, int Extras>
struct recurrent_gradient_op {
    static constexpr bool registers_where_used = true; // by cell and operands (graph/kernel_registry.hpp)
    static constexpr int variant = Extras;
    static constexpr std::string_view name = detail::cell_text<Cell, "_gradient">;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands | saved_value;
    static constexpr int arity = 2 + detail::recurrent_operands<Cell, Extras>;
    static constexpr std::uint32_t unread_operands = 1u << 2;
    using attributes = recurrent_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (!detail::recurrent_fits<Cell, Extras>(io, 2)) return;
        const shape& z = io.in[2].dims;
        const extent units = io.in[3].dims[0];
        io.result.push_back(z[0]);
        io.result.push_back(detail::recurrent_initial<Extras> ? z[1] * Cell::columns(a) + Cell::states : z[1]);
        io.result.push_back(detail::recurrent_initial<Extras> ? units : units * Cell::columns(a));
    }
    static constexpr auto shared(const attributes& a, const auto& v, const auto& dy, const auto& states, const auto& z,
                                 const auto& r, const auto&... rest);
    template <int I>
        requires(I != 1 && I < 2 + detail::recurrent_sources<Cell, Extras>)
    static constexpr auto flow(const attributes& a, const auto& second, const auto& v, const auto& dy,
                               const auto& states, const auto& z, const auto& r, const auto&... rest);
    template <int I>
        requires(I != 1 && I < 2 + detail::recurrent_sources<Cell, Extras>)
    static constexpr auto vjp(const attributes& a, auto d, auto... operands) {
        return flow<I>(a, shared(a, d, operands...), d, operands...);
    }
    static double flops(const kernel_call& c) { return detail::recurrence_flops(c, 1, 3); }
};

namespace detail {

/// `count` rows after the first `before` of [batch, rows, units], in another shape.
template <handle H>
constexpr H recurrent_part(const H& packed, extent before, extent count, const shape& target) {
    const auto here = std::source_location::current();
    const H part = part_of(packed, 1, before, count, here);
    return invoke<reshape_op>({}, &target, here, part);
}

/// Some of the columns of [batch, time, columns units].
template <handle H>
constexpr H recurrent_columns(const H& of_all, extent units, int first, int count) {
    if (first == 0 && shape_of(of_all)[2] == units * count) return of_all;
    return part_of(of_all, 2, units * first, units * count, std::source_location::current());
}

/// [batch, time, n units] like z.
template <handle H>
constexpr shape columns_like(const H& z, extent units, int n) {
    shape dims = shape_of(z);
    dims.set(2, units * n);
    return dims;
}

/// The derivative by R: the sum over records and steps of g^T d, where g is the operand of R,
/// [batch, time, given units], and d the derivative by the columns.
template <class Cell, int Extras, handle H, class... E>
constexpr H recurrent_weight_gradient(const recurrent_attributes& a, extent units, const H& given, const H& d,
                                      const E&... extras) {
    const auto here = std::source_location::current();
    const auto product = [&](int which, int first, int count) -> H {
        H h = recurrent_columns(given, units, which, 1);
        if constexpr ((Extras & 2) != 0)
            h = eval(h * expand_dims(std::get<sizeof...(E) - 1>(std::tuple<const E&...>(extras...)), 1, here), here);
        const H rows = rows_of(h); // named, because operands of one call are in no order
        return invoke<matmul_op>({1, 0}, nullptr, here, rows, rows_of(recurrent_columns(d, units, first, count)));
    };
    if constexpr (Cell::last_apart)
        return concat({product(0, 0, Cell::gates - 1), product(Cell::given(a) - 1, Cell::columns(a) - 1, 1)}, 1, here);
    else
        return product(0, 0, Cell::gates);
}

/// The derivative by the bias of the last gate's product, likewise.
template <class Cell, handle H>
constexpr H recurrent_bias_gradient(const recurrent_attributes& a, extent units, const H& d) {
    shape target = no_axes(shape_of(d));
    target.push_back(units);
    return eval(sum_to(recurrent_columns(d, units, Cell::columns(a) - 1, 1), target));
}

/// The operand of R in every step, without the dropout's factors.
template <class Cell, int Extras, handle H, class... E>
constexpr H recurrent_given(recurrent_attributes a, const H& states, const H& z, const H& r, const E&... extras) {
    a.rows = recurrent_attributes::previous;
    a.cell = 0;
    return invoke<recurrent_result_op<Cell, Extras>>(a, nullptr, std::source_location::current(), states, z, r,
                                                     extras...);
}

/// The part of a gradient that belongs to the columns.
template <class Cell, int Extras, handle H>
constexpr H recurrent_column_gradient(const recurrent_attributes& a, const H& gradient, const H& z, extent units) {
    if constexpr (!recurrent_initial<Extras>) return gradient;
    const extent time = shape_of(z)[1];
    return recurrent_part(gradient, extent(0, time.table), time * Cell::columns(a),
                          columns_like(z, units, Cell::columns(a)));
}

} // namespace detail

template <class Cell, int Extras>
constexpr auto recurrent_result_op<Cell, Extras>::shared(const attributes& a, const auto& dy, const auto& states,
                                                         const auto& z, const auto& r, const auto&... rest)
    -> std::remove_cvref_t<decltype(dy)> {
    return detail::call_without_last(
        [&](const auto&... extras) {
            return invoke<recurrent_gradient_op<Cell, Extras>>(a, nullptr, std::source_location::current(), dy, states,
                                                               z, r, extras...);
        },
        rest...);
}

template <class Cell, int Extras>
template <int I>
    requires(I >= 1 && I < 1 + detail::recurrent_sources<Cell, Extras>)
constexpr auto recurrent_result_op<Cell, Extras>::flow(const attributes& a, const auto& gradient, const auto&,
                                                       const auto& states, const auto& z, const auto& r,
                                                       const auto&... rest) {
    const extent steps = shape_of(z)[1], units = shape_of(r)[0];
    constexpr int state = I - 3 - detail::recurrent_biased<Extras>;
    if constexpr (state >= 0) {
        return detail::recurrent_part(gradient, steps * Cell::columns(a) + state, extent(1, steps.table),
                                      shape_of(std::get<I - 3>(std::tie(rest...))));
    } else {
        const auto d = detail::recurrent_column_gradient<Cell, Extras>(a, gradient, z, units);
        if constexpr (I == 1)
            return detail::recurrent_columns(d, units, 0, Cell::gates);
        else if constexpr (I == 2)
            return detail::call_without_last(
                [&](const auto&... extras) {
                    const auto given = detail::recurrent_given<Cell, Extras>(a, states, z, r, extras...);
                    return detail::recurrent_weight_gradient<Cell, Extras>(a, units, given, d, extras...);
                },
                rest...);
        else
            return detail::recurrent_bias_gradient<Cell>(a, units, d);
    }
}

} // namespace tapegraph
