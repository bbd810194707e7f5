#pragma once

#include <tapegraph/ops/recurrent/cpu_recurrence.hpp>
#include <tapegraph/ops/recurrent/cpu_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// The forward and backward passes over a sequence, for any cell (recurrent_cell.hpp):
///   z_t = x_t W + b + (h_{t-1} d) R
/// followed by the cell's function of z_t. x W + b of all steps and the weights' gradients are
/// products over all steps at once and not computed here.

namespace tapegraph::cpu {

/// Rows of `units` elements, or of some columns of them, one per record of a batch and step.
template <class T>
struct step_rows {
    T* data = nullptr;
    std::int64_t record = 0, step = 0; ///< elements from one record and one step to the next
    T* at(std::int64_t b, std::int64_t t) const { return data + b * record + t * step; }
};

template <class T>
struct recurrent_shape {
    std::int64_t batch, time, units;
    recurrent_activations kinds;
    const T* recurrent;         ///< R [units, gates units]
    const T* bias = nullptr;    ///< [units] bias of the candidate's product, for cells that have one; null: zeros
    const T *h0, *c0;           ///< [batch, units]; null: zeros
    const bool* mask = nullptr; ///< [batch, time]: false keeps the state
    const T* dropped = nullptr; ///< d [batch, units], or none
    const T* panels = nullptr;  ///< R from pack_recurrent_matrix for `row_vectors`, or null
    int row_vectors = 0;

    template <class Cell>
    double multiply_adds() const {
        return static_cast<double>(Cell::gates) * static_cast<double>(batch) * static_cast<double>(time) *
               static_cast<double>(units) * static_cast<double>(units);
    }
    // Rows a power of two apart would share a few cache sets.
    template <class Cell>
    std::int64_t z_row() const {
        return Cell::gates * units + 16;
    }
    std::int64_t h_row() const { return units + 16; }
};

namespace detail {

/// The products of a step come in one phase, or in two, of which the second is the last gate's.
template <class Cell>
inline constexpr int recurrent_phases = Cell::reset_before ? 2 : 1;
template <class Cell>
constexpr int first_gate(int phase) {
    return phase == 0 ? 0 : Cell::gates - 1;
}
template <class Cell>
constexpr int gates_in(int phase) {
    return phase == 1 ? 1 : Cell::gates - (recurrent_phases<Cell> - 1);
}
template <class Cell, class F>
void for_phases(const F& f) {
    f(std::integral_constant<int, 0>{});
    if constexpr (recurrent_phases<Cell> == 2) f(std::integral_constant<int, 1>{});
}

template <class Cell, class T>
struct recurrent_workspace {
    T *panels, *rows, *reset, *cells, *carried, *kept, *zeros, *products;
    std::int64_t share;             // members have multiples of so many units
    std::int64_t piece_rows, group; // rows and units whose products are computed before they are used
    std::int64_t product_row, product_elements;
    int row_vectors;
    recurrence_division division;

    recurrent_workspace(workspace_cutter& cut, const recurrent_shape<T>& s, bool backward, int threads) {
        const std::int64_t lanes = recurrent_matrix<T>::most_lanes, states = s.batch * s.units;
        division = {static_cast<std::size_t>(Cell::gates * recurrent_matrix<T>::elements(s.units, s.units)) * sizeof(T),
                    round_trip::seconds()};
        // The sums of a row wait for one another unless there are eight vectors of them. With four
        // vectors two threads would share 128 units, and reading their columns takes longer still.
        const bool narrow = threads > 1 && worth_threads(s.template multiply_adds<Cell>()) && division.pays(1) &&
                            s.units <= (threads - 1) * std::int64_t{8} * active_tile_kernels<T>().lanes;
        row_vectors = s.batch > 1 ? 0 : narrow ? 2 : 4;
        const std::int64_t panel = std::int64_t{2} * row_vectors * active_tile_kernels<T>().lanes; // of one row
        share = std::max<std::int64_t>(recurrent_share, row_vectors == 0 ? lanes / 2 : panel);
        group = std::max(share, recurrent_group);
        piece_rows = division.bytes <= cached_matrix ? recurrent_rows : recurrent_rows_of_large;
        panels = cut.take<T>(Cell::gates * recurrent_matrix<T>::elements(s.units, s.units));
        rows = cut.take<T>(2 * s.batch * (backward ? s.template z_row<Cell>() : s.h_row()));
        reset = cut.take<T>(Cell::reset_before && !backward ? s.batch * s.h_row() : 0);
        cells = cut.take<T>(backward || Cell::states == 2 ? states : 0);
        // With room for mask, initial state and bias, whose addresses are unknown in planning.
        carried = cut.take<T>(backward && Cell::states == 2 ? states : 0);
        kept = cut.take<T>(Cell::reset_before && !backward ? Cell::kept * states : 0); // from one phase to the next
        zeros = cut.take<T>(s.units);
        // Values kept by a cell may take the place of the products, and more. For one row, reserves
        // as much as the widest group takes: the latency between threads is unknown when a program
        // is planned.
        product_row =
            (backward ? 1 : std::max(Cell::gates, Cell::kept)) * std::max(group, s.batch == 1 ? 2 * lanes : 0);
        product_elements = std::min(piece_rows, s.batch) * product_row;
        products = cut.take<T>(threads * product_elements);
        if (zeros != nullptr) std::fill_n(zeros, s.units, T(0)); // otherwise sizes are only counted
    }

