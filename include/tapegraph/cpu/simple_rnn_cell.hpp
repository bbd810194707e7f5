#pragma once

#include <tapegraph/cpu/recurrent_cell.hpp>

namespace tapegraph::cpu {

/// h = tanh(x + h' R) (Elman 1990). Nothing is kept beside h.
struct simple_rnn_cell {
    static constexpr int gates = 1, columns = 1, values = 1, kept = 0, states = 1;
    static constexpr bool biased = false, reset_before = false;
    static constexpr int product_column(int gate) { return gate; }

    template <class F, class T>
    TG_INLINE static detail::cell_numbers<T, 1> values_of(const F& f, T, T x0, T p0) {
        return {{f.squash(x0 + p0)}};
    }
    template <class F, class V>
    TG_INLINE static detail::cell_state<V> step(const F&, const detail::cell_numbers<V, 1>& y, V) {
        return {y.v[0], y.v[0]};
    }
    template <class F, class T>
    TG_INLINE static auto along(const F& f, const detail::cell_numbers<T, 1>& y, const T (&d)[1]) {
        return detail::cell_numbers<typename F::number, 1>{{f.squash(y.v[0], d[0])}};
    }
    template <class F, class V>
    TG_INLINE static detail::cell_gradient<V, 1> backward(const F& f, const detail::cell_numbers<V, 1>& y, V, V, V dh,
                                                          V) {
        return {{dh * f.squash_slope(y.v[0])}, V(0)};
    }
};

} // namespace tapegraph::cpu
