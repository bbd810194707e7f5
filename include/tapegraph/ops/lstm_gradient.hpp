#pragma once

#include <tapegraph/ops/arithmetic.hpp>
#include <tapegraph/ops/matmul.hpp>
#include <tapegraph/ops/refusal.hpp>
#include <tapegraph/ops/slice.hpp>

#include <tuple>

/// The operations behind lstm. Their operands begin at x W + b of all steps, which is an ordinary product, and end at the
/// derivative by it, from which those by x, W, R and b are products over all steps.
///
/// Everything a forward pass leaves for its derivative is one value, `states`, of which users never see anything. Derivatives
/// do not go through it but past it: an operation that reads it is also given what it was made of, and differentiates by that.

namespace tapegraph {

struct lstm_attributes {
    enum : std::int64_t { last, sequence, previous };
    std::int64_t relu = 0, hard = 0;
    /// h of which steps: the last one [batch, 1, units], all of them, or all those before (h of step t - 1 for step t).
    std::int64_t rows = sequence;
    std::int64_t cell = 0; ///< c of the last step is one row more

    constexpr extent count(extent time) const { return (rows == last ? extent(1, time.table) : time) + cell; }
};

namespace detail {

/// Operands behind R: with bit 2 of `Extras` h0 and c0, with bit 0 a mask, with bit 1 the recurrent dropout's factors.
template <int Extras>
inline constexpr int lstm_extra_operands = (Extras >> 2 & 1) * 2 + (Extras & 1) + (Extras >> 1 & 1);
template <int Extras>
inline constexpr bool lstm_initial = (Extras & 4) != 0;

/// Whether x W + b, R and the extras, from operand `first` on, fit.
template <int Extras>
constexpr bool lstm_fits(inference& io, int first) {
    const operand_info* const in = io.in + first;
    const shape &z = in[0].dims, &r = in[1].dims;
    io.type = in[0].type;
    if (!io.require(is_floating(io.type), "lstm: elements must be floating-point") ||
        !io.require(z.rank() == 3 && r.rank() == 2,
                    "lstm: input is [batch, time, features], recurrent kernel [units, 4 units]"))
        return false;
    io.culprit = first + 1;
    const extent units = r[0];
    if (!io.require(in[1].type == io.type && equal_or_required(r[1], units * 4),
                    "lstm: recurrent kernel must be [units, 4 units]") ||
        !io.require(equal_or_required(z[2], units * 4), "lstm: kernel and recurrent kernel differ in units"))
        return false;
    int at = 2;
    const auto fits = [&](dtype type, extent second, const char* text) {
        io.culprit = first + at;
        const operand_info& x = in[at++];
        return io.require(x.type == type && x.dims.rank() == 2 && equal_or_required(x.dims[0], z[0]) &&
                              equal_or_required(x.dims[1], second),
                          text);
    };
    if constexpr (lstm_initial<Extras>)
        for (int i = 0; i < 2; ++i)
            if (!fits(io.type, units, "lstm: initial states must be [batch, units]")) return false;
    if constexpr ((Extras & 1) != 0)
        if (!fits(dtype::boolean, z[1], "lstm: the mask must be bool [batch, time]")) return false;
    if constexpr ((Extras & 2) != 0)
        if (!fits(io.type, units, "lstm: factors of the recurrent dropout must be [batch, units]")) return false;
    return true;
}

constexpr void lstm_result_shape(const lstm_attributes& a, const shape& projected, extent units, inference& io) {
    io.result.push_back(projected[0]);
    io.result.push_back(a.count(projected[1]));
    io.result.push_back(units);
}

/// f of all arguments but the last.
template <class F, class... R>
constexpr auto call_without_last(const F& f, const R&... rest) {
    const std::tuple<const R&...> all(rest...);
    return [&]<std::size_t... K>(std::index_sequence<K...>) { return f(std::get<K>(all)...); }
    (std::make_index_sequence<sizeof...(R) - 1>{});
}

} // namespace detail

/// (x W + b, R, extras) to [6, batch, time, units]: h, then c, of every step, then [batch, time, 4 units] of gates.
template <int Extras>
struct lstm_states_op {
    static constexpr std::string_view name = "lstm_states";
    static constexpr operation_kind kind = operation_kind::recur;
    static constexpr bool needs_inputs = false; // for a derivative that it has not
    static constexpr int arity = 2 + detail::lstm_extra_operands<Extras>;
    using attributes = lstm_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        if (!detail::lstm_fits<Extras>(io, 0)) return;
        io.result.push_back(6);
        io.result.push_back(io.in[0].dims[0]);
        io.result.push_back(io.in[0].dims[1]);
        io.result.push_back(io.in[1].dims[0]);
    }
};

