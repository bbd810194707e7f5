#pragma once

#include <tapegraph/cpu/lstm_gates.hpp>
#include <tapegraph/cpu/recurrence.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// The recurrence of an LSTM, forward and backward (Hochreiter and Schmidhuber 1997, with forget gates). With z the
/// arguments of the gates in the order i, f, g, o,
///   z_t = x_t W + b + (h_{t-1} d) R,  c_t = f c_{t-1} + i g,  h_t = o tanh(c_t).
/// x W + b of all steps and the weights' gradients are products over all steps at once and not computed here.

namespace tapegraph::cpu {

/// One row of `units` (or 4 units) elements for each record of a batch and each step.
template <class T>
struct step_rows {
    T* data = nullptr;
    std::int64_t record = 0, step = 0; ///< elements from one record and one step to the next
    T* at(std::int64_t b, std::int64_t t) const { return data + b * record + t * step; }
};

template <class T>
struct lstm_shape {
    std::int64_t batch, time, units;
    lstm_activations kinds;
    const T* recurrent;         ///< R [units, 4 units]
    const T *h0, *c0;           ///< [batch, units]; null: zeros
    const bool* mask = nullptr; ///< [batch, time]: false leaves the state as it is
    const T* dropped = nullptr; ///< d [batch, units], or none

    double multiply_adds() const { return 4.0 * static_cast<double>(batch) * time * units * units; }
    std::int64_t z_row() const { return 4 * units + 16; } // rows a power of two apart would share a few cache sets
    std::int64_t h_row() const { return units + 16; }
};

namespace detail {

template <class T>
struct lstm_workspace {
    T *panels, *rows, *cells, *carried, *zeros, *products;
    std::int64_t group, product_elements;

    lstm_workspace(workspace_cutter& cut, const lstm_shape<T>& s, bool backward, int threads) {
        const bool one_row = s.batch == 1;
        const std::int64_t lanes = recurrent_matrix<T>::most_lanes;
        group = std::max<std::int64_t>(recurrent_group, one_row ? 2 * lanes : lanes / 2);
        panels = cut.take<T>(backward ? recurrent_matrix<T>::elements(s.units, 4 * s.units)
                                      : 4 * recurrent_matrix<T>::elements(s.units, s.units));
        rows = cut.take<T>(2 * s.batch * (backward ? s.z_row() : s.h_row()));
        cells = cut.take<T>(s.batch * s.units);
        // With or without a mask and an initial state: a program is planned while their addresses are still unknown.
        carried = cut.take<T>(backward ? s.batch * s.units : 0);
        zeros = cut.take<T>(s.units);
        product_elements = std::min(recurrent_rows, s.batch) * (backward ? 1 : 4) * group;
        products = cut.take<T>(threads * product_elements);
    }

    struct initial_state {
        const T *h, *c;
        std::int64_t row;
    };
    initial_state initial(const lstm_shape<T>& s) const {
        if (s.c0 != nullptr) return {s.h0, s.c0, s.units};
        std::fill_n(zeros, s.units, T(0));
        return {zeros, zeros, 0};
    }
};

/// The panels of a member's units, shared out among the threads with the same units.
template <class F>
void pack_part(const recurrence_part& part, std::int64_t width, const F& pack) {
    std::int64_t turn = 0;
    for (std::int64_t unit = part.first_unit; unit < part.last_unit; unit += width, ++turn)
        if (turn % part.row_parts == part.row_part) pack(unit / width);
}

/// Asks for a row's gates of some units ahead of their use: rows of one step lie pages apart, where the processor does not
/// see them coming. `Write`: they will be written.
template <bool Write, class T>
TG_INLINE void prefetch_gates(const T* row, std::int64_t gates, std::int64_t apart, std::int64_t units) {
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t g = 0; g < gates; ++g)
        for (std::int64_t n = 0; n < units; n += line) __builtin_prefetch(row + g * apart + n, Write ? 1 : 0, 2);
}

} // namespace detail

/// What the forward pass writes. `h` and `c` may have step 0: then they end as the last state.
template <class T>
struct lstm_results {
    step_rows<T> h;
    step_rows<T> c;     ///< null data: not wanted
    step_rows<T> gates; ///< after their functions; null data: not wanted
};

template <class T>
std::size_t lstm_workspace_bytes(const lstm_shape<T>& s, bool backward, int threads) {
    detail::workspace_cutter cut(nullptr);
    const detail::lstm_workspace<T> work(cut, s, backward, threads);
    return cut.used();
}

