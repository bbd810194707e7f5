#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// What all LSTM kernels share: shapes, operands, activations and the arithmetic of one cell.
///
///   z = x W + h[t-1] R + b, split into four of `units` in Keras's order i, f, c (here g), o
///   i, f, o = recurrent activation of their z; g = activation of its z
///   c[t] = f c[t-1] + i g; h[t] = o activation(c[t])
///
/// (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, with the forget gates of Gers et al., 2000.) A step whose
/// mask is 0 hands h and c on as they are.

namespace tapegraph::cuda {

struct lstm_geometry {
    std::int64_t batch, time, units;
    bool reverse = false; ///< the first step is the last time
};

/// Everything lies in the device's memory. Products and gates have 4 units in the last extent.
template <class T>
struct lstm_forward_operands {
    const T* xz;               ///< [batch, time, 4 units]: x W + b
    const T* recurrent;        ///< R [units, 4 units]
    const T *h0, *c0;          ///< [batch, units]; null: zeros
    const unsigned char* mask; ///< [batch, time], 0: hand on; null: every step counts
    T *h, *c;                  ///< [batch, time, units]: all states; a masked step's are those of the step before it
    T* gates;                  ///< [batch, time, 4 units]: i, f, g, o after activation; null: not kept; may be xz
};
template <class T>
struct lstm_backward_operands {
    const T* dh;                ///< [batch, time, units]: the gradient of every h; null: zeros
    const T *dh_last, *dc_last; ///< [batch, units]: those of the states after the last step; null: zeros
    const T *gates, *c, *c0;    ///< as forward left them
    const T* recurrent;         ///< R [units, 4 units]
    const unsigned char* mask;  ///< as forward was given it
    T* dz;                      ///< [batch, time, 4 units]: the gradient of z at every step
    T *dh0, *dc0;               ///< [batch, units]: gradients of the first states; null: not wanted
    T *carried_dh, *carried_dc; ///< scratch, [batch, units] each
};

namespace kernels {

struct lstm_shape {
    int batch, time, units;
    bool reverse;

    explicit lstm_shape(const lstm_geometry& g)
        : batch(int(g.batch)), time(int(g.time)), units(int(g.units)), reverse(g.reverse) {}
    /// The number of a step's line among those of [batch, time].
    __device__ std::int64_t line(int sample, int step) const {
        return static_cast<std::int64_t>(sample) * time + (reverse ? time - 1 - step : step);
    }
    /// A state's place before a step: in the states of the step before, or (step 0) among the first ones, or nowhere.
    template <class T>
    __device__ const T* before(const T* states, const T* first, int sample, int step, int unit) const {
        if (step > 0) return states + line(sample, step - 1) * units + unit;
        return first == nullptr ? nullptr : first + static_cast<std::int64_t>(sample) * units + unit;
    }
    __device__ bool counts(const unsigned char* mask, std::int64_t line) const {
        return mask == nullptr || mask[line] != 0;
    }
};

/// Activations and their slopes, as functions of what they gave.
struct tanh_activation {
    template <class T>
    __device__ static T value(T x) {
        return math::tanh(x);
    }
    template <class T>
    __device__ static T slope(T y) {
        return T(1) - y * y;
    }
};
struct sigmoid_activation {
    template <class T>
    __device__ static T value(T x) {
        return math::sigmoid(x);
    }
    template <class T>
    __device__ static T slope(T y) {
        return y * (T(1) - y);
    }
};
struct relu_activation {
    template <class T>
    __device__ static T value(T x) {
        return x > T(0) || x != x ? x : T(0); // NaN stays NaN
    }
    template <class T>
    __device__ static T slope(T y) {
        return y > T(0) ? T(1) : T(0);
    }
};
/// relu6(x + 3) / 6
struct hard_sigmoid_activation {
    template <class T>
    __device__ static T value(T x) {
        const T moved = x + T(3);
        return (moved < T(0) ? T(0) : moved > T(6) ? T(6) : moved) / T(6);
    }
    template <class T>
    __device__ static T slope(T y) {
        return y > T(0) && y < T(1) ? T(1) / T(6) : T(0);
    }
};
/// Of the cell (g and the state on its way to h) and of the gates i, f, o.
template <class Cell, class Gate>
struct lstm_activations {
    using cell = Cell;
    using gate = Gate;
};
using usual_lstm_activations = lstm_activations<tanh_activation, sigmoid_activation>;

template <class T>
struct lstm_state {
    T h, c;
};
template <class Activations, class T>
__device__ lstm_state<T> lstm_cell(T i, T f, T g, T o, T c_before) {
    const T c = f * c_before + i * g;
    return {o * Activations::cell::value(c), c};
}

/// One sample and unit of a step, from the gates and states of forward and the gradients of the states after it.
template <class T>
struct lstm_cell_gradient {
    T z[4]; ///< of i, f, g, o before activation
    T c;    ///< of the state before the step
};
template <class Activations, class T>
__device__ lstm_cell_gradient<T> lstm_cell_backward(const T (&gates)[4], T c, T c_before, T dh, T dc_after) {
    using cell = typename Activations::cell;
    using gate = typename Activations::gate;
    const T i = gates[0], f = gates[1], g = gates[2], o = gates[3], shown = cell::value(c);
    const T dc = dc_after + dh * o * cell::slope(shown);
    return {
        {dc * g * gate::slope(i), dc * c_before * gate::slope(f), dc * i * cell::slope(g), dh * shown * gate::slope(o)},
        dc * f};
}

template <class T>
__device__ T value_or_zero(const T* at, std::int64_t offset) {
    return at == nullptr ? T(0) : at[offset];
}

} // namespace kernels
} // namespace tapegraph::cuda
