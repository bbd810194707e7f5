#pragma once

#include <tapegraph/ops/recurrent/cpu_cell.hpp>

namespace tapegraph::cpu {

namespace detail {

template <class T>
struct gate_pair {
    T z, r;
};

/// Two sigmoids with a single division.
TG_HD gate_pair<float> fast_sigmoids(float z, float r) {
    const float a = sigmoid_denominator(z), b = sigmoid_denominator(r), inverse = 1.0f / (a * b);
    return {within_one(inverse * b), within_one(inverse * a)};
}
TG_HD gate_pair<double> fast_sigmoids(double z, double r) { return {math::sigmoid(z), math::sigmoid(r)}; }

template <class F, class T>
TG_HD gate_pair<T> gates_of(const F& f, T z, T r) {
    if constexpr (F::fast)
        return fast_sigmoids(z, r);
    else
        return {f.gate(z), f.gate(r)};
}

} // namespace detail

/// A gated recurrent unit (Cho et al. 2014): z, r = sigmoid(.), h = z h' + (1 - z) g, in Keras's
/// order z, r, h. The reset gate r multiplies the candidate's product, g = tanh(x + r (h' R + b)),
/// or its operand: g = tanh(x + (r h') R + b).
template <bool ResetAfter>
struct gru_cell {
    static constexpr int gates = 3, columns = ResetAfter ? 4 : 3, values = columns, kept = columns, states = 1;
    static constexpr bool biased = true, reset_before = !ResetAfter;
    static constexpr int product_column(int gate) { return ResetAfter && gate == 2 ? 3 : gate; }

    template <class V>
    using numbers = detail::cell_numbers<V, values>;
    template <class V>
    using gradient = detail::cell_gradient<V, columns>;

    template <class F, class T>
    TG_HD static numbers<T> values_of(const F& f, T bias, T x0, T x1, T x2, T p0, T p1, T p2) requires ResetAfter {
        const auto [z, r] = detail::gates_of(f, x0 + p0, x1 + p1);
        const T product = p2 + bias;
        return {{z, r, f.squash(x2 + r * product), product}};
    }
    template <class F, class T>
    TG_HD static T column_value(const F& f, int column, T z) requires ResetAfter {
        return column < 2 ? f.gate(z) : z;
    }
    template <class F, class T>
    TG_HD static numbers<T> joined(const F& f, const numbers<T>& y) requires ResetAfter {
        return {{y.v[0], y.v[1], f.squash(y.v[2] + y.v[1] * y.v[3]), y.v[3]}};
    }
    /// The values of the gates z and r; the candidate follows from them.
    template <class F, class T>
    TG_HD static detail::gate_pair<T> reset(const F& f, T z, T r) {
        return detail::gates_of(f, z, r);
    }
    template <class F, class T>
    TG_HD static T candidate(const F& f, T x, T p, T bias) {
        return f.squash(x + p + bias);
    }
    template <class F, class V>
    TG_HD static detail::cell_state<V> step(const F&, const numbers<V>& y, V before) {
        const V h = y.v[2] + y.v[0] * (before - y.v[2]);
        return {h, h};
    }
    template <class F, class T>
    TG_HD static auto along(const F& f, const numbers<T>& y, const T (&d)[columns]) {
        using V = typename F::number;
        const V z = f.gate(y.v[0], d[0]), r = f.gate(y.v[1], d[1]);
        if constexpr (ResetAfter) {
            const V product{y.v[3], d[3]};
            return numbers<V>{{z, r, f.squash(y.v[2], d[2] + (r * product).tangent), product}};
        } else {
            return numbers<V>{{z, r, f.squash(y.v[2], d[2])}};
        }
    }
    template <class F, class V>
    TG_HD static gradient<V> backward(const F& f, const numbers<V>& y, V before, V, V dh, V) {
        const V z = y.v[0], r = y.v[1], g = y.v[2];
        const V dg = dh * (V(1) - z) * f.squash_slope(g), dz = dh * (before - g) * f.gate_slope(z);
        if constexpr (ResetAfter)
            return {{dz, dg * y.v[3] * f.gate_slope(r), dg, dg * r}, dh * z};
        else
            return {{dz, V(0), dg}, dh * z}; // by r: reset_backward
    }
    /// From q, the derivative by r h', computes those by r's argument and by h'.
    template <class F, class V>
    TG_HD static detail::cell_gradient<V, 1> reset_backward(const F& f, V r, V before, V q) {
        return {{q * before * f.gate_slope(r)}, q * r};
    }
};

} // namespace tapegraph::cpu