/// `projected`: x W + b, rows of 4 units. The workspace holds lstm_workspace_bytes and is aligned to 64 bytes.
template <class T>
void lstm_forward(const lstm_shape<T>& s, step_rows<const T> projected, const lstm_results<T>& out, void* workspace) {
    if (s.batch <= 0 || s.units <= 0) return;
    detail::workspace_cutter cut(workspace);
    const detail::lstm_workspace<T> work(cut, s, false, thread_count());
    const auto initial = work.initial(s);
    const std::int64_t u = s.units, h_row = s.h_row(), group = work.group;
    const step_rows<T> c = out.c.data != nullptr ? out.c : step_rows<T>{work.cells, u, 0};
    const std::int64_t gate_elements = recurrent_matrix<T>::elements(u, u);
    const auto gate_matrix = [&](int gate) {
        return recurrent_matrix<T>{u, u, s.batch == 1, work.panels + gate * gate_elements};
    };
    const std::int64_t width = 2 * gate_matrix(0).lanes();
    recurrence_meetings meetings;
    parallel_team(detail::worth_threads(s.multiply_adds()), [&](int thread, int threads) {
        const recurrence_part part(s.batch, u, group, static_cast<std::size_t>(4 * gate_elements) * sizeof(T), thread,
                                   threads);
        detail::pack_part(part, width, [&](std::int64_t panel) {
            for (int gate = 0; gate < 4; ++gate) gate_matrix(gate).pack(panel, s.recurrent + gate * u, 4 * u, false);
        });
        T* const products = work.products + thread * work.product_elements;
        for (std::int64_t b = part.first_row; b < part.first_row + part.rows; ++b)
            for (std::int64_t n = part.first_unit; n < part.last_unit; ++n)
                work.rows[b * h_row + n] =
                    initial.h[b * initial.row + n] * (s.dropped != nullptr ? s.dropped[b * u + n] : T(1));
        meetings.all.wait(threads);
        for (std::int64_t t = 0; t < s.time; ++t) {
            const T* const now = work.rows + t % 2 * s.batch * h_row;
            T* const next = work.rows + (t + 1) % 2 * s.batch * h_row;
            for (std::int64_t b = part.first_row; b < part.first_row + part.rows; b += detail::recurrent_rows) {
                const std::int64_t rows = std::min(detail::recurrent_rows, part.first_row + part.rows - b);
                for (std::int64_t unit = part.first_unit; unit < part.last_unit; unit += group) {
                    const std::int64_t units = std::min(group, part.last_unit - unit);
                    for (std::int64_t r = b; r < b + rows; ++r) {
                        detail::prefetch_gates<false>(projected.at(r, t) + unit, 4, u, units);
                        if (out.gates.data != nullptr)
                            detail::prefetch_gates<true>(out.gates.at(r, t) + unit, 4, u, units);
                    }
                    for (int gate = 0; gate < 4; ++gate)
                        for (std::int64_t n = 0; n < units; n += width)
                            gate_matrix(gate).multiply((unit + n) / width, now + b * h_row, h_row, rows,
                                                       products + gate * group + n, 4 * group);
                    lstm_forward_job<T> j{};
                    j.kinds = s.kinds;
                    j.rows = rows, j.units = units;
                    j.z = products, j.z_row = 4 * group, j.z_gate = group;
                    j.x = projected.at(b, t) + unit, j.x_row = projected.record, j.x_gate = u;
                    j.gates = j.z, j.gates_row = j.z_row, j.gates_gate = j.z_gate;
                    if (out.gates.data != nullptr)
                        j.gates = out.gates.at(b, t) + unit, j.gates_row = out.gates.record, j.gates_gate = u;
                    j.c_before = t == 0 ? initial.c + b * initial.row + unit : c.at(b, t - 1) + unit;
                    j.c_before_row = t == 0 ? initial.row : c.record;
                    j.h_before = t == 0 ? initial.h + b * initial.row + unit : out.h.at(b, t - 1) + unit;
                    j.h_before_row = t == 0 ? initial.row : out.h.record;
                    j.c = c.at(b, t) + unit, j.c_row = c.record;
                    j.h = out.h.at(b, t) + unit, j.h_row = out.h.record;
                    j.next = next + b * h_row + unit, j.next_row = h_row;
                    if (s.mask != nullptr) j.mask = s.mask + b * s.time + t, j.mask_row = s.time;
                    if (s.dropped != nullptr) j.dropped = s.dropped + b * u + unit, j.dropped_row = u;
                    if (s.kinds.relu || s.kinds.hard)
                        detail::dispatch_fused<lstm_forward_body<T, false>>(
                            static_cast<const lstm_forward_job<T>*>(&j));
                    else
                        detail::dispatch_fused<lstm_forward_body<T, true>>(static_cast<const lstm_forward_job<T>*>(&j));
                }
            }
            if (part.row_part < part.row_parts) meetings.parts[part.row_part].wait(part.members);
        }
    });
}

/// What the backward pass reads and writes.
template <class T>
struct lstm_gradients {
    step_rows<const T> c, gates; ///< as the forward pass left them
    step_rows<const T> seeds;    ///< dL/dh_t from outside, for steps [first_seed, last_seed)
    std::int64_t first_seed = 0, last_seed = 0;
    step_rows<const T> last_cell; ///< dL/dc after the last step, or null data
    step_rows<T> dz;
    step_rows<T> dh0, dc0; ///< step 0; null data: not wanted
};

