#pragma once

#include <tapegraph/ops/recurrent/cpu_cell.hpp>

namespace tapegraph::cpu {

namespace detail {

template <class T>
struct lstm_gates {
    T i, f, g, o;
};

/// Sigmoids of i, f and o, and tanh of g, with a single division: 1/a = bcd / (abcd).
TG_HD lstm_gates<float> fast_gates(float i, float f, float g, float o) {
    const float a = sigmoid_denominator(i), b = sigmoid_denominator(f), d = sigmoid_denominator(o);
    const tanh_parts t = parts_of_tanh(g);
    const float ab = a * b, td = t.denominator * d, inverse = 1.0f / (ab * td);
    const float by_ab = inverse * td, by_td = inverse * ab;
    return {within_one(by_ab * b), within_one(by_ab * a), within_one(t.numerator * (by_td * d)),
            within_one(by_td * t.denominator)};
}
TG_HD lstm_gates<double> fast_gates(double i, double f, double g, double o) {
    return {math::sigmoid(i), math::sigmoid(f), math::tanh(g), math::sigmoid(o)};
}

} // namespace detail

/// i, f, o = sigmoid(.), g = tanh(.), c = f c' + i g, h = o tanh(c) (Hochreiter and Schmidhuber 1997, with forget gates), in the
/// order i, f, g, o (Keras: i, f, c, o).
struct lstm_cell {
    static constexpr int gates = 4, columns = 4, values = 4, kept = 4, states = 2;
    static constexpr bool biased = false, reset_before = false;
    static constexpr int product_column(int gate) { return gate; }

    template <class V>
    using numbers = detail::cell_numbers<V, values>;
    template <class V>
    using gradient = detail::cell_gradient<V, columns>;

    template <class F, class T>
    TG_HD static numbers<T> values_of(const F& f, T, T x0, T x1, T x2, T x3, T p0, T p1, T p2, T p3) {
        if constexpr (F::fast) {
            const auto [i, keep, g, o] = detail::fast_gates(x0 + p0, x1 + p1, x2 + p2, x3 + p3);
            return {{i, keep, g, o}};
        } else {
            return {{f.gate(x0 + p0), f.gate(x1 + p1), f.squash(x2 + p2), f.gate(x3 + p3)}};
        }
    }
    template <class F, class T>
    TG_HD static T column_value(const F& f, int column, T z) {
        return column == 2 ? f.squash(z) : f.gate(z);
    }
    template <class F, class T>
    TG_HD static numbers<T> joined(const F&, const numbers<T>& y) {
        return y;
    }
    template <class F, class V>
    TG_HD static detail::cell_state<V> step(const F& f, const numbers<V>& y, V before) {
        const V c = y.v[1] * before + y.v[0] * y.v[2];
        return {c, y.v[3] * f.squash(c)};
    }
    template <class F, class T>
    TG_HD static auto along(const F& f, const numbers<T>& y, const T (&d)[4]) {
        using V = typename F::number;
        return numbers<V>{{f.gate(y.v[0], d[0]), f.gate(y.v[1], d[1]), f.squash(y.v[2], d[2]), f.gate(y.v[3], d[3])}};
    }
    template <class F, class V>
    TG_HD static gradient<V> backward(const F& f, const numbers<V>& y, V before, V now, V dh, V dc) {
        const V i = y.v[0], keep = y.v[1], g = y.v[2], o = y.v[3];
        const V out = f.squash(now);
        const V dcell = dc + dh * o * f.squash_slope(out);
        return {{dcell * g * f.gate_slope(i), dcell * before * f.gate_slope(keep), dcell * i * f.squash_slope(g),
                 dh * out * f.gate_slope(o)},
                dcell * keep};
    }
};

} // namespace tapegraph::cpu
