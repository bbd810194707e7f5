#pragma once

#include <tapegraph/cpu/lstm.hpp>

/// Tangents of an LSTM along v, and the derivative of its backward pass. With v the adjoint of the backward pass's results,
/// that is the backward pass's own derivative along v, since second derivatives commute: forward and backward pass in numbers
/// that carry a tangent, `d_` below.

namespace tapegraph::cpu {

template <class T>
struct lstm_second_arguments {
    step_rows<const T> c, gates;         ///< as the forward pass left them
    step_rows<const T> seeds, last_cell; ///< as in lstm_gradients
    std::int64_t first_seed = 0, last_seed = 0;
    step_rows<const T> v, v_h0, v_c0; ///< by x W + b, rows of 4 units; by the initial state, or null data
    step_rows<T> d_rows;              ///< tangent of h where `seeds` are, or null data
    step_rows<T> d_c;                 ///< of c after the last step, or null data
    step_rows<T> d_before;            ///< of h before each step, or null data
    step_rows<T> d_z, d_h0, d_c0;     ///< of the backward pass's results, or null data: there is none then
};

namespace detail {

// Records of one task: their tangents of all steps stay in its scratch.
inline constexpr std::int64_t second_rows = 12;

template <class T>
struct second_workspace {
    T *forward_panels, *backward_panels, *zeros, *scratch;
    std::int64_t task_elements;