template <class T>
void lstm_backward(const lstm_shape<T>& s, const lstm_gradients<T>& g, void* workspace) {
    if (s.batch <= 0 || s.units <= 0) return;
    detail::workspace_cutter cut(workspace);
    const detail::lstm_workspace<T> work(cut, s, true, thread_count());
    const auto initial = work.initial(s);
    const std::int64_t u = s.units, z_row = s.z_row(), group = work.group;
    const recurrent_matrix<T> matrix{u, 4 * u, s.batch == 1, work.panels};
    const std::int64_t width = 2 * matrix.lanes();
    recurrence_meetings meetings;
    parallel_team(detail::worth_threads(s.multiply_adds()), [&](int thread, int threads) {
        const recurrence_part part(s.batch, u, group,
                                   static_cast<std::size_t>(recurrent_matrix<T>::elements(u, 4 * u)) * sizeof(T),
                                   thread, threads);
        detail::pack_part(part, width, [&](std::int64_t panel) { matrix.pack(panel, s.recurrent, 4 * u, true); });
        T* const products = work.products + thread * work.product_elements;
        const std::int64_t end_row = part.first_row + part.rows;
        for (std::int64_t b = part.first_row; b < end_row; ++b)
            for (std::int64_t n = part.first_unit; n < part.last_unit; ++n) {
                work.cells[b * u + n] = g.last_cell.data != nullptr ? g.last_cell.at(b, 0)[n] : T(0);
                if (s.mask != nullptr) work.carried[b * u + n] = T(0);
            }
        meetings.all.wait(threads);
        // Step -1 is the initial state.
        for (std::int64_t t = s.time - 1; t >= (g.dh0.data != nullptr ? -1 : 0); --t) {
            const T* const later = work.rows + (t + 2) % 2 * s.batch * z_row;
            T* const next = work.rows + (t + 1) % 2 * s.batch * z_row;
            for (std::int64_t b = part.first_row; b < end_row; b += detail::recurrent_rows) {
                const std::int64_t rows = std::min(detail::recurrent_rows, end_row - b);
                for (std::int64_t unit = part.first_unit; unit < part.last_unit; unit += group) {
                    const std::int64_t units = std::min(group, part.last_unit - unit);
                    for (std::int64_t r = b; r < b + rows && t >= 0; ++r) {
                        detail::prefetch_gates<false>(g.gates.at(r, t) + unit, 4, u, units);
                        detail::prefetch_gates<false>(g.c.at(r, t) + unit, 1, u, units);
                        detail::prefetch_gates<true>(g.dz.at(r, t) + unit, 4, u, units);
                    }
                    if (t + 1 < s.time)
                        for (std::int64_t n = 0; n < units; n += width)
                            matrix.multiply((unit + n) / width, later + b * z_row, z_row, rows, products + n, group);
                    else
                        std::fill_n(products, rows * group, T(0));
                    const bool seeded = t >= g.first_seed && t < g.last_seed;
                    const T* const seed = seeded ? g.seeds.at(b, t) + unit : nullptr;
                    if (t < 0) {
                        for (std::int64_t r = 0; r < rows; ++r)
                            for (std::int64_t n = 0; n < units; ++n) {
                                const std::int64_t at = (b + r) * u + unit + n;
                                T dh = products[r * group + n];
                                if (s.dropped != nullptr) dh *= s.dropped[at];
                                if (seed != nullptr) dh += seed[r * g.seeds.record + n];
                                if (s.mask != nullptr) dh += work.carried[at];
                                g.dh0.at(b + r, 0)[unit + n] = dh;
                                g.dc0.at(b + r, 0)[unit + n] = work.cells[at];
                            }
                        continue;
                    }
                    lstm_backward_job<T> j{};
                    j.kinds = s.kinds;
                    j.rows = rows, j.units = units;
                    j.dh = products, j.dh_row = group;
                    j.seed = seed, j.seed_row = g.seeds.record;
                    j.dc = work.cells + b * u + unit, j.dc_row = u;
                    j.gates = g.gates.at(b, t) + unit, j.gates_row = g.gates.record, j.gates_gate = u;
                    j.c = g.c.at(b, t) + unit, j.c_row = g.c.record;
                    j.c_before = t == 0 ? initial.c + b * initial.row + unit : g.c.at(b, t - 1) + unit;
                    j.c_before_row = t == 0 ? initial.row : g.c.record;
                    j.dz = g.dz.at(b, t) + unit, j.dz_row = g.dz.record, j.dz_gate = u;
                    j.next = next + b * z_row + unit, j.next_row = z_row, j.next_gate = u;
                    if (s.mask != nullptr) {
                        j.mask = s.mask + b * s.time + t, j.mask_row = s.time;
                        j.carried = work.carried + b * u + unit, j.carried_row = u;
                    }
                    if (s.dropped != nullptr) j.dropped = s.dropped + b * u + unit, j.dropped_row = u;
                    if (s.kinds.relu || s.kinds.hard)
                        detail::dispatch_fused<lstm_backward_body<T, false>>(
                            static_cast<const lstm_backward_job<T>*>(&j));
                    else
                        detail::dispatch_fused<lstm_backward_body<T, true>>(
                            static_cast<const lstm_backward_job<T>*>(&j));
                }
            }
            if (part.row_part < part.row_parts) meetings.parts[part.row_part].wait(part.members);
        }
    });
}

} // namespace tapegraph::cpu
