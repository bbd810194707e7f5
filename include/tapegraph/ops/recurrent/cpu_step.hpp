#pragma once

#include <tapegraph/cpu/gemm_kernel.hpp>
#include <tapegraph/ops/recurrent/cpu_cell.hpp>

#include <cstdint>
#include <utility>

/// The elementwise part of a recurrence's step, for a few units of some rows, between the products
/// of this step and of the next. The columns of a unit are always `gate` elements apart.

namespace tapegraph::cpu {

namespace detail {

template <class F, int... I>
TG_INLINE void for_columns(const F& f, std::integer_sequence<int, I...>) {
    (f(std::integral_constant<int, I>{}), ...);
}
/// Calls f(std::integral_constant<int, 0>), ..., up to N - 1: a loop over columns that does not
/// keep the enclosing loop from being vectorised. f is inlined with the instruction set of its
/// caller.
template <int N, class F>
TG_INLINE void for_columns(const F& f) {
    for_columns(f, std::make_integer_sequence<int, N>{});
}

/// A cell's values from one unit's columns.
template <class Cell, class F, class T, int... I>
TG_INLINE auto values_at(const F& f, const T* x, const T* z, std::int64_t x_gate, std::int64_t z_gate, T bias,
                         std::integer_sequence<int, I...>) {
    return Cell::values_of(f, bias, x[I * x_gate]..., z[I * z_gate]...);
}

template <class T>
TG_INLINE void copy_times(const T* from, const T* factor, std::int64_t units, T* to) {
    if (factor != nullptr) {
        TG_SIMD
        for (std::int64_t n = 0; n < units; ++n) to[n] = from[n] * factor[n];
    } else {
        TG_SIMD
        for (std::int64_t n = 0; n < units; ++n) to[n] = from[n];
    }
}

} // namespace detail

/// Forward: z + x are the gates' arguments. Strides of rows count elements.
template <class T>
struct recurrent_forward_job {
    recurrent_activations kinds;
    std::int64_t rows, units; ///< of this call
    T* z;                     ///< products with h of the previous step; may receive the gates
    std::int64_t z_row, z_gate;
    const T* x;
    std::int64_t x_row, x_gate;
    const T* bias; ///< bias of the candidate's product, if the cell is biased
    T* gates;      ///< values that the cell keeps; may be z
    std::int64_t gates_row, gates_gate;
    const T *memory_before, *h_before; ///< h is read only at masked steps
    std::int64_t memory_before_row, h_before_row;
    T *memory, *h; ///< may be the memory before, and both the same
    std::int64_t memory_row, h_row;
    T* next; ///< h times `dropped`, the operand of the next step's products
    std::int64_t next_row;
    const T* given; ///< with reset_before: the operand of this step's products, and r times that
    T* reset;
    std::int64_t given_row, reset_row;
    const bool* mask; ///< one per row, or null; false keeps the state
    std::int64_t mask_row;
    const T* dropped; ///< [rows, units], or null
    std::int64_t dropped_row;
};

/// `Phase` 1 follows the second product of a cell with reset_before, whose phase 0 computes its
/// operand.
template <class Cell, class T, bool Fast, int Phase>
struct recurrent_forward_body {
    static constexpr bool first_of_two = Cell::reset_before && Phase == 0;