    second_workspace(workspace_cutter& cut, const lstm_shape<T>& s, int threads) {
        forward_panels = cut.take<T>(recurrent_matrix<T>::elements(4 * s.units, s.units));
        backward_panels = cut.take<T>(recurrent_matrix<T>::elements(s.units, 4 * s.units));
        zeros = cut.take<T>(s.units);
        // For each record: tangents of z and c of all steps; h given to the gates, its product; dz and its tangent (4 units
        // each), their products; dc and what passes by masked steps, with tangents.
        task_elements = std::min(second_rows, s.batch) * s.units * (5 * s.time + 1 + 4 + 8 + 2 + 2 + 2);
        scratch = cut.take<T>(threads * task_elements);
    }
};

/// One record's units in one step of the forward pass.
template <class T>
struct second_forward_job {
    lstm_activations kinds;
    std::int64_t units;
    const T *gates, *c, *c_before, *d_c_before;
    const T *v, *product; ///< d_z is their sum
    T *d_z, *d_c, *d_h;
};

template <class T>
struct second_forward_body {
    template <class Isa>
    TG_INLINE static void run(const second_forward_job<T>* job) {
        const second_forward_job<T>& j = *job;
        const lstm_functions<T, false> f{j.kinds};
        const std::int64_t u = j.units;
        for (std::int64_t k = 0; k < 4 * u; ++k) j.d_z[k] = j.v[k] + j.product[k];
        for (std::int64_t n = 0; n < u; ++n) {
            const T i = j.gates[n], keep = j.gates[u + n], g = j.gates[2 * u + n], o = j.gates[3 * u + n];
            const T d_i = f.gate_slope(i) * j.d_z[n], d_keep = f.gate_slope(keep) * j.d_z[u + n];
            const T d_g = f.squash_slope(g) * j.d_z[2 * u + n], d_o = f.gate_slope(o) * j.d_z[3 * u + n];
            const T d_c = d_keep * j.c_before[n] + keep * j.d_c_before[n] + d_i * g + i * d_g;
            const T out = f.squash(j.c[n]);
            j.d_c[n] = d_c;
            j.d_h[n] = d_o * out + o * f.squash_slope(out) * d_c;
        }
    }
};

/// The same of the backward pass.
template <class T>
struct second_backward_job {
    lstm_activations kinds;
    std::int64_t units;
    const T *gates, *c, *c_before, *d_c, *d_c_before, *d_z;
    const T *dh, *d_dh; ///< dL/dh of the step, complete
    T *dc, *d_dc;       ///< of the step, then of the one before
    T *dz, *d_dz;
};

template <class T>
struct second_backward_body {
    template <class Isa>
    TG_INLINE static void run(const second_backward_job<T>* job) {
        const second_backward_job<T>& j = *job;
        const lstm_functions<T, false> f{j.kinds};
        const std::int64_t u = j.units;
        for (std::int64_t n = 0; n < u; ++n) {
            const T i = j.gates[n], keep = j.gates[u + n], g = j.gates[2 * u + n], o = j.gates[3 * u + n];
            const T zi = j.d_z[n], zf = j.d_z[u + n], zg = j.d_z[2 * u + n], zo = j.d_z[3 * u + n];
            const T si = f.gate_slope(i), sf = f.gate_slope(keep), sg = f.squash_slope(g), so = f.gate_slope(o);
            const T out = f.squash(j.c[n]), slope = f.squash_slope(out);
            const T before = j.c_before[n], dh = j.dh[n], d_dh = j.d_dh[n];
            const T dc = j.dc[n] + dh * o * slope;
            const T d_dc =
                j.d_dc[n] + d_dh * o * slope + dh * (so * zo) * slope + dh * o * f.squash_curve(out) * j.d_c[n];
            j.dz[n] = dc * g * si;
            j.d_dz[n] = d_dc * g * si + dc * (sg * zg) * si + dc * g * f.gate_curve(i) * zi;
            j.dz[u + n] = dc * before * sf;
            j.d_dz[u + n] = d_dc * before * sf + dc * j.d_c_before[n] * sf + dc * before * f.gate_curve(keep) * zf;
            j.dz[2 * u + n] = dc * i * sg;
            j.d_dz[2 * u + n] = d_dc * i * sg + dc * (si * zi) * sg + dc * i * f.squash_curve(g) * zg;
            j.dz[3 * u + n] = dh * out * so;
            j.d_dz[3 * u + n] = d_dh * out * so + dh * (slope * j.d_c[n]) * so + dh * out * f.gate_curve(o) * zo;
            j.dc[n] = dc * keep;
            j.d_dc[n] = d_dc * keep + dc * (sf * zf);
        }
    }
};

template <class T>
void multiply_all(const recurrent_matrix<T>& m, const T* a, std::int64_t rows, T* out) {
    const std::int64_t width = 2 * m.lanes();
    for (std::int64_t panel = 0; panel < m.layout().count(); ++panel)
        for (std::int64_t r = 0; r < rows; r += m.one_row ? 1 : rows)
            m.multiply(panel, a + r * m.k, m.k, m.one_row ? 1 : rows, out + r * m.n + panel * width, m.n);
}

template <class T>
void lstm_second_rows(const lstm_shape<T>& s, const lstm_second_arguments<T>& a, const recurrent_matrix<T>& forward,
                      const recurrent_matrix<T>& backward, std::int64_t first, std::int64_t rows, const T* zeros,
                      T* scratch) {
    const std::int64_t u = s.units;
    const auto take = [&](std::int64_t elements) {
        T* const p = scratch;
        scratch += elements;
        return p;
    };
    T *const d_z = take(4 * rows * s.time * u), *const d_c = take(rows * (s.time + 1) * u);
    T* const given = take(rows * u);
    // Behind one another, so that one product serves both.
    T *const dz = take(4 * rows * u), *const d_dz = take(4 * rows * u);
    T *const dh = take(rows * u), *const d_dh = take(rows * u);
    T *const dc = take(rows * u), *const d_dc = take(rows * u);
    T *const carried = take(rows * u), *const d_carried = take(rows * u);
    const auto counts = [&](std::int64_t r, std::int64_t t) {
        return s.mask == nullptr || s.mask[(first + r) * s.time + t];
    };
    const auto factor = [&](std::int64_t at) { return s.dropped != nullptr ? s.dropped[first * u + at] : T(1); };
    const auto start = [&](const step_rows<const T>& from, std::int64_t at) {
        return from.data != nullptr ? from.at(first + at / u, 0)[at % u] : T(0);
    };
    const auto c_before = [&](std::int64_t r, std::int64_t t) {
        return t == 0 ? (s.c0 != nullptr ? s.c0 + (first + r) * u : zeros) : a.c.at(first + r, t - 1);
    };

    T* const state = dh; // not in use yet: tangent of h
    for (std::int64_t at = 0; at < rows * u; ++at) {
        state[at] = start(a.v_h0, at);
        d_c[at] = start(a.v_c0, at);
    }
    const auto put_rows = [&](std::int64_t t) {
        if (a.d_rows.data == nullptr || t < a.first_seed || t >= a.last_seed) return;
        for (std::int64_t r = 0; r < rows; ++r) std::copy_n(state + r * u, u, a.d_rows.at(first + r, t));
    };
    put_rows(-1);
    for (std::int64_t t = 0; t < s.time; ++t) {
        for (std::int64_t at = 0; at < rows * u; ++at) given[at] = state[at] * factor(at);
        multiply_all(forward, static_cast<const T*>(given), rows, dz);
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t b = first + r;
            T *const before = d_c + (t * rows + r) * u, *const now = before + rows * u;
            if (a.d_before.data != nullptr) std::copy_n(state + r * u, u, a.d_before.at(b, t));
            if (counts(r, t)) {
                const second_forward_job<T> j{s.kinds,
                                              u,
                                              a.gates.at(b, t),
                                              a.c.at(b, t),
                                              c_before(r, t),
                                              before,
                                              a.v.at(b, t),
                                              dz + 4 * r * u,
                                              d_z + 4 * (t * rows + r) * u,
                                              now,
                                              state + r * u};
                dispatch<second_forward_body<T>>(&j);
            } else {
                std::copy_n(before, u, now);
            }
        }
        put_rows(t);
    }
    for (std::int64_t r = 0; r < rows; ++r)
        if (a.d_c.data != nullptr) std::copy_n(d_c + (s.time * rows + r) * u, u, a.d_c.at(first + r, 0));
    if (a.d_z.data == nullptr) return;

