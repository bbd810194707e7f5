#pragma once

#include <tapegraph/ops/recurrent/cpu_workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// The forward and backward passes over a sequence, for any cell (recurrent_cell.hpp):
///   z_t = x_t W + b + (h_{t-1} d) R
/// followed by the cell's function of z_t. x W + b of all steps and the weights' gradients are
/// products over all steps at once and not computed here.

namespace tapegraph::cpu {

/// The results of the forward pass. `h` and `c` may have step 0; they then end as the last state.
template <class T>
struct recurrent_results {
    step_rows<T> h;
    step_rows<T> c;     ///< for cells that have one; null data: not wanted
    step_rows<T> gates; ///< values that the cell keeps for derivatives; null data: not wanted
};

/// What the layout of R's panels depends on, besides its extents.
template <class Cell, class T>
int recurrent_row_vectors(const recurrent_shape<T>& s) {
    detail::workspace_cutter cut(nullptr);
    return detail::recurrent_workspace<Cell, T>(cut, s, false, thread_count()).row_vectors;
}
/// Bytes of R packed once for many forward passes.
template <class Cell, class T>
std::size_t recurrent_matrix_bytes(std::int64_t units) {
    return static_cast<std::size_t>(Cell::gates * recurrent_matrix<T>::elements(units, units)) * sizeof(T);
}
/// Packs R; `panels` is aligned to 64 bytes.
template <class Cell, class T>
void pack_recurrent_matrix(const recurrent_shape<T>& s, int row_vectors, T* panels) {
    const std::int64_t u = s.units;
    const auto gate_matrix = [&](std::int64_t gate) {
        return recurrent_matrix<T>{u, u, row_vectors, panels + gate * recurrent_matrix<T>::elements(u, u)};
    };
    const std::int64_t count = gate_matrix(0).layout().count();
    parallel_for(Cell::gates * count, detail::worth_threads(static_cast<double>(Cell::gates * u * u)),
                 [&](std::int64_t task) {
                     const std::int64_t gate = task / count;
                     gate_matrix(gate).pack(task % count, s.recurrent + gate * u, Cell::gates * u, false);
                 });
}

template <class Cell, class T>
std::size_t recurrent_workspace_bytes(const recurrent_shape<T>& s, bool backward, int threads) {
    detail::workspace_cutter cut(nullptr);
    const detail::recurrent_workspace<Cell, T> work(cut, s, backward, threads);
    return cut.used();
}

/// Runs the forward pass. `projected` is x W + b, in rows of `gates` columns. The workspace holds
/// recurrent_workspace_bytes and is aligned to 64 bytes.
template <class Cell, class T>
void recurrent_forward(const recurrent_shape<T>& s, step_rows<const T> projected, const recurrent_results<T>& out,
                       void* workspace) {
    if (s.batch <= 0 || s.units <= 0) return;
    detail::workspace_cutter cut(workspace);
    const detail::recurrent_workspace<Cell, T> work(cut, s, false, thread_count());
    const auto initial = work.initial(s);
    const std::int64_t u = s.units, h_row = s.h_row(), group = work.group;
    const step_rows<T> memory = Cell::states == 1       ? out.h
                                : out.c.data != nullptr ? out.c
                                                        : step_rows<T>{work.cells, u, 0};
    // Without storage of their own, gates overwrite the products, which a second phase would
    // overwrite in turn.
    const bool keeps = out.gates.data != nullptr, in_products = !keeps && !Cell::reset_before;
    const step_rows<T> gates = keeps ? out.gates : step_rows<T>{work.kept, Cell::kept * u, 0};
    const std::int64_t gate_elements = recurrent_matrix<T>::elements(u, u);
    const bool packed = s.panels != nullptr && s.row_vectors == work.row_vectors;
    T* const panels = packed ? const_cast<T*>(s.panels) : work.panels;
    const auto gate_matrix = [&](int gate) {
        return recurrent_matrix<T>{u, u, work.row_vectors, panels + gate * gate_elements};
    };
    const std::int64_t width = 2 * gate_matrix(0).lanes();
    recurrence_meetings meetings;
    round_trip meeting_time;
    const bool measures = round_trip::is_due();
    parallel_team(detail::worth_threads(s.template multiply_adds<Cell>()), [&](int thread, int threads) {
        const recurrence_part part(s.batch, u, work.share, work.division, thread, threads);
        if (!packed)
            detail::pack_part(part, width, [&](std::int64_t panel) {
                for (int gate = 0; gate < Cell::gates; ++gate)
                    gate_matrix(gate).pack(panel, s.recurrent + gate * u, Cell::gates * u, false);
            });
        T* const products = work.products + thread * work.product_elements;
        for (std::int64_t b = part.first_row; b < part.first_row + part.rows; ++b)
            for (std::int64_t n = part.first_unit; n < part.last_unit; ++n)
                work.rows[b * h_row + n] =
                    initial.h[b * initial.row + n] * (s.dropped != nullptr ? s.dropped[b * u + n] : T(1));
        meetings.all.wait(threads);
        if (measures) meeting_time.measure(thread, threads); // here: at the end one of them may still work
        const auto phase_of_step = [&](const recurrence_part& some, auto which, std::int64_t t) {
            constexpr int phase = decltype(which)::value;
            T* const now = work.rows + t % 2 * s.batch * h_row;
            T* const next = work.rows + (t + 1) % 2 * s.batch * h_row;
            const T* const given = phase == 0 ? now : work.reset;
            detail::for_pieces(
                some, work.piece_rows, group,
                [&](std::int64_t b, std::int64_t rows, std::int64_t unit, std::int64_t units) {
                    const int first = detail::first_gate<Cell>(phase), last = first + detail::gates_in<Cell>(phase);
                    detail::row_turns ahead{b, phase == 0 ? b + rows : b,
                                            (last - first) * detail::divide_up(units, width)};
                    for (int gate = first; gate < last; ++gate)
                        for (std::int64_t n = 0; n < units; n += width) {
                            ahead.next([&](std::int64_t r) __attribute__((always_inline)) {
                                detail::prefetch_gates<false>(projected.at(r, t) + unit, Cell::gates, u, units);
                                if (!keeps) return;
                                detail::prefetch_gates<true>(gates.at(r, t) + unit, Cell::kept, u, units);
                                detail::prefetch_gates<true>(out.h.at(r, t) + unit, 1, u, units);
                                if (Cell::states == 2)
                                    detail::prefetch_gates<true>(memory.at(r, t) + unit, 1, u, units);
                            });
                            gate_matrix(gate).multiply((unit + n) / width, given + b * h_row, h_row, rows,
                                                       products + gate * group + n, work.product_row);
                        }
                    recurrent_forward_job<T> j{};
                    j.kinds = s.kinds;
                    j.rows = rows, j.units = units;
                    j.z = products, j.z_row = work.product_row, j.z_gate = group;
                    j.x = projected.at(b, t) + unit, j.x_row = projected.record, j.x_gate = u;
                    j.bias = s.bias != nullptr ? s.bias + unit : work.zeros;
                    if (in_products)
                        j.gates = products, j.gates_row = j.z_row, j.gates_gate = group;
                    else
                        j.gates = gates.at(b, t) + unit, j.gates_row = gates.record, j.gates_gate = u;
                    j.memory_before = t == 0 ? initial.memory() + b * initial.row + unit : memory.at(b, t - 1) + unit;
                    j.memory_before_row = t == 0 ? initial.row : memory.record;
                    j.h_before = t == 0 ? initial.h + b * initial.row + unit : out.h.at(b, t - 1) + unit;
                    j.h_before_row = t == 0 ? initial.row : out.h.record;
                    j.memory = memory.at(b, t) + unit, j.memory_row = memory.record;
                    j.h = out.h.at(b, t) + unit, j.h_row = out.h.record;
                    j.next = next + b * h_row + unit, j.next_row = h_row;
                    j.given = now + b * h_row + unit, j.given_row = h_row;
                    j.reset = work.reset + b * h_row + unit, j.reset_row = h_row;
                    if (s.mask != nullptr) j.mask = s.mask + b * s.time + t, j.mask_row = s.time;
                    if (s.dropped != nullptr) j.dropped = s.dropped + b * u + unit, j.dropped_row = u;
                    detail::dispatch_cell<recurrent_forward_body, Cell, T, phase>(j);
                });
            if (some.row_part < some.row_parts) meetings.parts[some.row_part].wait(some.members);
        };
        detail::for_sequences(part, work.piece_rows, [&](const recurrence_part& some) {
            for (std::int64_t t = 0; t < s.time; ++t)
                detail::for_phases<Cell>([&](auto phase) { phase_of_step(some, phase, t); });
        });
    });
}

/// The operands and results of the backward pass.
template <class T>
struct recurrent_gradients {
    step_rows<const T> h, c, gates; ///< results of the forward pass; c for cells that have one
    step_rows<const T> seeds;       ///< incoming dL/dh_t, for steps [first_seed, last_seed)
    std::int64_t first_seed = 0, last_seed = 0;
    step_rows<const T> reset_seeds; ///< dL/d(r h'), for cells with reset_before, for all steps; or null data
    step_rows<const T> last_cell;   ///< dL/dc after the last step, or null data
    step_rows<T> dz;                ///< rows of `columns` columns
    step_rows<T> dh0, dc0;          ///< step 0; null data: not wanted
};

template <class Cell, class T>
void recurrent_backward(const recurrent_shape<T>& s, const recurrent_gradients<T>& g, void* workspace) {
    if (s.batch <= 0 || s.units <= 0) return;
    detail::workspace_cutter cut(workspace);
    const detail::recurrent_workspace<Cell, T> work(cut, s, true, thread_count());
    const auto initial = work.initial(s);
    const std::int64_t u = s.units, z_row = s.template z_row<Cell>(), group = work.group;
    const step_rows<const T> memory = Cell::states == 2 ? g.c : g.h;
    const bool carries = Cell::states == 2 && s.mask != nullptr;
    const std::int64_t width = 2 * work.transposed(s, 0).lanes();
    recurrence_meetings meetings;
    round_trip meeting_time;
    const bool measures = round_trip::is_due();
    parallel_team(detail::worth_threads(s.template multiply_adds<Cell>()), [&](int thread, int threads) {
        const recurrence_part part(s.batch, u, work.share, work.division, thread, threads);
        detail::pack_part(part, width, [&](std::int64_t panel) {
            detail::for_phases<Cell>([&](auto phase) {
                work.transposed(s, phase).pack(panel, s.recurrent + detail::first_gate<Cell>(phase) * u,
                                               Cell::gates * u, true);
            });
        });
        T* const products = work.products + thread * work.product_elements;
        for (std::int64_t b = part.first_row; b < part.first_row + part.rows; ++b)
            for (std::int64_t n = part.first_unit; n < part.last_unit; ++n) {
                work.cells[b * u + n] = g.last_cell.data != nullptr ? g.last_cell.at(b, 0)[n] : T(0);
                if (carries) work.carried[b * u + n] = T(0);
            }
        meetings.all.wait(threads);
        if (measures) meeting_time.measure(thread, threads); // here: at the end one of them may still work
        const auto phase_of_step = [&](const recurrence_part& some, auto which, std::int64_t t) {
            constexpr int phase = decltype(which)::value;
            const recurrent_matrix<T> matrix = work.transposed(s, phase);
            T* const later = work.rows + (t + 2) % 2 * s.batch * z_row;
            T* const next = work.rows + (t + 1) % 2 * s.batch * z_row;
            const T* const given = (phase == 0 ? later : next) + detail::first_gate<Cell>(phase) * u;
            detail::for_pieces(
                some, work.piece_rows, group,
                [&](std::int64_t b, std::int64_t rows, std::int64_t unit, std::int64_t units) {
                    detail::row_turns ahead{b, phase == 0 && t >= 0 ? b + rows : b, detail::divide_up(units, width)};
                    if (phase == 1 || t + 1 < s.time)
                        for (std::int64_t n = 0; n < units; n += width) {
                            ahead.next([&](std::int64_t r) __attribute__((always_inline)) {
                                detail::prefetch_gates<false>(g.gates.at(r, t) + unit, Cell::kept, u, units);
                                detail::prefetch_gates<true>(g.dz.at(r, t) + unit, Cell::columns, u, units);
                                // Step t + 1 has already read the memory after this step.
                                if (t > 0) detail::prefetch_gates<false>(memory.at(r, t - 1) + unit, 1, u, units);
                            });
                            matrix.multiply((unit + n) / width, given + b * z_row, z_row, rows, products + n, group);
                        }
                    else
                        std::fill_n(products, rows * group, T(0));
                    const step_rows<const T>& seeds = phase == 0 ? g.seeds : g.reset_seeds;
                    const bool seeded = phase == 0 ? t >= g.first_seed && t < g.last_seed : seeds.data != nullptr;
                    const T* const seed = seeded ? seeds.at(b, t) + unit : nullptr;
                    if (t < 0) {
                        const T* const past = Cell::states == 1 ? work.cells : carries ? work.carried : nullptr;
                        for (std::int64_t r = 0; r < rows; ++r)
                            for (std::int64_t n = 0; n < units; ++n) {
                                const std::int64_t at = (b + r) * u + unit + n;
                                T dh = products[r * group + n];
                                if (s.dropped != nullptr) dh *= s.dropped[at];
                                if (seed != nullptr) dh += seed[r * seeds.record + n];
                                if (past != nullptr) dh += past[at];
                                g.dh0.at(b + r, 0)[unit + n] = dh;
                                if constexpr (Cell::states == 2) g.dc0.at(b + r, 0)[unit + n] = work.cells[at];
                            }
                        return;
                    }
                    recurrent_backward_job<T> j{};
                    j.kinds = s.kinds;
                    j.rows = rows, j.units = units;
                    j.dh = products, j.dh_row = group;
                    j.seed = seed, j.seed_row = seeds.record;
                    j.passed = work.cells + b * u + unit, j.passed_row = u;
                    j.gates = g.gates.at(b, t) + unit, j.gates_row = g.gates.record, j.gates_gate = u;
                    j.now = memory.at(b, t) + unit, j.now_row = memory.record;
                    j.before = t == 0 ? initial.memory() + b * initial.row + unit : memory.at(b, t - 1) + unit;
                    j.before_row = t == 0 ? initial.row : memory.record;
                    j.dz = g.dz.at(b, t) + unit, j.dz_row = g.dz.record, j.dz_gate = u;
                    j.next = next + b * z_row + unit, j.next_row = z_row, j.next_gate = u;
                    if (s.mask != nullptr) j.mask = s.mask + b * s.time + t, j.mask_row = s.time;
                    if (carries) j.carried = work.carried + b * u + unit, j.carried_row = u;
                    if (s.dropped != nullptr) j.dropped = s.dropped + b * u + unit, j.dropped_row = u;
                    detail::dispatch_cell<recurrent_backward_body, Cell, T, phase>(j);
                });
            if (some.row_part < some.row_parts) meetings.parts[some.row_part].wait(some.members);
        };
        detail::for_sequences(part, work.piece_rows, [&](const recurrence_part& some) {
            for (std::int64_t t = s.time - 1; t >= 0; --t)
                detail::for_phases<Cell>([&](auto phase) { phase_of_step(some, phase, t); });
            if (g.dh0.data != nullptr) phase_of_step(some, std::integral_constant<int, 0>{}, -1); // the initial state
        });
    });
}

} // namespace tapegraph::cpu
