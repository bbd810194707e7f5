#pragma once

#include <tapegraph/cuda/kernels/recurrent_cell.cuh>
#include <tapegraph/cuda/kernels/step_gemm.cuh>

/// One step of a recurrent layer as a problem for step_gemm: one launch per step, for every shape
/// and architecture, or two where a cell has a second product (reset_before), which is phase 1.
///
///   forward   M = samples, N = units and gates, K = units: A is h[t-1], in phase 1 times r, B is
///             R. A tile of N holds BN / gates units with all gates of the phase, gates slowest,
///             and a thread keeps columns BN / TN apart: all gates of one or several units, so the
///             cell is computed in the thread that has the sums.
///   backward  M = samples, N = units, K = units of the phase's gates: A is dz[t+1], in phase 1
///             that of the candidate at t, B is R transposed; the cell's gradient follows.

namespace tapegraph::cuda::kernels {

/// The gates whose products a phase computes: all of them; with reset_before all but the last in
/// phase 0, and the last in phase 1.
template <class Cell, int Phase>
struct phase_gates {
    static constexpr int count = Phase == 1 ? 1 : Cell::gates - (Cell::reset_before ? 1 : 0);
    static constexpr int first = Phase == 1 ? Cell::gates - 1 : 0;
};

template <class Cell, class Element, int Phase = 0>
struct recurrent_forward_step {
    struct state_line {
        std::int64_t offset, factors, resets;
        bool valid;
    };
    using T = Element;
    using a_line = state_line; ///< a sample's h, its factors, and in phase 1 r
    using a_step = plain_place;
    using b_line = plain_place; ///< a column of R
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = false;
    static constexpr int gates = phase_gates<Cell, Phase>::count;
    static constexpr bool makes_reset = Cell::reset_before && Phase == 0;

    recurrent_shape s;
    recurrent_forward_operands<T> p;
    int step, tile_units;
    int m, n, k;

    /// `tile_columns` is the tile's BN.
    recurrent_forward_step(const recurrent_shape& shape, const recurrent_forward_operands<T>& operands, int step_,
                           int tile_columns)
        : s(shape),
          p(operands),
          step(step_),
          tile_units(tile_columns / gates),
          m(shape.batch),
          n((shape.units + tile_units - 1) / tile_units * tile_columns),
          k(step_ == 0 && operands.h0 == nullptr ? 0 : shape.units) {}

    __device__ a_line line_a(int sample) const {
        if (sample >= m) return {0, 0, 0, false};
        return {step > 0 ? s.row(p.h, sample, step - 1) : s.state(sample, 0), s.state(sample, 0),
                Phase == 1 ? s.row(p.gates, sample, step, Cell::kept) + s.units : 0, true};
    }
    __device__ a_step step_a(int index, int end) const { return {index, index < end}; }
    __device__ T a_value(const a_line& line, const a_step& at) const {
        if (!line.valid || !at.valid) return T(0);
        const T h = (step > 0 ? p.h.data : p.h0)[line.offset + at.offset];
        const T given = h * value_or_one(p.dropped, line.factors + at.offset);
        if constexpr (Phase == 1) return p.gates.data[line.resets + at.offset] * given;
        return given;
    }
    __device__ b_line line_b(int column) const {
        const int tile = column / (gates * tile_units), gate = column / tile_units % gates;
        const int unit = tile * tile_units + column % tile_units;
        return {static_cast<std::int64_t>(phase_gates<Cell, Phase>::first + gate) * s.units + unit, unit < s.units};
    }
    __device__ b_step step_b(int index, int end) const {
        return {static_cast<std::int64_t>(index) * Cell::gates * s.units, index < end};
    }
    __device__ const T* b(const b_line& line, const b_step& at) const {
        return line.valid && at.valid ? p.recurrent + line.offset + at.offset : nullptr;
    }
    template <int Columns>
    __device__ void store_line(int sample, int tile, int column, const T (&sums)[Columns]) const {
        static_assert(Columns % gates == 0, "a thread has all gates of a unit");
        constexpr int units = Columns / gates;
        TG_UNROLL
        for (int u = 0; u < units; ++u) {
            const int unit = tile * tile_units + column + u * (tile_units / units);
            if (unit >= s.units) return;
            T of_unit[gates];
            TG_UNROLL
            for (int gate = 0; gate < gates; ++gate) of_unit[gate] = sums[gate * units + u];
            finish(fetch(sample, unit), sample, unit, of_unit, [](T) {});
        }
    }

