#pragma once

#include <tapegraph/ops/recurrent/cpu.hpp>

/// Tangents of a recurrence along v, and the derivative of its backward pass. With v the adjoint of
/// the backward pass's results, that is the backward pass's own derivative along v, since second
/// derivatives commute: the forward and backward pass in numbers that carry a tangent, prefixed
/// `d_` below.

namespace tapegraph::cpu {

template <class T>
struct recurrent_second_arguments {
    step_rows<const T> h, c, gates;                   ///< results of the forward pass
    step_rows<const T> seeds, reset_seeds, last_cell; ///< as in recurrent_gradients
    std::int64_t first_seed = 0, last_seed = 0;
    step_rows<const T> v, v_h0, v_c0; ///< by the columns; by the initial state, or null data
    step_rows<T> d_rows;              ///< tangent of h at the steps of `seeds`, or null data
    /// Of r h', for cells with reset_before, at the steps of `reset_seeds`, or null data.
    step_rows<T> d_reset;
    step_rows<T> d_c;             ///< of c after the last step, or null data
    step_rows<T> d_before;        ///< of h before each step, followed by that of r h', or null data
    step_rows<T> d_z, d_h0, d_c0; ///< of the backward pass's results, or null data if there is no such pass
};

namespace detail {

/// A number and its tangent.
template <class T>
struct tangent_number {
    T value, tangent;

    tangent_number() = default;
    // NOLINT: implicit, for constants.
    TG_HD tangent_number(T number, T along = T(0)) : value(number), tangent(along) {}
    TG_HD friend tangent_number operator+(tangent_number a, tangent_number b) {
        return {a.value + b.value, a.tangent + b.tangent};
    }
    TG_HD friend tangent_number operator-(tangent_number a, tangent_number b) {
        return {a.value - b.value, a.tangent - b.tangent};
    }
    TG_HD friend tangent_number operator*(tangent_number a, tangent_number b) {
        return {a.value * b.value, a.tangent * b.value + a.value * b.tangent};
    }
};

/// recurrent_functions of such numbers. With two arguments: from the function's value and its
/// argument's tangent.
template <class T>
struct tangent_functions {
    using number = tangent_number<T>;
    recurrent_functions<T, false> f;

    TG_HD number squash(T y, T along) const { return {y, f.squash_slope(y) * along}; }
    TG_HD number squash(number x) const { return squash(f.squash(x.value), x.tangent); }
    TG_HD number gate(T y, T along) const { return {y, f.gate_slope(y) * along}; }
    TG_HD number squash_slope(number y) const { return {f.squash_slope(y.value), f.squash_bend(y.value) * y.tangent}; }
    TG_HD number gate_slope(number y) const { return {f.gate_slope(y.value), f.gate_bend(y.value) * y.tangent}; }
};

// Records of one task: their tangents of all steps stay in its scratch memory.
inline constexpr std::int64_t second_rows = 12;

/// R and its transpose, each in one part or, for cells with reset_before, in two.
template <class Cell, class T>
struct second_workspace {
    static constexpr int phases = recurrent_phases<Cell>;
    T *forward_panels[phases], *backward_panels[phases], *zeros, *scratch;
    std::int64_t task_elements;