    struct initial_state {
        const T *h, *c;
        std::int64_t row;
        const T* memory() const { return Cell::states == 2 ? c : h; }
    };
    initial_state initial(const recurrent_shape<T>& s) const {
        if (s.h0 != nullptr) return {s.h0, s.c0, s.units};
        return {zeros, zeros, 0};
    }
    /// The rows of R^T for one phase.
    recurrent_matrix<T> transposed(const recurrent_shape<T>& s, int phase) const {
        return {s.units, gates_in<Cell>(phase) * s.units, row_vectors,
                panels + first_gate<Cell>(phase) * recurrent_matrix<T>::elements(s.units, s.units)};
    }
};

/// The panels of a member's units, divided among the threads with the same units.
template <class F>
void pack_part(const recurrence_part& part, std::int64_t width, const F& pack) {
    std::int64_t turn = 0;
    for (std::int64_t unit = part.first_unit; unit < part.last_unit; unit += width, ++turn)
        if (turn % part.row_parts == part.row_part) pack(unit / width);
}

/// Prefetches a row's gates of some units: rows of one step lie pages apart, which the processor's
/// own prefetching does not follow. `Write`: they will be written.
template <bool Write, class T>
TG_INLINE void prefetch_gates(const T* row, std::int64_t gates, std::int64_t apart, std::int64_t units) {
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t g = 0; g < gates; ++g)
        for (std::int64_t n = 0; n < units; n += line) __builtin_prefetch(row + g * apart + n, Write ? 1 : 0, 2);
}

/// Rows [row, end), divided over this many turns: a few are prefetched at each product, since many
/// requests at once would delay its operands.
struct row_turns {
    std::int64_t row, end, turns;
    template <class F>
    TG_INLINE void next(const F& f) {
        for (const std::int64_t last = end - (end - row) * (turns - 1) / turns; row < last; ++row) f(row);
        --turns;
    }
};

/// Calls f(part) for at most `most_rows` rows of a thread's part at a time, which go through all
/// steps before the next rows begin: their state stays in the caches, and the steps of a row are
/// contiguous in memory. Members that synchronise after every step take all rows.
template <class F>
void for_sequences(const recurrence_part& part, std::int64_t most_rows, const F& f) {
    recurrence_part some = part;
    const std::int64_t end = part.first_row + part.rows;
    some.rows = part.members > 1 ? part.rows : equal_part(part.rows, most_rows);
    for (; some.first_row < end; some.first_row += some.rows) {
        some.rows = std::min(some.rows, end - some.first_row);
        f(some);
    }
}

/// Calls f(first row, rows, first unit, units) for the pieces whose products a thread computes at once.
template <class F>
void for_pieces(const recurrence_part& part, std::int64_t rows, std::int64_t group, const F& f) {
    const std::int64_t end = part.first_row + part.rows;
    for (std::int64_t b = part.first_row; b < end; b += rows)
        for (std::int64_t unit = part.first_unit; unit < part.last_unit; unit += group)
            f(b, std::min(rows, end - b), unit, std::min(group, part.last_unit - unit));
}

template <template <class, class, bool, int> class Body, class Cell, class T, int Phase, class Job>
void dispatch_cell(const Job& job) {
    if (job.kinds.relu || job.kinds.hard)
        dispatch_fused<Body<Cell, T, false, Phase>>(&job);
    else
        dispatch_fused<Body<Cell, T, true, Phase>>(&job);
}

} // namespace detail

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
