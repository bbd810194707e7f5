#pragma once

#include <tapegraph/ops/lstm_gradient.hpp>

/// Second derivatives of lstm, and its forward mode.

namespace tapegraph {

namespace detail {
struct lstm_third_texts {
    static constexpr const char* text(std::int64_t) {
        return "lstm: has first and second derivatives; a third, or the tangent of a tangent, was asked for";
    }
};
} // namespace detail

/// (v, states, x W + b, R, extras), v as lstm_gradient gives it, to the tangent of the rows along v. With J the derivative of
/// the rows, this is J v and lstm_gradient J^T dy: each is the other's adjoint, and second derivatives are those of dy^T J v.
template <int Extras>
struct lstm_tangent_op {
    static constexpr std::string_view name = "lstm_tangent";
    static constexpr operation_kind kind = operation_kind::recur;
    static constexpr bool needs_output = false;
    static constexpr int arity = 4 + detail::lstm_extra_operands<Extras>;
    template <int I>
    static constexpr bool reads = I != 2;
    using attributes = lstm_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::lstm_fits<Extras>(io, 2)) detail::lstm_result_shape(a, io.in[2].dims, io.in[3].dims[0], io);
    }
    template <class Gradient, class Second>
    struct both {
        Gradient gradient;
        Second second;
    };
    static constexpr auto shared(const attributes& a, const auto& d, const auto& v, const auto& states, const auto& z,
                                 const auto& r, const auto&... rest);
    template <int I>
        requires(I != 1 && (I < 4 || (I < 6 && detail::lstm_initial<Extras>)))
    static constexpr auto flow(const attributes& a, const auto& both, const auto& d, const auto& v, const auto& states,
                               const auto& z, const auto& r, const auto&... rest);
    template <int I>
        requires(I != 1 && (I < 4 || (I < 6 && detail::lstm_initial<Extras>)))
    static constexpr auto vjp(const attributes& a, auto d, auto... operands) {
        return flow<I>(a, shared(a, d, operands...), d, operands...);
    }
};

/// (v, dL/d rows, states, x W + b, R, extras) to the derivative of dy^T J v by what the rows are made of, [batch, 5 time + 2,
/// units]: the tangent of h before each step along v, 4 time rows of the derivative by x W + b, and those by h0 and c0.
template <int Extras>
struct lstm_second_op {
    static constexpr std::string_view name = "lstm_second";
    static constexpr operation_kind kind = operation_kind::recur;
    static constexpr int arity = 5 + detail::lstm_extra_operands<Extras>;
    template <int I>
    static constexpr bool reads = I != 3;
    using attributes = lstm_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        if (!detail::lstm_fits<Extras>(io, 3)) return;
        const shape& z = io.in[3].dims;
        io.result.push_back(z[0]);
        io.result.push_back(z[1] * 5 + 2);
        io.result.push_back(io.in[4].dims[0]);
    }
    // By v it is linear; by anything else this would be a third derivative, or the tangent of a tangent.
    template <int I>
        requires(I < 5 || (I < 7 && detail::lstm_initial<Extras>))
    static constexpr auto vjp(const attributes& a, auto d, auto v, auto dy, auto states, auto z, auto r, auto... rest);
};

template <int Extras>
constexpr auto lstm_gradient_op<Extras>::shared(const attributes& a, const auto& v, const auto& dy, const auto& states,
                                                const auto& z, const auto& r, const auto&... rest) {
    return detail::call_without_last(
        [&](const auto&... extras) {
            return invoke<lstm_second_op<Extras>>(a, nullptr, std::source_location::current(), v, dy, states, z, r,
                                                  extras...);
        },
        rest...);
}

template <int Extras>
template <int I>
    requires(I != 1 && (I < 4 || (I < 6 && detail::lstm_initial<Extras>)))