    second_workspace(workspace_cutter& cut, const recurrent_shape<T>& s, int threads) {
        for (int p = 0; p < phases; ++p) {
            forward_panels[p] = cut.take<T>(recurrent_matrix<T>::elements(gates_in<Cell>(p) * s.units, s.units));
            backward_panels[p] = cut.take<T>(recurrent_matrix<T>::elements(s.units, gates_in<Cell>(p) * s.units));
        }
        zeros = cut.take<T>(s.units);
        task_elements =
            std::min(second_rows, s.batch) * s.units * ((Cell::columns + 1) * s.time + 2 + 2 * Cell::gates + 6);
        scratch = cut.take<T>(threads * task_elements);
    }
    recurrent_matrix<T> forward(const recurrent_shape<T>& s, int p) const {
        return {gates_in<Cell>(p) * s.units, s.units, false, forward_panels[p]};
    }
    recurrent_matrix<T> backward(const recurrent_shape<T>& s, int p) const {
        return {s.units, gates_in<Cell>(p) * s.units, false, backward_panels[p]};
    }
    void pack(const recurrent_shape<T>& s) const {
        for (int p = 0; p < phases; ++p) {
            const T* const from = s.recurrent + first_gate<Cell>(p) * s.units;
            for (std::int64_t panel = 0; panel < forward(s, p).layout().count(); ++panel)
                forward(s, p).pack(panel, from, Cell::gates * s.units, false);
            for (std::int64_t panel = 0; panel < backward(s, p).layout().count(); ++panel)
                backward(s, p).pack(panel, from, Cell::gates * s.units, true);
        }
    }
};

/// One record's units in one step of the forward pass.
template <class T>
struct second_forward_job {
    recurrent_activations kinds;
    std::int64_t units;
    const T *gates, *now, *before, *d_before;
    /// d_z is v plus, in their columns, the products; the last gate's are separate.
    const T *v, *product, *last_product;
    T *d_z, *d_memory, *d_h;
    T* d_reset; ///< of r h'
};

/// One record's units in one step of the backward pass.
template <class T>
struct second_backward_job {
    recurrent_activations kinds;
    std::int64_t units;
    const T *gates, *now, *before, *d_now, *d_before, *d_z;
    const T *dh, *d_dh;               ///< dL/dh of the step, complete; in phase 1 the derivative by r h'
    T *dc, *d_dc;                     ///< by the memory, past the products: of this step, then of the one before
    T *dz, *last_dz, *d_dz, *last_dd; ///< by the columns of R, the last gate's separately, and tangents
    T* d_columns;                     ///< tangent of the derivative by the cell's columns
};

template <class Cell, class Job, class T>
TG_INLINE auto values_along(const tangent_functions<T>& f, const Job& j, const T* d_z, std::int64_t n) {
    cell_numbers<T, Cell::values> y{{j.now[n]}};
    T d[Cell::columns];
    for (int g = 0; g < Cell::kept; ++g) y.v[g] = j.gates[g * j.units + n];
    for (int c = 0; c < Cell::columns; ++c) d[c] = d_z[c * j.units + n];
    return Cell::along(f, y, d);
}

template <class Cell, class T>
struct second_forward_body {
    template <class Isa>
    TG_INLINE static void run(const second_forward_job<T>* job) {
        const second_forward_job<T>& j = *job;
        const tangent_functions<T> f{{j.kinds}};
        const std::int64_t u = j.units;
        for (std::int64_t k = 0; k < Cell::columns * u; ++k) j.d_z[k] = j.v[k];
        for (int g = 0; g < Cell::gates; ++g) {
            const T* const product = g == Cell::gates - 1 ? j.last_product : j.product + g * u;
            T* const d_z = j.d_z + Cell::product_column(g) * u;
            for (std::int64_t n = 0; n < u; ++n) d_z[n] += product[n];
        }
        for (std::int64_t n = 0; n < u; ++n) {
            const auto y = values_along<Cell>(f, j, static_cast<const T*>(j.d_z), n);
            const auto state = Cell::step(f, y, tangent_number<T>(j.before[n], j.d_before[n]));
            j.d_memory[n] = state.memory.tangent;
            j.d_h[n] = state.h.tangent;
        }
    }
};

template <class T>
struct second_reset_body {
    template <class Isa>
    TG_INLINE static void run(const second_forward_job<T>* job) {
        const second_forward_job<T>& j = *job;
        const tangent_functions<T> f{{j.kinds}};
        const std::int64_t u = j.units;
        for (std::int64_t n = 0; n < u; ++n) {
            const auto r = f.gate(j.gates[u + n], j.v[u + n] + j.product[u + n]);
            j.d_reset[n] = (r * tangent_number<T>(j.before[n], j.d_before[n])).tangent;
        }
    }
};

template <class Cell, class T, int Phase>
struct second_backward_body {
    template <class Isa>
    TG_INLINE static void run(const second_backward_job<T>* job) {
        const second_backward_job<T>& j = *job;
        const tangent_functions<T> f{{j.kinds}};
        using V = tangent_number<T>;
        const std::int64_t u = j.units;
        for (std::int64_t n = 0; n < u; ++n) {
            const auto y = values_along<Cell>(f, j, j.d_z, n);
            const V before(j.before[n], j.d_before[n]), dh(j.dh[n], j.d_dh[n]), dc(j.dc[n], j.d_dc[n]);
            if constexpr (Phase == 1) {
                const auto d = Cell::reset_backward(f, y.v[1], before, dh);
                put(d.v[0], j.dz + u + n, j.d_dz + u + n);
                j.d_columns[u + n] = d.v[0].tangent;
                put(dc + d.passed, j.dc + n, j.d_dc + n);
            } else {
                const auto d = Cell::backward(f, y, before, V(j.now[n], j.d_now[n]), dh, dc);
                for (int c = 0; c < Cell::columns; ++c) j.d_columns[c * u + n] = d.v[c].tangent;
                for (int g = 0; g < Cell::gates - 1; ++g)
                    put(d.v[Cell::product_column(g)], j.dz + g * u + n, j.d_dz + g * u + n);
                put(d.v[Cell::product_column(Cell::gates - 1)], j.last_dz + n, j.last_dd + n);
                put(d.passed, j.dc + n, j.d_dc + n);
            }
        }
    }

private:
    TG_INLINE static void put(tangent_number<T> x, T* value, T* tangent) {
        *value = x.value;
        *tangent = x.tangent;
    }
};

template <class T>
void multiply_all(const recurrent_matrix<T>& m, const T* a, std::int64_t rows, T* out) {
    const std::int64_t width = 2 * m.lanes();
    for (std::int64_t panel = 0; panel < m.layout().count(); ++panel)
        m.multiply(panel, a, m.k, rows, out + panel * width, m.n);
}

template <class Cell, class T>
void recurrent_second_rows(const recurrent_shape<T>& s, const recurrent_second_arguments<T>& a,
                           const second_workspace<Cell, T>& work, std::int64_t first, std::int64_t rows, T* scratch) {
    constexpr bool apart = Cell::reset_before; // whether the last gate's products are separate
    constexpr std::int64_t gates = gates_in<Cell>(0), last = apart ? 0 : gates - 1, last_row = apart ? 1 : gates;
    const std::int64_t u = s.units;
    const auto take = [&](std::int64_t elements) {
        T* const p = scratch;
        scratch += elements;
        return p;
    };
    T *const d_z = take(Cell::columns * rows * s.time * u), *const d_memory = take(rows * (s.time + 1) * u);
    T* const given = take(rows * u);
    // Contiguous, so that one product serves both.
    T *const dz = take(gates * rows * u), *const d_dz = take(gates * rows * u);
    T *const dr = take(apart ? rows * u : 0), *const d_dr = take(apart ? rows * u : 0);
    T *const dh = take(rows * u), *const d_dh = take(rows * u);
    T *const dc = take(rows * u), *const d_dc = take(rows * u);
    T *const carried = take(rows * u), *const d_carried = take(rows * u);
    const auto last_of = [&](T* of_all, T* alone, std::int64_t r) {
        return (apart ? alone : of_all) + (r * last_row + last) * u;
    };
    const auto counts = [&](std::int64_t r, std::int64_t t) {
        return s.mask == nullptr || s.mask[(first + r) * s.time + t];
    };
    const auto factor = [&](std::int64_t at) { return s.dropped != nullptr ? s.dropped[first * u + at] : T(1); };
    const auto start = [&](const step_rows<const T>& from, std::int64_t at) {
        return from.data != nullptr ? from.at(first + at / u, 0)[at % u] : T(0);
    };
    const step_rows<const T> memory = Cell::states == 2 ? a.c : a.h;
    const auto before = [&](std::int64_t r, std::int64_t t) -> const T* {
        const T* const initial = Cell::states == 2 ? s.c0 : s.h0;
        return t > 0 ? memory.at(first + r, t - 1) : initial != nullptr ? initial + (first + r) * u : work.zeros;
    };

    T *const state = dh, *const d_reset = d_dh; // not in use yet: tangents of h and of r h'
    for (std::int64_t at = 0; at < rows * u; ++at) {
        state[at] = start(a.v_h0, at);
        d_memory[at] = start(Cell::states == 2 ? a.v_c0 : a.v_h0, at);
    }
    const auto put_rows = [&](std::int64_t t) {
        if (a.d_rows.data == nullptr || t < a.first_seed || t >= a.last_seed) return;
        for (std::int64_t r = 0; r < rows; ++r) std::copy_n(state + r * u, u, a.d_rows.at(first + r, t));
    };
    const auto forward_job = [&](std::int64_t r, std::int64_t t) {
        const std::int64_t b = first + r;
        second_forward_job<T> j{};
        j.kinds = s.kinds, j.units = u;
        j.gates = a.gates.at(b, t), j.now = memory.at(b, t), j.before = before(r, t);
        j.d_before = d_memory + (t * rows + r) * u;
        j.v = a.v.at(b, t), j.product = dz + gates * r * u, j.last_product = last_of(dz, dr, r);
        j.d_z = d_z + Cell::columns * (t * rows + r) * u;
        j.d_memory = d_memory + ((t + 1) * rows + r) * u;
        j.d_h = state + r * u, j.d_reset = d_reset + r * u;
        return j;
    };
    put_rows(-1);
    for (std::int64_t t = 0; t < s.time; ++t) {
        for (std::int64_t at = 0; at < rows * u; ++at) given[at] = state[at] * factor(at);
        multiply_all(work.forward(s, 0), static_cast<const T*>(given), rows, dz);
        for (std::int64_t r = 0; r < rows && a.d_before.data != nullptr; ++r)
            std::copy_n(state + r * u, u, a.d_before.at(first + r, t));
        if constexpr (apart) {
            for (std::int64_t r = 0; r < rows; ++r) {
                const second_forward_job<T> j = forward_job(r, t);
                if (counts(r, t))
                    dispatch<second_reset_body<T>>(&j);
                else
                    std::fill_n(j.d_reset, u, T(0));
                if (a.d_before.data != nullptr) std::copy_n(j.d_reset, u, a.d_before.at(first + r, t) + u);
                if (a.d_reset.data != nullptr) std::copy_n(j.d_reset, u, a.d_reset.at(first + r, t));
            }
            for (std::int64_t at = 0; at < rows * u; ++at) given[at] = d_reset[at] * factor(at);
            multiply_all(work.forward(s, 1), static_cast<const T*>(given), rows, dr);
        }
        for (std::int64_t r = 0; r < rows; ++r) {
            const second_forward_job<T> j = forward_job(r, t);
            if (counts(r, t))
                dispatch<second_forward_body<Cell, T>>(&j);
            else
                std::copy_n(j.d_before, u, j.d_memory);
        }
        put_rows(t);
    }
    for (std::int64_t r = 0; r < rows && a.d_c.data != nullptr; ++r)
        std::copy_n(d_memory + (s.time * rows + r) * u, u, a.d_c.at(first + r, 0));
    if (a.d_z.data == nullptr) return;

    for (std::int64_t at = 0; at < rows * u; ++at) {
        dc[at] = start(a.last_cell, at);
        d_dc[at] = carried[at] = d_carried[at] = T(0);
    }
    // The derivative that passes a step without a product: that by the memory for cells whose
    // memory is h, otherwise the one that masks carry.
    T *const past = Cell::states == 1 ? dc : carried, *const d_past = Cell::states == 1 ? d_dc : d_carried;
    const auto backward_job = [&](std::int64_t r, std::int64_t t) {
        const std::int64_t b = first + r;
        second_backward_job<T> j{};
        j.kinds = s.kinds, j.units = u;
        j.gates = a.gates.at(b, t), j.now = memory.at(b, t), j.before = before(r, t);
        j.d_before = d_memory + (t * rows + r) * u, j.d_now = j.d_before + rows * u;
        j.d_z = d_z + Cell::columns * (t * rows + r) * u;
        j.dh = dh + r * u, j.d_dh = d_dh + r * u;
        j.dc = dc + r * u, j.d_dc = d_dc + r * u;
        j.dz = dz + gates * r * u, j.d_dz = d_dz + gates * r * u;
        j.last_dz = last_of(dz, dr, r), j.last_dd = last_of(d_dz, d_dr, r);
        j.d_columns = a.d_z.at(b, t);
        return j;
    };
    for (std::int64_t t = s.time - 1; t >= -1; --t) {
        if (t + 1 < s.time)
            multiply_all(work.backward(s, 0), static_cast<const T*>(dz), 2 * rows, dh);
        else
            std::fill_n(dh, 2 * rows * u, T(0));
        const bool seeded = t >= a.first_seed && t < a.last_seed && a.seeds.data != nullptr;
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t b = first + r;
            T *const dh_r = dh + r * u, *const d_dh_r = d_dh + r * u;
            for (std::int64_t n = 0; n < u; ++n) {
                const std::int64_t at = r * u + n;
                dh_r[n] = dh_r[n] * factor(at) + past[at] + (seeded ? a.seeds.at(b, t)[n] : T(0));
                d_dh_r[n] = d_dh_r[n] * factor(at) + d_past[at];
            }
            if (t < 0) {
                std::copy_n(d_dh_r, u, a.d_h0.at(b, 0));
                if (Cell::states == 2) std::copy_n(d_dc + r * u, u, a.d_c0.at(b, 0));
                continue;
            }
            const bool here = counts(r, t);
            for (std::int64_t n = 0; n < u; ++n) {
                past[r * u + n] = here && Cell::states == 2 ? T(0) : dh_r[n];
                d_past[r * u + n] = here && Cell::states == 2 ? T(0) : d_dh_r[n];
            }
            const second_backward_job<T> j = backward_job(r, t);
            if (here) {
                dispatch<second_backward_body<Cell, T, 0>>(&j);
            } else {
                std::fill_n(j.dz, gates * u, T(0));
                std::fill_n(j.d_dz, gates * u, T(0));
                std::fill_n(j.last_dz, u, T(0));
                std::fill_n(j.last_dd, u, T(0));
                std::fill_n(j.d_columns, Cell::columns * u, T(0));
            }
        }
        if constexpr (apart) {
            if (t < 0) continue;
            multiply_all(work.backward(s, 1), static_cast<const T*>(dr), 2 * rows, dh);
            for (std::int64_t r = 0; r < rows; ++r) {
                if (!counts(r, t)) continue;
                for (std::int64_t n = 0; n < u; ++n) {
                    const std::int64_t at = r * u + n;
                    dh[at] *= factor(at);
                    if (a.reset_seeds.data != nullptr) dh[at] += a.reset_seeds.at(first + r, t)[n];
                    d_dh[at] *= factor(at);
                }
                const second_backward_job<T> j = backward_job(r, t);
                dispatch<second_backward_body<Cell, T, 1>>(&j);
            }
        }
    }
}

} // namespace detail

