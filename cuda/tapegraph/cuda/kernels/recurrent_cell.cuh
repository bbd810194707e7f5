#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>
#include <type_traits>
#include <utility>

/// Shared by all kernels of recurrent layers: shapes, operands, and how they call a cell. As on the
/// CPU (ops/recurrent/cpu_cell.hpp), a cell is the formulas of one unit in one step,
///
///   of x[t] W + b and of (h[t-1] d) R, d: recurrent dropout,
///
/// so an LSTM, a GRU and a simple RNN share one set of kernels. A step whose mask is 0 passes h and
/// c on unchanged.

namespace tapegraph::cuda {

/// The activation functions of a cell and their slopes, which are computed from the functions'
/// values. Both false: tanh and sigmoid.
struct recurrent_activations {
    static constexpr bool fast = false;
    bool relu = false; ///< for candidates and for the path from an LSTM's state to h
    bool hard = false; ///< for the gates: relu6(x + 3) / 6

    template <class T>
    TG_HD T squash(T x) const {
        return !relu ? math::tanh(x) : x > T(0) || x != x ? x : T(0); // NaN stays NaN
    }
    template <class T>
    TG_HD T squash_slope(T y) const {
        return !relu ? T(1) - y * y : y > T(0) ? T(1) : T(0);
    }
    template <class T>
    TG_HD T gate(T x) const {
        if (!hard) return math::sigmoid(x);
        const T moved = x + T(3);
        return (moved < T(0) ? T(0) : moved > T(6) ? T(6) : moved) / T(6);
    }
    template <class T>
    TG_HD T gate_slope(T y) const {
        return !hard ? y * (T(1) - y) : y > T(0) && y < T(1) ? T(1) / T(6) : T(0);
    }
};

struct recurrent_geometry {
    std::int64_t batch, time, units;
    bool reverse = false; ///< the first step is the last in time
    recurrent_activations activations{};
};

/// Rows of units in a wider array.
template <class T>
struct step_rows {
    T* data = nullptr;
    std::int64_t record = 0; ///< elements from one sample to the next
    int kept = -1;           ///< the row of time t is t & kept: all steps (-1), two alternating (1), or one (0)
};

/// All addresses are in the device's memory. Where rows hold several values per unit, those of one
/// gate or column are contiguous.
template <class T>
struct recurrent_forward_operands {
    const T* xz;               ///< [batch, time, gates units]: x W + b
    const T* recurrent;        ///< R [units, gates units]
    const T* bias;             ///< [units]: for the last gate's product, in a cell that has one; null: zeros
    const T *h0, *c0;          ///< [batch, units]; null: zeros
    const T* dropped;          ///< [batch, units]: dropout factors of h in the products; null: none
    const unsigned char* mask; ///< [batch, time], 0: pass states on; null: every step counts
    step_rows<T> h, c;  ///< states, c of cells that have one; a masked step's are those of the step before it. h keeps
                        ///< two at least
    step_rows<T> gates; ///< what the cell keeps; null: not kept, but for one step at least in a cell with reset_before;
                        ///< may be xz where that is as wide
};
/// `memory` is c for cells that have one, h for others.
template <class T>
struct recurrent_backward_operands {
    step_rows<const T> dh;               ///< the gradient of h, null: zeros
    int dh_steps;                        ///< the number of steps with one, from the first on
    int dh_width;                        ///< units from one row of dh to the next, in a cell with reset_before; else 1
    step_rows<const T> d_reset;          ///< rows of two units: the gradient of r h[t-1] in such a cell; null: zeros
    step_rows<const T> dh_last, dc_last; ///< a row each: for the states after the last step; null: zeros
    step_rows<const T> dh_first;         ///< a row: for h0, in addition to the steps' own; null: zeros
    const T *gates, *memory, *memory0;   ///< as forward left them, for all steps; memory [batch, time, units]
    const T *recurrent, *dropped;        ///< as given to forward
    const unsigned char* mask;
    step_rows<T> dz;            ///< rows of the cell's columns: their gradients at every step
    step_rows<T> dh0, dc0;      ///< a row each: gradients of the initial states; null: not wanted
    T *carried_dh, *carried_dc; ///< scratch, [batch, units] each; dc: for cells that have c
};

namespace kernels {

struct recurrent_shape {
    int batch, time, units;
    bool reverse;
    recurrent_activations activations;

    explicit recurrent_shape(const recurrent_geometry& g)
        : batch(int(g.batch)), time(int(g.time)), units(int(g.units)), reverse(g.reverse), activations(g.activations) {}
    __device__ int time_of(int step) const { return reverse ? time - 1 - step : step; }
    /// The index of a step's line among those of [batch, time].
    __device__ std::int64_t line(int sample, int step) const {
        return static_cast<std::int64_t>(sample) * time + time_of(step);
    }
    /// The begin of a step's row, as an offset from the data; `width` in units.
    template <class T>
    __device__ std::int64_t row(const step_rows<T>& rows, int sample, int step, int width = 1) const {
        return sample * rows.record + static_cast<std::int64_t>(time_of(step) & rows.kept) * width * units;
    }
    /// The address of a state before a step: in the states of the step before, or (step 0) in the
    /// initial states, or null.
    template <class T>
    __device__ const T* before(const step_rows<T>& states, const std::type_identity_t<T>* first, int sample, int step,
                               int unit) const {
        if (step > 0) return states.data + row(states, sample, step - 1) + unit;
        return first == nullptr ? nullptr : first + state(sample, unit);
    }
    /// The index in [batch, units].
    __device__ std::int64_t state(int sample, int unit) const {
        return static_cast<std::int64_t>(sample) * units + unit;
    }
    /// The memory before a step, as forward left it for backward.
    template <class T>
    __device__ T memory_before(const T* memory, const T* memory0, int sample, int step, int unit) const {
        if (step > 0) return memory[line(sample, step - 1) * units + unit];
        return memory0 == nullptr ? T(0) : memory0[state(sample, unit)];
    }
    __device__ bool counts(const unsigned char* mask, std::int64_t line) const {
        return mask == nullptr || mask[line] != 0;
    }
};

template <class T>
__device__ T value_or_zero(const T* at, std::int64_t offset) {
    return at == nullptr ? T(0) : at[offset];
}
template <class T>
__device__ T value_or_one(const T* at, std::int64_t offset) {
    return at == nullptr ? T(1) : at[offset];
}

/// A cell's values from one unit's x W + b and its products with R.
template <class Cell, class T, int... I>
__device__ auto cell_values(const recurrent_activations& f, T bias, const T (&x)[Cell::gates],
                            const T (&products)[Cell::gates], std::integer_sequence<int, I...>) {
    return Cell::values_of(f, bias, x[I]..., products[I]...);
}
/// The memory before a step, of either kind.
template <class Cell, class T>
__device__ T memory_before(const recurrent_shape& s, const recurrent_forward_operands<T>& p, int sample, int step,
                           int unit) {
    if constexpr (Cell::states == 2)
        return value_or_zero(s.before(p.c, p.c0, sample, step, unit), 0);
    else
        return value_or_zero(s.before(p.h, p.h0, sample, step, unit), 0);
}

} // namespace kernels
} // namespace tapegraph::cuda
