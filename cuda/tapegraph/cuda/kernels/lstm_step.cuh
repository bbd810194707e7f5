#pragma once

#include <tapegraph/cuda/kernels/lstm_cell.cuh>
#include <tapegraph/cuda/kernels/step_gemm.cuh>

/// One step of an LSTM as a problem for step_gemm: one launch a step, for every shape and architecture.
///
///   forward   M = samples, N = units and gates, K = units: A is h[t-1], B is R. A tile of N holds BN / 4 units with all
///             four gates, gates slowest, and a thread keeps four columns BN / 4 apart: the gates of one unit, so the
///             cell is computed where the sums are. Tiles must have TN = 4.
///   backward  M = samples, N = units, K = 4 units: A is dz[t+1], B is R read across; the cell's gradient follows.

namespace tapegraph::cuda::kernels {

template <class Element>
struct lstm_forward_step {
    struct state_line {
        std::int64_t offset, factors;
        bool valid;
    };
    using T = Element;
    using a_line = state_line; ///< a sample's h, and its factors
    using a_step = plain_place;
    using b_line = plain_place; ///< a column of R
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = false;

    lstm_shape s;
    lstm_forward_operands<T> p;
    int step, tile_units;
    int m, n, k;

    /// `tile_columns` is the tile's BN.
    lstm_forward_step(const lstm_shape& shape, const lstm_forward_operands<T>& operands, int step_, int tile_columns)
        : s(shape),
          p(operands),
          step(step_),
          tile_units(tile_columns / 4),
          m(shape.batch),
          n((shape.units + tile_columns / 4 - 1) / (tile_columns / 4) * tile_columns),
          k(step_ == 0 && operands.h0 == nullptr ? 0 : shape.units) {}

    __device__ a_line line_a(int sample) const {
        if (sample >= m) return {0, 0, false};
        return {step > 0 ? s.row(p.h, sample, step - 1) : s.state(sample, 0), s.state(sample, 0), true};
    }
    __device__ a_step step_a(int index, int end) const { return {index, index < end}; }
    __device__ T a_value(const a_line& line, const a_step& at) const {
        if (!line.valid || !at.valid) return T(0);
        const T h = (step > 0 ? p.h.data : p.h0)[line.offset + at.offset];
        return h * value_or_one(p.dropped, line.factors + at.offset);
    }
    __device__ b_line line_b(int column) const {
        const int tile = column / (4 * tile_units), gate = column / tile_units % 4;
        const int unit = tile * tile_units + column % tile_units;
        return {static_cast<std::int64_t>(gate) * s.units + unit, unit < s.units};
    }
    __device__ b_step step_b(int index, int end) const {
        return {static_cast<std::int64_t>(index) * 4 * s.units, index < end};
    }
    __device__ const T* b(const b_line& line, const b_step& at) const {
        return line.valid && at.valid ? p.recurrent + line.offset + at.offset : nullptr;
    }
    __device__ void store_line(int sample, int tile, int column, const T (&sums)[4]) const {
        const int unit = tile * tile_units + column;
        if (unit >= s.units) return;
        const std::int64_t line = s.line(sample, step), at = line * 4 * s.units + unit;
        const T i = s.activations.gate(sums[0] + p.xz[at]);
        const T f = s.activations.gate(sums[1] + p.xz[at + s.units]);
        const T g = s.activations.cell(sums[2] + p.xz[at + 2 * static_cast<std::int64_t>(s.units)]);
        const T o = s.activations.gate(sums[3] + p.xz[at + 3 * static_cast<std::int64_t>(s.units)]);
        const T c_before = value_or_zero(s.before(p.c, p.c0, sample, step, unit), 0);
        const bool counts = s.counts(p.mask, line);
        lstm_state<T> next = lstm_cell(s.activations, i, f, g, o, c_before);
        if (!counts) next = {value_or_zero(s.before(p.h, p.h0, sample, step, unit), 0), c_before};
        p.h.data[s.row(p.h, sample, step) + unit] = next.h;
        p.c.data[s.row(p.c, sample, step) + unit] = next.c;
        if (p.gates == nullptr) return;
        const T gates[4]{i, f, g, o};
        TG_UNROLL
        for (int gate = 0; gate < 4; ++gate)
            p.gates[at + static_cast<std::int64_t>(gate) * s.units] = counts ? gates[gate] : T(0);
    }
};

/// Steps run from the last to the first; after step 0 comes step -1, which writes the gradients of the first states.
template <class Element>
struct lstm_backward_step {
    using T = Element;
    using a_line = plain_place; ///< a sample's dz
    using a_step = plain_place;
    using b_line = plain_place; ///< a row of R
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = true;