/// (states, x W + b, R, extras) to rows of h.
template <int Extras>
struct lstm_result_op {
    static constexpr std::string_view name = "lstm_result";
    static constexpr operation_kind kind = operation_kind::recur;
    static constexpr int arity = 3 + detail::lstm_extra_operands<Extras>;
    template <int I>
    static constexpr bool reads = I != 1; // x W + b is there for the derivative's sake
    using attributes = lstm_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::lstm_fits<Extras>(io, 1)) detail::lstm_result_shape(a, io.in[1].dims, io.in[2].dims[0], io);
    }
    static constexpr auto shared(const attributes& a, const auto& dy, const auto& states, const auto& z, const auto& r,
                                 const auto&... rest) -> std::remove_cvref_t<decltype(dy)>;
    template <int I>
        requires(I >= 1 && (I < 3 || (I < 5 && detail::lstm_initial<Extras>)))
    static constexpr auto flow(const attributes& a, const auto& gradient, const auto&, const auto& states,
                               const auto& z, const auto& r, const auto&... rest);
    template <int I>
        requires(I >= 1 && (I < 3 || (I < 5 && detail::lstm_initial<Extras>)))
    static constexpr auto vjp(const attributes& a, auto dy, auto... operands) {
        return flow<I>(a, shared(a, dy, operands...), dy, operands...);
    }
};

/// lstm_states and lstm_result in one, with nothing kept: the derivative begins with computing the states.
template <int Extras>
struct lstm_op {
    static constexpr std::string_view name = "lstm";
    static constexpr operation_kind kind = operation_kind::recur;
    static constexpr int arity = 2 + detail::lstm_extra_operands<Extras>;
    using attributes = lstm_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::lstm_fits<Extras>(io, 0)) detail::lstm_result_shape(a, io.in[0].dims, io.in[1].dims[0], io);
    }
    template <class States, class Gradient>
    struct recomputed {
        States states;
        Gradient gradient;
    };
    static constexpr auto shared(const attributes& a, const auto& dy, const auto& z, const auto& r,
                                 const auto&... rest) {
        const auto states = detail::call_without_last(
            [&](const auto&... extras) {
                return invoke<lstm_states_op<Extras>>(a, nullptr, std::source_location::current(), z, r, extras...);
            },
            rest...);
        const auto gradient = lstm_result_op<Extras>::shared(a, dy, states, z, r, rest...);
        return recomputed<std::remove_const_t<decltype(states)>, std::remove_const_t<decltype(gradient)>>{states,
                                                                                                          gradient};
    }
    template <int I>
        requires(I < 2 || (I < 4 && detail::lstm_initial<Extras>))
    static constexpr auto flow(const attributes& a, const auto& again, const auto& dy, const auto&... operands) {
        return lstm_result_op<Extras>::template flow<I + 1>(a, again.gradient, dy, again.states, operands...);
    }
    template <int I>
        requires(I < 2 || (I < 4 && detail::lstm_initial<Extras>))
    static constexpr auto vjp(const attributes& a, auto dy, auto... operands) {
        return flow<I>(a, shared(a, dy, operands...), dy, operands...);
    }
};