    for (std::int64_t at = 0; at < rows * u; ++at) {
        dc[at] = start(a.last_cell, at);
        d_dc[at] = carried[at] = d_carried[at] = T(0);
    }
    for (std::int64_t t = s.time - 1; t >= -1; --t) {
        if (t + 1 < s.time)
            multiply_all(backward, static_cast<const T*>(dz), 2 * rows, dh);
        else
            std::fill_n(dh, 2 * rows * u, T(0));
        const bool seeded = t >= a.first_seed && t < a.last_seed;
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t b = first + r;
            T *const dh_r = dh + r * u, *const d_dh_r = d_dh + r * u;
            for (std::int64_t n = 0; n < u; ++n) {
                const std::int64_t at = r * u + n;
                dh_r[n] = dh_r[n] * factor(at) + carried[at] + (seeded ? a.seeds.at(b, t)[n] : T(0));
                d_dh_r[n] = d_dh_r[n] * factor(at) + d_carried[at];
            }
            if (t < 0) {
                std::copy_n(d_dh_r, u, a.d_h0.at(b, 0));
                std::copy_n(d_dc + r * u, u, a.d_c0.at(b, 0));
                continue;
            }
            const bool here = counts(r, t);
            for (std::int64_t n = 0; n < u; ++n) {
                carried[r * u + n] = here ? T(0) : dh_r[n];
                d_carried[r * u + n] = here ? T(0) : d_dh_r[n];
            }
            if (here) {
                const T* const before = d_c + (t * rows + r) * u;
                const second_backward_job<T> j{s.kinds,
                                               u,
                                               a.gates.at(b, t),
                                               a.c.at(b, t),
                                               c_before(r, t),
                                               before + rows * u,
                                               before,
                                               d_z + 4 * (t * rows + r) * u,
                                               dh_r,
                                               d_dh_r,
                                               dc + r * u,
                                               d_dc + r * u,
                                               dz + 4 * r * u,
                                               d_dz + 4 * r * u};
                dispatch<second_backward_body<T>>(&j);
            } else {
                std::fill_n(dz + 4 * r * u, 4 * u, T(0));
                std::fill_n(d_dz + 4 * r * u, 4 * u, T(0));
            }
            std::copy_n(d_dz + 4 * r * u, 4 * u, a.d_z.at(b, t));
        }
    }
}

} // namespace detail

template <class T>
std::size_t lstm_second_workspace_bytes(const lstm_shape<T>& s, int threads) {
    detail::workspace_cutter cut(nullptr);
    const detail::second_workspace<T> work(cut, s, threads);
    return cut.used();
}

/// Plain where the first two passes are tuned: records are shared out among the threads, each of which takes a few through
/// the whole sequence. The workspace holds lstm_second_workspace_bytes and is aligned to 64 bytes.
template <class T>
void lstm_second(const lstm_shape<T>& s, const lstm_second_arguments<T>& a, void* workspace) {
    if (s.batch <= 0 || s.units <= 0) return;
    detail::workspace_cutter cut(workspace);
    const detail::second_workspace<T> work(cut, s, thread_count());
    std::fill_n(work.zeros, s.units, T(0));
    const recurrent_matrix<T> forward{4 * s.units, s.units, false, work.forward_panels};
    const recurrent_matrix<T> backward{s.units, 4 * s.units, false, work.backward_panels};
    for (std::int64_t panel = 0; panel < forward.layout().count(); ++panel)
        forward.pack(panel, s.recurrent, 4 * s.units, false);
    for (std::int64_t panel = 0; panel < backward.layout().count(); ++panel)
        backward.pack(panel, s.recurrent, 4 * s.units, true);
    detail::for_tasks(detail::divide_up(s.batch, detail::second_rows), detail::worth_threads(s.multiply_adds()),
                      [&](std::int64_t task, int thread) {
                          const std::int64_t first = task * detail::second_rows;
                          detail::lstm_second_rows(s, a, forward, backward, first,
                                                   std::min(detail::second_rows, s.batch - first), work.zeros,
                                                   work.scratch + thread * work.task_elements);
                      });
}

} // namespace tapegraph::cpu