template <class Cell, class T>
std::size_t recurrent_second_workspace_bytes(const recurrent_shape<T>& s, int threads) {
    detail::workspace_cutter cut(nullptr);
    const detail::second_workspace<Cell, T> work(cut, s, threads);
    return cut.used();
}

/// Straightforward where the first two passes are tuned: threads divide the records, and each takes
/// a few through the whole sequence. The workspace holds recurrent_second_workspace_bytes and is
/// aligned to 64 bytes.
template <class Cell, class T>
void recurrent_second(const recurrent_shape<T>& s, const recurrent_second_arguments<T>& a, void* workspace) {
    if (s.batch <= 0 || s.units <= 0) return;
    detail::workspace_cutter cut(workspace);
    const detail::second_workspace<Cell, T> work(cut, s, thread_count());
    std::fill_n(work.zeros, s.units, T(0));
    work.pack(s);
    detail::for_tasks(detail::divide_up(s.batch, detail::second_rows),
                      detail::worth_threads(s.template multiply_adds<Cell>()), [&](std::int64_t task, int thread) {
                          const std::int64_t first = task * detail::second_rows;
                          detail::recurrent_second_rows(s, a, work, first,
                                                        std::min(detail::second_rows, s.batch - first),
                                                        work.scratch + thread * work.task_elements);
                      });
}

} // namespace tapegraph::cpu