    lstm_shape s;
    lstm_backward_operands<T> p;
    int step;
    int m, n, k;

    lstm_backward_step(const lstm_shape& shape, const lstm_backward_operands<T>& operands, int step_)
        : s(shape),
          p(operands),
          step(step_),
          m(shape.batch),
          n(shape.units),
          k(step_ == shape.time - 1 ? 0 : 4 * shape.units) {}

    __device__ a_line line_a(int sample) const {
        return {sample < m ? s.row(p.dz, sample, step + 1, 4) : 0, sample < m};
    }
    __device__ a_step step_a(int index, int end) const { return {index, index < end}; }
    __device__ const T* a(const a_line& line, const a_step& at) const {
        return line.valid && at.valid ? p.dz.data + line.offset + at.offset : nullptr;
    }
    __device__ b_line line_b(int unit) const { return {static_cast<std::int64_t>(unit) * 4 * s.units, unit < n}; }
    __device__ b_step step_b(int index, int end) const { return {index, index < end}; }
    __device__ const T* b(const b_line& line, const b_step& at) const {
        return line.valid && at.valid ? p.recurrent + line.offset + at.offset : nullptr;
    }
    __device__ void store(int sample, int unit, T sum) const {
        const std::int64_t state = s.state(sample, unit);
        const bool last = step == s.time - 1;
        const auto row_or_zero = [&](const step_rows<const T>& rows, int of) {
            return value_or_zero(rows.data, s.row(rows, sample, of) + unit);
        };
        T dh = sum * value_or_one(p.dropped, state) + (last ? row_or_zero(p.dh_last, 0) : p.carried_dh[state]);
        T dc = last ? row_or_zero(p.dc_last, 0) : p.carried_dc[state];
        if (step < 0) {
            if (p.dh0.data != nullptr) p.dh0.data[s.row(p.dh0, sample, 0) + unit] = dh + row_or_zero(p.dh_first, 0);
            if (p.dc0.data != nullptr) p.dc0.data[s.row(p.dc0, sample, 0) + unit] = dc;
            return;
        }
        const std::int64_t line = s.line(sample, step), at = line * 4 * s.units + unit;
        if (step < p.dh_steps) dh += row_or_zero(p.dh, step);
        lstm_cell_gradient<T> d{{}, dc};
        if (s.counts(p.mask, line)) {
            T gates[4];
            TG_UNROLL
            for (int gate = 0; gate < 4; ++gate) gates[gate] = p.gates[at + static_cast<std::int64_t>(gate) * s.units];
            d = lstm_cell_backward(s.activations, gates, p.c[line * s.units + unit],
                                   s.cell_before(p.c, p.c0, sample, step, unit), dh, dc);
            dh = T(0); // what goes on goes through the gates
        }
        p.carried_dh[state] = dh;
        p.carried_dc[state] = d.c;
        TG_UNROLL
        for (int gate = 0; gate < 4; ++gate)
            p.dz.data[s.row(p.dz, sample, step, 4) + static_cast<std::int64_t>(gate) * s.units + unit] = d.z[gate];
    }
};

} // namespace tapegraph::cuda::kernels
