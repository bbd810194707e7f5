#pragma once

#include <tapegraph/cpu/gemm_kernel.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/round_trip.hpp>
#include <tapegraph/cpu/tasks.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

/// Shared parts of recurrent kernels. One team of threads runs the whole sequence: groups split the
/// batch, and members of one group split the units and synchronise after every step. The recurrent
/// matrix is packed once, a member's part of it stays in its cache, and the products of one step
/// are used before they leave L2.

namespace tapegraph::cpu {

/// A barrier for the members of a group. Waiting spins for some microseconds, then sleeps.
class alignas(64) barrier {
public:
    void wait(int members) {
        if (members < 2) return;
        const unsigned round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1);
            round_.notify_all();
            return;
        }
        const auto met = [&] { return round_.load(std::memory_order_acquire) != round; };
        if (detail::patience::lasts(1e-4, met)) return;
        round_.wait(round, std::memory_order_acquire);
    }

private:
    std::atomic<int> arrived_{0};
    std::atomic<unsigned> round_{0};
};

namespace detail {

// Rows and units whose products are kept until they are used, while they are in the nearest caches.
// A matrix that fills L2 or more is read for more rows at a time, whose products take a few hundred
// kilobytes at most.
inline constexpr std::int64_t recurrent_rows = 16, recurrent_rows_of_large = 96, recurrent_group = 128;
inline constexpr std::size_t cached_matrix = std::size_t{512} << 10; // bytes
// Members have multiples of so many units, unless one panel is wider.
inline constexpr std::int64_t recurrent_share = 64;

template <class Isa, class T>
const auto& wide_row_table() {
    static constexpr typename tile_kernels<T>::function table[3] = {
        &fused<Isa>::template run<T, 1, 2>, &fused<Isa>::template run<T, 1, 4>, &fused<Isa>::template run<T, 1, 8>};
    return table;
}

/// The kernel for one row times 2, 4 or 8 vectors.
template <class T>
typename tile_kernels<T>::function wide_row_kernel(int vectors) {
    const int which = vectors / 4; // 0, 1, 2
#if defined(__x86_64__)
    switch (active_instruction_set()) {
    case instruction_set::avx512: return wide_row_table<avx512, T>()[which];
    case instruction_set::avx2: return wide_row_table<avx2, T>()[which];
    case instruction_set::baseline: break;
    }
#endif
    return wide_row_table<baseline, T>()[which];
}

} // namespace detail

/// A packed matrix [k, n], and products of rows with its panels. Every element is one sum in the
/// order of k, so its bits depend on nothing else.
template <class T>
struct recurrent_matrix {
    std::int64_t n, k;
    int row_vectors; ///< where all products have one row, the vectors of half a panel; else 0
    T* packed;

    static constexpr int most_lanes = 4 * tile_kernels<T>::most_lanes;
    static std::int64_t elements(std::int64_t n, std::int64_t k) { return panel_layout::padded(n, most_lanes) * k; }

    int lanes() const { return std::max(row_vectors, 1) * active_tile_kernels<T>().lanes; }
    panel_layout layout() const { return {n, lanes()}; }

    void pack(std::int64_t panel, const T* from, std::int64_t from_row, bool transposed) const {
        pack_panel(packed + layout().offset(panel, k), layout(), panel, from, from_row, transposed, k);
    }
    /// out[r, j] = sum over k of a[r, k] times column j of the panel
    void multiply(std::int64_t panel, const T* a, std::int64_t a_row, std::int64_t rows, T* out,
                  std::int64_t out_row) const {
        const panel_layout l = layout();
        const auto& kernels = active_tile_kernels<T>();
        tile_job<T> job{};
        job.a_row = a_row;
        job.c_row = out_row;
        job.columns = l.columns(panel);
        const std::int64_t parts = detail::divide_up(k, 1024); // of the rows of a, to keep them in L1
        for (std::int64_t part = 0; part < parts; ++part) {
            const std::int64_t first = k * part / parts;
            job.walk.inner = k * (part + 1) / parts - first;
            job.b = packed + l.offset(panel, k) + first * l.width(panel);
            job.accumulate = part > 0;
            if (row_vectors > 0) {
                job.a = a + first;
                job.c = out;
                detail::wide_row_kernel<T>(row_vectors * l.vectors(panel))(job);
                continue;
            }
            for_tiles(rows, kernels.rows, [&](std::int64_t row, std::int64_t count) {
                job.a = a + row * a_row + first;
                job.c = out + row * out_row;
                kernels.run[l.vectors(panel) - 1][count - 1](job);
            });
        }
    }
};

/// The facts about a recurrence that are known before its team starts.
struct recurrence_division {
    std::size_t bytes; ///< of the packed matrix
    double round_trip; ///< seconds between two threads

    // Measured on an EPYC (Zen 5): a matrix is read from L2 at this many bytes a second, and
    // members that share it need three round trips a step. Sharing 128 units of an LSTM pays with
    // cores that share a cache; with others, 256.
    static constexpr double bytes_per_second = 1.5e11, round_trips = 3;

    /// Whether `members` that hold a part of the units each save more by reading half as much than
    /// they lose by synchronising.
    bool pays(int members) const {
        return static_cast<double>(bytes) / (2 * members) / bytes_per_second > round_trips * round_trip;
    }
};

/// A thread's part of a recurrence: rows of the batch, and groups of units, with the panels that it
/// packs and multiplies.
struct recurrence_part {
    std::int64_t first_row, rows;
    std::int64_t first_unit, last_unit;
    int row_part, row_parts, member, members;

    /// `width`: units of one group.
    recurrence_part(std::int64_t batch, std::int64_t units, std::int64_t width, const recurrence_division& division,
                    int thread, int threads) {
        const std::int64_t groups = detail::divide_up(units, width);
        // The units are split where a thread would have few rows, if that pays, or a matrix larger
        // than its L2.
        members = 1;
        while (2 * members <= threads && 2 * members <= groups &&
               ((batch * members < 8 * threads && division.pays(members)) ||
                division.bytes / static_cast<std::size_t>(members) > (std::size_t{1} << 20)))
            members *= 2;
        row_parts =
            static_cast<int>(std::min<std::int64_t>(threads / members, std::min<std::int64_t>(most_parts, batch)));
        row_parts = std::max(row_parts, 1);
        member = thread % members;
        row_part = thread / members;
        const bool idle = row_part >= row_parts;
        first_row = idle ? 0 : batch * row_part / row_parts;
        rows = idle ? 0 : batch * (row_part + 1) / row_parts - first_row;
        first_unit = std::min(units, groups * member / members * width);
        last_unit = idle ? first_unit : std::min(units, groups * (member + 1) / members * width);
    }
    static constexpr int most_parts = 64;
};

/// The barriers of a team.
struct recurrence_meetings {
    barrier all, parts[recurrence_part::most_parts];
};

} // namespace tapegraph::cpu