/// (dL/d rows, states, x W + b, R, extras) to the derivative by x W + b [batch, time, 4 units]; with an initial
/// state to [batch, 4 time + 2, units], where those by h0 and c0 stand behind it.
template <int Extras>
struct lstm_gradient_op {
    static constexpr std::string_view name = "lstm_gradient";
    static constexpr operation_kind kind = operation_kind::recur;
    static constexpr bool needs_output = true;
    static constexpr int arity = 4 + detail::lstm_extra_operands<Extras>;
    template <int I>
    static constexpr bool reads = I != 2;
    using attributes = lstm_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        if (!detail::lstm_fits<Extras>(io, 2)) return;
        const shape& z = io.in[2].dims;
        io.result.push_back(z[0]);
        io.result.push_back(detail::lstm_initial<Extras> ? z[1] * 4 + 2 : z[1]);
        io.result.push_back(detail::lstm_initial<Extras> ? io.in[3].dims[0] : z[2]);
    }
    static constexpr auto shared(const attributes& a, const auto& v, const auto& dy, const auto& states, const auto& z,
                                 const auto& r, const auto&... rest);
    template <int I>
        requires(I != 1 && (I < 4 || (I < 6 && detail::lstm_initial<Extras>)))
    static constexpr auto flow(const attributes& a, const auto& second, const auto& v, const auto& dy,
                               const auto& states, const auto& z, const auto& r, const auto&... rest);
    template <int I>
        requires(I != 1 && (I < 4 || (I < 6 && detail::lstm_initial<Extras>)))
    static constexpr auto vjp(const attributes& a, auto d, auto... operands) {
        return flow<I>(a, shared(a, d, operands...), d, operands...);
    }
};

namespace detail {

/// `count` rows behind the first `before` of [batch, rows, units], in another shape.
template <handle H>
constexpr H lstm_part(const H& packed, extent before, extent count, const shape& target) {
    const auto here = std::source_location::current();
    const H part = part_of(packed, 1, before, count, here);
    return invoke<reshape_op>({}, &target, here, part);
}

/// sum over records and steps of h^T dz, where h [batch, time, units] is what the gates were given.
template <handle H>
constexpr H lstm_weight_gradient(const H& h, const H& dz) {
    return invoke<matmul_op>({1, 0}, nullptr, std::source_location::current(), rows_of(h), rows_of(dz));
}

/// h times the dropout's factors, if there are any among the extras.
template <int Extras, handle H, class... E>
constexpr H lstm_given(const H& h, const E&... extras) {
    if constexpr ((Extras & 2) != 0) {
        const auto here = std::source_location::current();
        const auto& factors = std::get<sizeof...(E) - 1>(std::tuple<const E&...>(extras...));
        return eval(h * expand_dims(factors, 1, here), here);
    } else {
        return h;
    }
}

/// h before every step.
template <int Extras, handle H, class... E>
constexpr H lstm_previous(lstm_attributes a, const H& states, const H& z, const H& r, const E&... extras) {
    a.rows = lstm_attributes::previous;
    a.cell = 0;
    const H h = invoke<lstm_result_op<Extras>>(a, nullptr, std::source_location::current(), states, z, r, extras...);
    return lstm_given<Extras>(h, extras...);
}

/// The part of a gradient that belongs to x W + b.
template <int Extras, handle H>
constexpr H lstm_gate_gradient(const H& gradient, const H& z) {
    const shape dims = shape_of(z);
    return lstm_initial<Extras> ? lstm_part(gradient, extent(0, dims.table()), dims[1] * 4, dims) : gradient;
}

} // namespace detail

template <int Extras>
constexpr auto lstm_result_op<Extras>::shared(const attributes& a, const auto& dy, const auto& states, const auto& z,
                                              const auto& r, const auto&... rest) -> std::remove_cvref_t<decltype(dy)> {
    return detail::call_without_last(
        [&](const auto&... extras) {
            return invoke<lstm_gradient_op<Extras>>(a, nullptr, std::source_location::current(), dy, states, z, r,
                                                    extras...);
        },
        rest...);
}

template <int Extras>
template <int I>
    requires(I >= 1 && (I < 3 || (I < 5 && detail::lstm_initial<Extras>)))
constexpr auto lstm_result_op<Extras>::flow(const attributes& a, const auto& gradient, const auto&, const auto& states,
                                            const auto& z, const auto& r, const auto&... rest) {
    const extent steps = shape_of(z)[1];
    if constexpr (I == 1)
        return detail::lstm_gate_gradient<Extras>(gradient, z);
    else if constexpr (I == 2)
        return detail::lstm_weight_gradient(
            detail::call_without_last(
                [&](const auto&... extras) { return detail::lstm_previous<Extras>(a, states, z, r, extras...); },
                rest...),
            detail::lstm_gate_gradient<Extras>(gradient, z));
    else
        return detail::lstm_part(gradient, steps * 4 + (I - 3), extent(1, steps.table),
                                 shape_of(std::get<0>(std::tie(rest...))));
}

} // namespace tapegraph