    template <class Isa>
    TG_INLINE static void run(const recurrent_forward_job<T>* job) {
        const recurrent_forward_job<T>& j = *job;
        const detail::recurrent_functions<T, Fast> f{j.kinds};
        for (std::int64_t r = 0; r < j.rows; ++r) {
            T* const gates = j.gates + r * j.gates_row;
            if constexpr (first_of_two) {
                reset_row(j, f, r, gates);
            } else {
                T* const h = j.h + r * j.h_row;
                if (j.mask != nullptr && !j.mask[r * j.mask_row])
                    keep_row(j, r, gates, h);
                else
                    row(j, f, r, gates, h);
                detail::copy_times(static_cast<const T*>(h),
                                   j.dropped != nullptr ? j.dropped + r * j.dropped_row : nullptr, j.units,
                                   j.next + r * j.next_row);
            }
        }
    }

private:
    TG_INLINE static void keep_row(const recurrent_forward_job<T>& j, std::int64_t r, T* gates, T* h) {
        T* const memory = j.memory + r * j.memory_row;
        const T *old = j.memory_before + r * j.memory_before_row, *old_h = j.h_before + r * j.h_before_row;
        for (std::int64_t n = 0; n < j.units; ++n) {
            if constexpr (Cell::states == 2) memory[n] = old[n];
            h[n] = old_h[n];
            for (int g = 0; g < Cell::kept; ++g) gates[g * j.gates_gate + n] = T(0); // defined, and never read
        }
    }
    TG_INLINE static void row(const recurrent_forward_job<T>& j, const detail::recurrent_functions<T, Fast>& f,
                              std::int64_t r, T* gates, T* h) {
        const T *const z = j.z + r * j.z_row, *const x = j.x + r * j.x_row;
        const T* const before = j.memory_before + r * j.memory_before_row;
        T* const memory = j.memory + r * j.memory_row;
        const std::int64_t x_gate = j.x_gate, z_gate = j.z_gate, gates_gate = j.gates_gate;
        const T* const bias = j.bias;
        TG_SIMD
        for (std::int64_t n = 0; n < j.units; ++n) {
            T own{};
            if constexpr (Cell::biased) own = bias[n];
            unit(f, x + n, z + n, x_gate, z_gate, own, before[n], gates + n, gates_gate, memory + n, h + n);
        }
    }
    /// A separate function: g++ turns variables of a simd loop whose address is taken into arrays,
    /// one element a lane, and then does not vectorise it.
    TG_INLINE static void unit(const detail::recurrent_functions<T, Fast>& f, const T* x, const T* z,
                               std::int64_t x_gate, std::int64_t z_gate, T bias, T before, T* gates,
                               std::int64_t gates_gate, T* memory, T* h) {
        detail::cell_numbers<T, Cell::values> y;
        if constexpr (Cell::reset_before)
            y = {{gates[0], gates[gates_gate], Cell::candidate(f, x[2 * x_gate], z[2 * z_gate], bias)}};
        else
            y = detail::values_at<Cell>(f, x, z, x_gate, z_gate, bias, std::make_integer_sequence<int, Cell::gates>{});
        const auto state = Cell::step(f, y, before);
        detail::for_columns<Cell::kept>([&](auto g) __attribute__((always_inline)) { gates[g * gates_gate] = y.v[g]; });
        if constexpr (Cell::states == 2) *memory = state.memory;
        *h = state.h;
    }
    TG_INLINE static void reset_row(const recurrent_forward_job<T>& j, const detail::recurrent_functions<T, Fast>& f,
                                    std::int64_t r, T* gates) {
        const T *const z = j.z + r * j.z_row, *const x = j.x + r * j.x_row, *const given = j.given + r * j.given_row;
        T* const reset = j.reset + r * j.reset_row;
        TG_SIMD
        for (std::int64_t n = 0; n < j.units; ++n) {
            const auto y = Cell::reset(f, x[n] + z[n], x[j.x_gate + n] + z[j.z_gate + n]);
            gates[n] = y.z;
            gates[j.gates_gate + n] = y.r;
            reset[n] = y.r * given[n];
        }
    }
};

/// Backward: from dL/dh of a step to the derivatives by the cell's columns and by the memory before.
template <class T>
struct recurrent_backward_job {
    recurrent_activations kinds;
    std::int64_t rows, units;
    T* dh; ///< from the later steps, before `dropped`; overwritten. In phase 1: the derivative by r h', likewise
    std::int64_t dh_row;
    const T* seed; ///< the incoming dL/dh of this step, or null
    std::int64_t seed_row;
    T* passed; ///< derivative by the memory that bypasses the products: of this step, then of the one before
    std::int64_t passed_row;
    const T *gates, *now, *before; ///< the memory after and before the step
    std::int64_t gates_row, gates_gate, now_row, before_row;
    T *dz, *next; ///< the derivative by the columns, and by those of R for the products of the previous step
    std::int64_t dz_row, dz_gate, next_row, next_gate;
    const bool* mask;
    std::int64_t mask_row;
    T* carried; ///< with a mask, where the memory is not h: dL/dh that bypasses a masked step
    std::int64_t carried_row;
    const T* dropped;
    std::int64_t dropped_row;
};

template <class Cell, class T, bool Fast, int Phase>
struct recurrent_backward_body {
    template <class Isa>
    TG_INLINE static void run(const recurrent_backward_job<T>* job) {
        const recurrent_backward_job<T>& j = *job;
        const detail::recurrent_functions<T, Fast> f{j.kinds};
        for (std::int64_t r = 0; r < j.rows; ++r) {
            T* const dh = j.dh + r * j.dh_row;
            if (j.dropped != nullptr) {
                const T* const factor = j.dropped + r * j.dropped_row;
                TG_SIMD
                for (std::int64_t n = 0; n < j.units; ++n) dh[n] *= factor[n];
            }
            if (j.seed != nullptr) add(j.seed + r * j.seed_row, j.units, dh);
            T *dz = j.dz + r * j.dz_row, *next = j.next + r * j.next_row;
            T* const passed = j.passed + r * j.passed_row;
            const bool counts = j.mask == nullptr || j.mask[r * j.mask_row];
            if constexpr (Phase == 1) {
                if (counts) reset_row(j, f, r, dh, passed, dz, next);
                continue;
            }
            if constexpr (Cell::states == 1) add(passed, j.units, dh);
            if (Cell::states == 2 && j.mask != nullptr) {
                T* const carried = j.carried + r * j.carried_row;
                for (std::int64_t n = 0; n < j.units; ++n) {
                    dh[n] += carried[n];
                    carried[n] = counts ? T(0) : dh[n];
                }
            }
            if (counts)
                row(j, f, r, dh, passed, dz, next);
            else
                skip_row(j, dh, passed, dz, next);
        }
    }

private:
    TG_INLINE static void add(const T* from, std::int64_t units, T* to) {
        TG_SIMD
        for (std::int64_t n = 0; n < units; ++n) to[n] += from[n];
    }
    TG_INLINE static void skip_row(const recurrent_backward_job<T>& j, const T* dh, T* passed, T* dz, T* next) {
        for (std::int64_t n = 0; n < j.units; ++n) {
            if constexpr (Cell::states == 1) passed[n] = dh[n];
            for (int g = 0; g < Cell::columns; ++g) dz[g * j.dz_gate + n] = T(0);
            for (int g = 0; g < Cell::gates; ++g) next[g * j.next_gate + n] = T(0);
        }
    }
    TG_INLINE static void row(const recurrent_backward_job<T>& j, const detail::recurrent_functions<T, Fast>& f,
                              std::int64_t r, const T* dh, T* passed, T* dz, T* next) {
        const T *const gates = j.gates + r * j.gates_row, *const now = j.now + r * j.now_row;
        const T* const before = j.before + r * j.before_row;
        const std::int64_t gates_gate = j.gates_gate, dz_gate = j.dz_gate, next_gate = j.next_gate;
        TG_SIMD
        for (std::int64_t n = 0; n < j.units; ++n)
            unit(f, gates + n, gates_gate, before[n], now[n], dh[n], passed + n, dz + n, dz_gate, next + n, next_gate);
    }
    /// A separate function for the reason given above.
    TG_INLINE static void unit(const detail::recurrent_functions<T, Fast>& f, const T* gates, std::int64_t gates_gate,
                               T before, T now, T dh, T* passed, T* dz, std::int64_t dz_gate, T* next,
                               std::int64_t next_gate) {
        detail::cell_numbers<T, Cell::values> y{{now}};
        detail::for_columns<Cell::kept>([&](auto g) __attribute__((always_inline)) { y.v[g] = gates[g * gates_gate]; });
        const auto d = Cell::backward(f, y, before, now, dh, *passed);
        detail::for_columns<Cell::columns>([&](auto g) __attribute__((always_inline)) { dz[g * dz_gate] = d.v[g]; });
        detail::for_columns<Cell::gates>([&](auto g) __attribute__((always_inline)) {
            next[g * next_gate] = d.v[Cell::product_column(g)];
        });
        *passed = d.passed;
    }
    TG_INLINE static void reset_row(const recurrent_backward_job<T>& j, const detail::recurrent_functions<T, Fast>& f,
                                    std::int64_t r, const T* dh, T* passed, T* dz, T* next) {
        const T *const gate = j.gates + r * j.gates_row + j.gates_gate, *const before = j.before + r * j.before_row;
        T *const dr = dz + j.dz_gate, *const next_r = next + j.next_gate;
        TG_SIMD
        for (std::int64_t n = 0; n < j.units; ++n) {
            const auto d = Cell::reset_backward(f, gate[n], before[n], dh[n]);
            dr[n] = next_r[n] = d.v[0];
            passed[n] += d.passed;
        }
    }
};

} // namespace tapegraph::cpu
