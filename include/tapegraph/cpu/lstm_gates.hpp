#pragma once

#include <tapegraph/cpu/lstm_functions.hpp>

#include <cstdint>

/// What happens to a few units of some rows in one step of an LSTM, between the products of this step and of the next.
/// Everywhere the gates are in the order i, f, g, o (Keras: i, f, c, o), `gate` elements apart.

namespace tapegraph::cpu {

/// Forward: z + x are the gates' arguments. Strides of rows count elements.
template <class T>
struct lstm_forward_job {
    lstm_activations kinds;
    std::int64_t rows, units; ///< of this call
    T* z;                     ///< products with h of the step before; may receive the gates
    std::int64_t z_row, z_gate;
    const T* x;
    std::int64_t x_row, x_gate;
    T* gates; ///< may be z
    std::int64_t gates_row, gates_gate;
    const T *c_before, *h_before; ///< h is read at masked steps only
    std::int64_t c_before_row, h_before_row;
    T *c, *h; ///< may be what was before
    std::int64_t c_row, h_row;
    T* next; ///< h again, times `dropped`: what the next step's products read
    std::int64_t next_row;
    const bool* mask; ///< one per row, or null; false keeps the state
    std::int64_t mask_row;
    const T* dropped; ///< [rows, units], or null
    std::int64_t dropped_row;
};

template <class T, bool Fast>
struct lstm_forward_body {
    template <class Isa>
    TG_INLINE static void run(const lstm_forward_job<T>* job) {
        const lstm_forward_job<T>& j = *job;
        const detail::lstm_functions<T, Fast> f{j.kinds};
        for (std::int64_t r = 0; r < j.rows; ++r) {
            T* const c = j.c + r * j.c_row;
            T* const h = j.h + r * j.h_row;
            if (j.mask != nullptr && !j.mask[r * j.mask_row]) {
                const T *old_c = j.c_before + r * j.c_before_row, *old_h = j.h_before + r * j.h_before_row;
                T* const gates = j.gates + r * j.gates_row;
                for (std::int64_t n = 0; n < j.units; ++n) {
                    c[n] = old_c[n];
                    h[n] = old_h[n];
                    for (int g = 0; g < 4; ++g) gates[g * j.gates_gate + n] = T(0); // defined, and never read
                }
            } else {
                row(j, f, r, c, h);
            }
            T* const next = j.next + r * j.next_row;
            if (j.dropped != nullptr) {
                const T* const factor = j.dropped + r * j.dropped_row;
#pragma omp simd
                for (std::int64_t n = 0; n < j.units; ++n) next[n] = h[n] * factor[n];
            } else {
#pragma omp simd
                for (std::int64_t n = 0; n < j.units; ++n) next[n] = h[n];
            }
        }
    }

private:
    TG_INLINE static void row(const lstm_forward_job<T>& j, const detail::lstm_functions<T, Fast>& f, std::int64_t r,
                              T* c, T* h) {
        const T *zi = j.z + r * j.z_row, *zf = zi + j.z_gate, *zg = zf + j.z_gate, *zo = zg + j.z_gate;
        const T *xi = j.x + r * j.x_row, *xf = xi + j.x_gate, *xg = xf + j.x_gate, *xo = xg + j.x_gate;
        T *gi = j.gates + r * j.gates_row, *gf = gi + j.gates_gate, *gg = gf + j.gates_gate, *go = gg + j.gates_gate;
        const T* before = j.c_before + r * j.c_before_row;
#pragma omp simd
        for (std::int64_t n = 0; n < j.units; ++n) {
            const auto [i, keep, g, o] = f.gates(xi[n] + zi[n], xf[n] + zf[n], xg[n] + zg[n], xo[n] + zo[n]);
            const T cell = keep * before[n] + i * g;
            gi[n] = i;
            gf[n] = keep;
            gg[n] = g;
            go[n] = o;
            c[n] = cell;
            h[n] = o * f.squash(cell);
        }
    }
};

/// Backward: from dL/dh of a step to dL/dz, and dL/dc of the step before.
template <class T>
struct lstm_backward_job {
    lstm_activations kinds;
    std::int64_t rows, units;
    T* dh; ///< what the later steps say, before `dropped`; overwritten
    std::int64_t dh_row;
    const T* seed; ///< dL/dh of this step from outside, or null
    std::int64_t seed_row;
    T* dc; ///< of this step, then of the one before
    std::int64_t dc_row;
    const T *gates, *c, *c_before;
    std::int64_t gates_row, gates_gate, c_row, c_before_row;
    T *dz, *next; ///< dL/dz, twice: for the caller and for the products of the step before
    std::int64_t dz_row, dz_gate, next_row, next_gate;
    const bool* mask;
    std::int64_t mask_row;
    T* carried; ///< with a mask: dL/dh that passes by a masked step
    std::int64_t carried_row;
    const T* dropped;
    std::int64_t dropped_row;
};

template <class T, bool Fast>
struct lstm_backward_body {
    template <class Isa>
    TG_INLINE static void run(const lstm_backward_job<T>* job) {
        const lstm_backward_job<T>& j = *job;
        const detail::lstm_functions<T, Fast> f{j.kinds};
        for (std::int64_t r = 0; r < j.rows; ++r) {
            T* const dh = j.dh + r * j.dh_row;
            if (j.dropped != nullptr) {
                const T* const factor = j.dropped + r * j.dropped_row;
#pragma omp simd
                for (std::int64_t n = 0; n < j.units; ++n) dh[n] *= factor[n];
            }
            if (j.seed != nullptr) {
                const T* const seed = j.seed + r * j.seed_row;
#pragma omp simd
                for (std::int64_t n = 0; n < j.units; ++n) dh[n] += seed[n];
            }
            T *dz = j.dz + r * j.dz_row, *next = j.next + r * j.next_row;
            if (j.mask != nullptr) {
                T* const carried = j.carried + r * j.carried_row;
                const bool counts = j.mask[r * j.mask_row];
                for (std::int64_t n = 0; n < j.units; ++n) {
                    dh[n] += carried[n];
                    carried[n] = counts ? T(0) : dh[n];
                }
                if (!counts) {
                    for (int g = 0; g < 4; ++g)
                        for (std::int64_t n = 0; n < j.units; ++n)
                            dz[g * j.dz_gate + n] = next[g * j.next_gate + n] = T(0);
                    continue;
                }
            }
            row(j, f, r, dh, dz, next);
        }
    }

private:
    // h = o squash(c), c = f c' + i g
    TG_INLINE static void row(const lstm_backward_job<T>& j, const detail::lstm_functions<T, Fast>& f, std::int64_t r,
                              const T* dh, T* dz, T* next) {
        const T *gi = j.gates + r * j.gates_row, *gf = gi + j.gates_gate, *gg = gf + j.gates_gate,
                *go = gg + j.gates_gate;
        const T *c = j.c + r * j.c_row, *before = j.c_before + r * j.c_before_row;
        T* const dc = j.dc + r * j.dc_row;
        T *zi = dz, *zf = zi + j.dz_gate, *zg = zf + j.dz_gate, *zo = zg + j.dz_gate;
        T *ni = next, *nf = ni + j.next_gate, *ng = nf + j.next_gate, *no = ng + j.next_gate;
#pragma omp simd
        for (std::int64_t n = 0; n < j.units; ++n) {
            const T i = gi[n], keep = gf[n], g = gg[n], o = go[n];
            const T out = f.squash(c[n]);
            const T dcell = dc[n] + dh[n] * o * f.squash_slope(out);
            const T di = dcell * g * f.gate_slope(i), df = dcell * before[n] * f.gate_slope(keep);
            const T dg = dcell * i * f.squash_slope(g), d_o = dh[n] * out * f.gate_slope(o);
            dc[n] = dcell * keep;
            zi[n] = ni[n] = di;
            zf[n] = nf[n] = df;
            zg[n] = ng[n] = dg;
            zo[n] = no[n] = d_o;
        }
    }
};

} // namespace tapegraph::cpu