constexpr auto lstm_gradient_op<Extras>::flow(const attributes& a, const auto& second, const auto& v, const auto&,
                                              const auto& states, const auto& z, const auto& r, const auto&... rest) {
    const shape dims = shape_of(z);
    const extent steps = dims[1];
    if constexpr (I == 0) {
        return detail::call_without_last(
            [&](const auto&... extras) {
                return invoke<lstm_tangent_op<Extras>>(a, nullptr, std::source_location::current(), v, states, z, r,
                                                       extras...);
            },
            rest...);
    } else if constexpr (I == 2) {
        return detail::lstm_part(second, steps, steps * 4, dims);
    } else if constexpr (I == 3) {
        shape of_h = dims;
        of_h.set(2, shape_of(r)[0]);
        // d(h^T dz) = dh^T dz + h^T d(dz); the value, dz, is the last operand.
        return detail::call_without_last(
            [&](const auto&... extras) {
                const auto h = detail::lstm_previous<Extras>(a, states, z, r, extras...);
                const auto dh = detail::lstm_given<Extras>(
                    detail::lstm_part(second, extent(0, dims.table()), steps, of_h), extras...);
                const auto dz = detail::lstm_gate_gradient<Extras>(std::get<sizeof...(rest) - 1>(std::tie(rest...)), z);
                return eval(detail::lstm_weight_gradient(dh, dz) +
                            detail::lstm_weight_gradient(h, detail::lstm_part(second, steps, steps * 4, dims)));
            },
            rest...);
    } else {
        return detail::lstm_part(second, steps * 5 + (I - 4), extent(1, dims.table()),
                                 shape_of(std::get<0>(std::tie(rest...))));
    }
}

template <int Extras>
constexpr auto lstm_tangent_op<Extras>::shared(const attributes& a, const auto& d, const auto& v, const auto& states,
                                               const auto& z, const auto& r, const auto&... rest) {
    const auto gradient = lstm_result_op<Extras>::shared(a, d, states, z, r, rest...);
    const auto second = lstm_gradient_op<Extras>::shared(a, v, d, states, z, r, rest...);
    return both<std::remove_const_t<decltype(gradient)>, std::remove_const_t<decltype(second)>>{gradient, second};
}

template <int Extras>
template <int I>
    requires(I != 1 && (I < 4 || (I < 6 && detail::lstm_initial<Extras>)))
constexpr auto lstm_tangent_op<Extras>::flow(const attributes& a, const auto& both, const auto& d, const auto& v,
                                             const auto& states, const auto& z, const auto& r, const auto&... rest) {
    if constexpr (I == 0)
        return both.gradient;
    else
        return detail::call_without_last(
            [&](const auto&... extras) {
                return lstm_gradient_op<Extras>::template flow<I>(a, both.second, v, d, states, z, r, extras...,
                                                                  both.gradient);
            },
            rest...);
}

// d falls into p, for the tangents of h, and w, for the rest: w^T H v and p^T J v, H symmetric.
template <int Extras>
template <int I>
    requires(I < 5 || (I < 7 && detail::lstm_initial<Extras>))
constexpr auto lstm_second_op<Extras>::vjp(const attributes& a, auto d, auto v, auto dy, auto states, auto z, auto r,
                                           auto... rest) {
    const auto here = std::source_location::current();
    if constexpr (I == 0) {
        const shape of_v = shape_of(v), dims = shape_of(z);
        const extent steps = dims[1], rows = detail::lstm_initial<Extras> ? steps * 4 + 2 : steps * 4;
        shape of_h = dims;
        of_h.set(2, shape_of(r)[0]);
        attributes before = a;
        before.rows = attributes::previous;
        before.cell = 0;
        return detail::call_without_last(
            [&](const auto&... extras) {
                const auto p = detail::lstm_part(d, extent(0, dims.table()), steps, of_h);
                const auto w = detail::lstm_part(d, steps, rows, of_v);
                const auto second = invoke<lstm_second_op<Extras>>(a, nullptr, here, w, dy, states, z, r, extras...);
                const auto first = invoke<lstm_gradient_op<Extras>>(before, nullptr, here, p, states, z, r, extras...);
                return eval(detail::lstm_part(second, steps, rows, of_v) + first);
            },
            rest...);
    } else {
        return detail::refuse<detail::lstm_third_texts>(0, here, d);
    }
}

} // namespace tapegraph
