#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>
#include <type_traits>

/// What all LSTM kernels share: shapes, operands, activations and the arithmetic of one cell.
///
///   z = x W + (h[t-1] d) R + b, split into four of `units` in Keras's order i, f, c (here g), o; d: recurrent dropout
///   i, f, o = recurrent activation of their z; g = activation of its z
///   c[t] = f c[t-1] + i g; h[t] = o activation(c[t])
///
/// (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, with the forget gates of Gers et al., 2000.) A step whose
/// mask is 0 hands h and c on as they are.

namespace tapegraph::cuda {

/// The functions of a cell and their slopes, the latter of what they gave. Both false: tanh and sigmoid.
struct lstm_activations {
    bool relu = false; ///< of g and of the state on its way to h
    bool hard = false; ///< of the gates i, f, o: relu6(x + 3) / 6

    template <class T>
    __device__ T cell(T x) const {
        return !relu ? math::tanh(x) : x > T(0) || x != x ? x : T(0); // NaN stays NaN
    }
    template <class T>
    __device__ T cell_slope(T y) const {
        return !relu ? T(1) - y * y : y > T(0) ? T(1) : T(0);
    }
    template <class T>
    __device__ T gate(T x) const {
        if (!hard) return math::sigmoid(x);
        const T moved = x + T(3);
        return (moved < T(0) ? T(0) : moved > T(6) ? T(6) : moved) / T(6);
    }
    template <class T>
    __device__ T gate_slope(T y) const {
        return !hard ? y * (T(1) - y) : y > T(0) && y < T(1) ? T(1) / T(6) : T(0);
    }
};

struct lstm_geometry {
    std::int64_t batch, time, units;
    bool reverse = false; ///< the first step is the last time
    lstm_activations activations{};
};

/// Rows of units in a wider array.
template <class T>
struct step_rows {
    T* data = nullptr;
    std::int64_t record = 0; ///< elements from a sample to the next
    int kept = -1;           ///< the row of time t is t & kept: all are there (-1), two in turn (1), or one (0)
};

/// Everything lies in the device's memory. Products and gates have 4 units in the last extent.
template <class T>
struct lstm_forward_operands {
    const T* xz;               ///< [batch, time, 4 units]: x W + b
    const T* recurrent;        ///< R [units, 4 units]
    const T *h0, *c0;          ///< [batch, units]; null: zeros
    const T* dropped;          ///< [batch, units]: factors of the h that the products see; null: none
    const unsigned char* mask; ///< [batch, time], 0: hand on; null: every step counts
    step_rows<T> h, c;         ///< states; a masked step's are those of the step before it. h keeps two at least
    T* gates;                  ///< [batch, time, 4 units]: i, f, g, o after activation; null: not kept; may be xz
};
template <class T>
struct lstm_backward_operands {
    step_rows<const T> dh;               ///< the gradient of h, null: zeros
    int dh_steps;                        ///< of how many steps, from the first on
    step_rows<const T> dh_last, dc_last; ///< a row each: those of the states after the last step; null: zeros
    step_rows<const T> dh_first;         ///< a row: that of h0, besides what the steps say; null: zeros
    const T *gates, *c, *c0;             ///< as forward left them; c [batch, time, units]
    const T *recurrent, *dropped;        ///< as forward was given them
    const unsigned char* mask;
    step_rows<T> dz;            ///< rows of 4 units: the gradient of z at every step
    step_rows<T> dh0, dc0;      ///< a row each: gradients of the first states; null: not wanted
    T *carried_dh, *carried_dc; ///< scratch, [batch, units] each
};

namespace kernels {

struct lstm_shape {
    int batch, time, units;
    bool reverse;
    lstm_activations activations;

    explicit lstm_shape(const lstm_geometry& g)
        : batch(int(g.batch)), time(int(g.time)), units(int(g.units)), reverse(g.reverse), activations(g.activations) {}
    __device__ int time_of(int step) const { return reverse ? time - 1 - step : step; }
    /// The number of a step's line among those of [batch, time].
    __device__ std::int64_t line(int sample, int step) const {
        return static_cast<std::int64_t>(sample) * time + time_of(step);
    }
    /// Where a step's row begins, counted from the data; `width` in units.
    template <class T>
    __device__ std::int64_t row(const step_rows<T>& rows, int sample, int step, int width = 1) const {
        return sample * rows.record + static_cast<std::int64_t>(time_of(step) & rows.kept) * width * units;
    }
    /// A state's place before a step: in the states of the step before, or (step 0) among the first ones, or nowhere.
    template <class T>
    __device__ const T* before(const step_rows<T>& states, const std::type_identity_t<T>* first, int sample, int step,
                               int unit) const {
        if (step > 0) return states.data + row(states, sample, step - 1) + unit;
        return first == nullptr ? nullptr : first + state(sample, unit);
    }
    /// In [batch, units].
    __device__ std::int64_t state(int sample, int unit) const {
        return static_cast<std::int64_t>(sample) * units + unit;
    }
    /// c before a step, as forward left it for backward.
    template <class T>
    __device__ T cell_before(const T* c, const T* c0, int sample, int step, int unit) const {
        if (step > 0) return c[line(sample, step - 1) * units + unit];
        return c0 == nullptr ? T(0) : c0[state(sample, unit)];
    }
    __device__ bool counts(const unsigned char* mask, std::int64_t line) const {
        return mask == nullptr || mask[line] != 0;
    }
};

template <class T>
struct lstm_state {
    T h, c;
};
template <class T>
__device__ lstm_state<T> lstm_cell(const lstm_activations& a, T i, T f, T g, T o, T c_before) {
    const T c = f * c_before + i * g;
    return {o * a.cell(c), c};
}

/// One sample and unit of a step, from the gates and states of forward and the gradients of the states after it.
template <class T>
struct lstm_cell_gradient {
    T z[4]; ///< of i, f, g, o before activation
    T c;    ///< of the state before the step
};
template <class T>
__device__ lstm_cell_gradient<T> lstm_cell_backward(const lstm_activations& a, const T (&gates)[4], T c, T c_before,
                                                    T dh, T dc_after) {
    const T i = gates[0], f = gates[1], g = gates[2], o = gates[3], shown = a.cell(c);
    const T dc = dc_after + dh * o * a.cell_slope(shown);
    return {{dc * g * a.gate_slope(i), dc * c_before * a.gate_slope(f), dc * i * a.cell_slope(g),
             dh * shown * a.gate_slope(o)},
            dc * f};
}

template <class T>
__device__ T value_or_zero(const T* at, std::int64_t offset) {
    return at == nullptr ? T(0) : at[offset];
}
template <class T>
__device__ T value_or_one(const T* at, std::int64_t offset) {
    return at == nullptr ? T(1) : at[offset];
}

} // namespace kernels
} // namespace tapegraph::cuda