    /// The inputs of a unit's cell besides its products.
    struct inputs {
        T x[Cell::gates], bias, z, r, before, h_before, factor;
        bool counts;
    };
    __device__ inputs fetch(int sample, int unit) const {
        const std::int64_t line = s.line(sample, step), units = s.units;
        const T* const xz = p.xz + line * Cell::gates * units + unit;
        inputs in{};
        in.counts = s.counts(p.mask, line);
        TG_UNROLL
        for (int gate = Cell::reset_before && !makes_reset ? 2 : 0; gate < (makes_reset ? 2 : Cell::gates); ++gate)
            in.x[gate] = xz[gate * units];
        in.bias = Cell::biased && !makes_reset ? value_or_zero(p.bias, unit) : T(0);
        if constexpr (Cell::reset_before && !makes_reset) {
            const T* const kept = kept_row(sample, unit);
            in.z = kept[0], in.r = kept[units];
        }
        in.before = in.h_before = memory_before<Cell>(s, p, sample, step, unit);
        if (Cell::states == 2 && !in.counts) in.h_before = value_or_zero(s.before(p.h, p.h0, sample, step, unit), 0);
        in.factor = value_or_one(p.dropped, s.state(sample, unit));
        return in;
    }
    /// Computes the cell; give(value) receives the operand of the next product with R.
    template <class Give>
    __device__ void finish(const inputs& in, int sample, int unit, const T (&sums)[gates], const Give& give) const {
        const std::int64_t units = s.units;
        T* const kept = p.gates.data == nullptr ? nullptr : kept_row(sample, unit);
        if constexpr (makes_reset) {
            const auto y = Cell::reset(s.activations, sums[0] + in.x[0], sums[1] + in.x[1]);
            kept[0] = in.counts ? y.z : T(0);
            kept[units] = in.counts ? y.r : T(0);
            give(y.r * (in.before * in.factor));
        } else {
            const auto y = [&] {
                if constexpr (Cell::reset_before)
                    return typename Cell::template numbers<T>{
                        {in.z, in.r, Cell::candidate(s.activations, in.x[2], sums[0], in.bias)}};
                else
                    return cell_values<Cell>(s.activations, in.bias, in.x, sums,
                                             std::make_integer_sequence<int, Cell::gates>{});
            }();
            auto next = Cell::step(s.activations, y, in.before);
            if (!in.counts) next = {in.before, in.h_before};
            p.h.data[s.row(p.h, sample, step) + unit] = next.h;
            if constexpr (Cell::states == 2) p.c.data[s.row(p.c, sample, step) + unit] = next.memory;
            give(next.h * in.factor);
            if (kept == nullptr) return;
            TG_UNROLL
            for (int i = Cell::reset_before ? 2 : 0; i < Cell::kept; ++i) kept[i * units] = in.counts ? y.v[i] : T(0);
        }
    }

private:
    __device__ T* kept_row(int sample, int unit) const {
        return p.gates.data + s.row(p.gates, sample, step, Cell::kept) + unit;
    }
};

/// Steps run from the last to the first; after step 0 comes step -1, which writes the gradients of
/// the initial states.
template <class Cell, class Element, int Phase = 0>
struct recurrent_backward_step {
    using T = Element;
    using a_line = plain_place; ///< a sample's dz
    using a_step = plain_place;
    using b_line = plain_place; ///< a row of R
    using b_step = plain_place;
    static constexpr bool a_along_k = true, b_along_k = true;
    static constexpr int gates = phase_gates<Cell, Phase>::count, first_gate = phase_gates<Cell, Phase>::first;
    /// The number of columns of dz between the last gate and the one before it.
    static constexpr int apart = Cell::product_column(Cell::gates - 1) - (Cell::gates - 1);

    recurrent_shape s;
    recurrent_backward_operands<T> p;
    int step;
    int m, n, k;

    recurrent_backward_step(const recurrent_shape& shape, const recurrent_backward_operands<T>& operands, int step_)
        : s(shape),
          p(operands),
          step(step_),
          m(shape.batch),
          n(shape.units),
          k(Phase == 0 && step_ == shape.time - 1 ? 0 : gates * shape.units) {}

    __device__ a_line line_a(int sample) const {
        return {sample < m ? s.row(p.dz, sample, Phase == 0 ? step + 1 : step, Cell::columns) : 0, sample < m};
    }
    __device__ a_step step_a(int index, int end) const {
        std::int64_t column = index + static_cast<std::int64_t>(first_gate) * s.units;
        if constexpr (apart > 0)
            column += column >= static_cast<std::int64_t>(Cell::gates - 1) * s.units
                          ? static_cast<std::int64_t>(apart) * s.units
                          : 0;
        return {column, index < end};
    }
    __device__ const T* a(const a_line& line, const a_step& at) const {
        return line.valid && at.valid ? p.dz.data + line.offset + at.offset : nullptr;
    }
    __device__ b_line line_b(int unit) const {
        return {(static_cast<std::int64_t>(unit) * Cell::gates + first_gate) * s.units, unit < n};
    }
    __device__ b_step step_b(int index, int end) const { return {index, index < end}; }
    __device__ const T* b(const b_line& line, const b_step& at) const {
        return line.valid && at.valid ? p.recurrent + line.offset + at.offset : nullptr;
    }
    __device__ void store(int sample, int unit, T sum) const {
        const T sums[1]{sum};
        finish(fetch(sample, unit), sample, unit, sums, [](int, T) {});
    }

