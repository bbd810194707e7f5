#pragma once

#include <tapegraph/ops/recurrent/cpu_recurrence.hpp>
#include <tapegraph/ops/recurrent/cpu_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// What both passes of a recurrent layer share: its sizes, the memory they work in, and the order
/// in which a thread goes through its rows and units.

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

} // namespace tapegraph::cpu
