#pragma once

#include <tapegraph/ops/recurrent/cpu_cell.hpp>

namespace tapegraph::cpu {

/// h = tanh(x + h' R) (Elman 1990). Nothing is kept besides h.
struct simple_rnn_cell {
    static constexpr int gates = 1, columns = 1, values = 1, kept = 0, states = 1;
    static constexpr bool biased = false, reset_before = false;
    static constexpr int product_column(int gate) { return gate; }

    template <class V>
    using numbers = detail::cell_numbers<V, values>;
    template <class V>
    using gradient = detail::cell_gradient<V, columns>;

    template <class F, class T>
    TG_HD static numbers<T> values_of(const F& f, T, T x0, T p0) {
        return {{f.squash(x0 + p0)}};
    }
    template <class F, class T>
    TG_HD static T column_value(const F& f, int, T z) {
        return f.squash(z);
    }
    template <class F, class T>
    TG_HD static numbers<T> joined(const F&, const numbers<T>& y) {
        return y;
    }
    template <class F, class V>
    TG_HD static detail::cell_state<V> step(const F&, const numbers<V>& y, V) {
        return {y.v[0], y.v[0]};
    }
    template <class F, class T>
    TG_HD static auto along(const F& f, const numbers<T>& y, const T (&d)[1]) {
        return numbers<typename F::number>{{f.squash(y.v[0], d[0])}};
    }
    template <class F, class V>
    TG_HD static gradient<V> backward(const F& f, const numbers<V>& y, V, V, V dh, V) {
        return {{dh * f.squash_slope(y.v[0])}, V(0)};
    }
};

} // namespace tapegraph::cpu