    /// The inputs of the gradient of a unit's cell besides its product.
    struct inputs {
        T factor, carried, carried_dc, dh, now, before, y[Cell::values];
        bool counts;
    };
    __device__ inputs fetch(int sample, int unit) const {
        const std::int64_t state = s.state(sample, unit), line = s.line(sample, step);
        inputs in{};
        in.factor = value_or_one(p.dropped, state);
        if constexpr (Phase == 1) {
            in.counts = s.counts(p.mask, line);
            if (!in.counts) return in;
            in.carried = p.carried_dh[state];
            in.dh = row_or_zero(p.d_reset, sample, step, unit, 2);
            in.y[0] = p.gates[(line * Cell::kept + 1) * s.units + unit];
        } else {
            const bool last = step == s.time - 1;
            in.carried = last ? row_or_zero(p.dh_last, sample, 0, unit) : p.carried_dh[state];
            if constexpr (Cell::states == 2)
                in.carried_dc = last ? row_or_zero(p.dc_last, sample, 0, unit) : p.carried_dc[state];
            if (step < 0) {
                if (p.dh0.data != nullptr) in.dh = row_or_zero(p.dh_first, sample, 0, unit);
                return in;
            }
            if (step < p.dh_steps) in.dh = row_or_zero(p.dh, sample, step, unit, Cell::reset_before ? p.dh_width : 1);
            in.counts = s.counts(p.mask, line);
            if (!in.counts) return in;
            in.now = in.y[0] = p.memory[line * s.units + unit];
            TG_UNROLL
            for (int i = 0; i < Cell::kept; ++i)
                in.y[i] = p.gates[(line * Cell::kept + i) * static_cast<std::int64_t>(s.units) + unit];
        }
        in.before = s.memory_before(p.memory, p.memory0, sample, step, unit);
        return in;
    }
    /// Computes the gradient; give(gate, value) receives the operand of the next product with that
    /// gate's columns of R.
    template <class Give>
    __device__ void finish(const inputs& in, int sample, int unit, const T (&sums)[1], const Give& give) const {
        const T by_product = sums[0] * in.factor;
        if constexpr (Phase == 1)
            finish_reset(in, sample, unit, by_product, give);
        else
            finish_cell(in, sample, unit, by_product, give);
    }

private:
    __device__ T row_or_zero(const step_rows<const T>& rows, int sample, int of, int unit, int width = 1) const {
        return value_or_zero(rows.data, s.row(rows, sample, of, width) + unit);
    }
    template <class Give>
    __device__ void finish_cell(const inputs& in, int sample, int unit, T by_product, const Give& give) const {
        const std::int64_t state = s.state(sample, unit);
        T dh = by_product + in.carried;
        if (step < 0) {
            if (p.dh0.data != nullptr) p.dh0.data[s.row(p.dh0, sample, 0) + unit] = dh + in.dh;
            if constexpr (Cell::states == 2)
                if (p.dc0.data != nullptr) p.dc0.data[s.row(p.dc0, sample, 0) + unit] = in.carried_dc;
            return;
        }
        dh += in.dh;
        typename Cell::template gradient<T> d{{}, Cell::states == 2 ? in.carried_dc : dh};
        if (in.counts) {
            typename Cell::template numbers<T> y{};
            TG_UNROLL
            for (int i = 0; i < Cell::values; ++i) y.v[i] = in.y[i];
            d = Cell::backward(s.activations, y, in.before, in.now, dh, in.carried_dc);
            dh = T(0); // what is passed on goes through the gates
        }
        if constexpr (Cell::states == 2)
            p.carried_dh[state] = dh, p.carried_dc[state] = d.passed;
        else
            p.carried_dh[state] = d.passed;
        T* const dz = p.dz.data + s.row(p.dz, sample, step, Cell::columns) + unit;
        TG_UNROLL
        for (int i = 0; i < Cell::columns; ++i) dz[static_cast<std::int64_t>(i) * s.units] = d.v[i];
        TG_UNROLL
        for (int gate = 0; gate < Cell::gates; ++gate) give(gate, d.v[Cell::product_column(gate)]);
    }
    template <class Give>
    __device__ void finish_reset(const inputs& in, int sample, int unit, T by_product, const Give& give) const {
        if (!in.counts) return;
        const auto d = Cell::reset_backward(s.activations, in.y[0], in.before, by_product + in.dh);
        p.dz.data[s.row(p.dz, sample, step, Cell::columns) + s.units + unit] = d.v[0];
        p.carried_dh[s.state(sample, unit)] = in.carried + d.passed;
        give(1, d.v[0]);
    }
};

} // namespace tapegraph::cuda::kernels
