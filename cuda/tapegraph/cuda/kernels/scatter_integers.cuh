#pragma once

#include <tapegraph/cuda/kernels/scatter.cuh>

#include <algorithm>
#include <cstdint>

/// Adds integers at indexed positions. Every order gives the same bits, so nothing is sorted.
/// Memory plan:
///
///   add_integers   A block adds a stretch of the updates, neighbours side by side: to a table of
///                  its own in shared memory (up to 16 KiB) that it then adds to the result or, if
///                  the result is larger, to the result itself. For up to two of the positions that
///                  a warp's 32 updates go to, the warp sums the updates and adds them once: most
///                  updates may go to a single position, such as that of elements that are not
///                  counted.

namespace tapegraph::cuda::kernels {

inline constexpr int integer_threads = 256;
template <class Word>
inline constexpr int integer_cells = 16384 / sizeof(Word);

/// The updates that a block takes: at least four for each of the cells that it clears and adds.
inline std::int64_t integers_in_block(int cells) { return std::max<std::int64_t>(1024, std::int64_t{4} * cells); }

/// Grid: [stretches of a slab's updates, slabs from `first` on]; out must be zero before. `cells`
/// is the size of a slab of the result if it fits into shared memory, otherwise 0. Word is unsigned
/// or unsigned long long. Without updates each counts as 1.
template <class Word>
__global__ void add_integers(scattering s, int cells, std::int64_t in_block, std::int64_t first, index_view indices,
                             bool checked, fault_report report, const Word* updates, Word* out) {
    constexpr unsigned all = 0xFFFFFFFFu;
    __shared__ Word table[integer_cells<Word>];
    const int t = static_cast<int>(threadIdx.x), lane = t % 32;
    const std::int64_t slab = first + blockIdx.y, batch = slab / s.outer, elements = s.count * s.width;
    const std::int64_t begin = blockIdx.x * in_block, end = begin + in_block < elements ? begin + in_block : elements;
    if (updates != nullptr) updates += slab * elements;
    out += slab * s.rows * s.width;
    for (int cell = t; cell < cells; cell += integer_threads) table[cell] = 0;
    __syncthreads();
    Word* const to = cells > 0 ? table : out;
    for (std::int64_t i = begin + t; i - lane < end; i += integer_threads) { // warps stay together
        std::int64_t cell = -1;
        Word value = 0;
        if (i < end) {
            const std::int64_t pick = i / s.width, place = s.by_column ? batch * elements + i : batch * s.count + pick;
            const std::int64_t index = indices[place];
            if (inside(index, s.rows))
                cell = index * s.width + (i - pick * s.width), value = updates != nullptr ? updates[i] : Word{1};
            else if (!checked)
                report(place, index, s.rows);
        }
        for (int round = 0; round < 2; ++round) {
            const unsigned waiting = __ballot_sync(all, cell >= 0);
            if (waiting == 0) break;
            const int leader = __ffs(static_cast<int>(waiting)) - 1;
            const std::int64_t chosen = __shfl_sync(all, cell, leader);
            Word sum = cell == chosen ? value : 0;
            TG_UNROLL
            for (int away = 16; away > 0; away /= 2) sum += __shfl_xor_sync(all, sum, away);
            if (lane == leader) atomicAdd(to + chosen, sum);
            if (cell == chosen) cell = -1;
        }
        if (cell >= 0) atomicAdd(to + cell, value);
    }
    if (cells == 0) return;
    __syncthreads();
    for (int cell = t; cell < cells; cell += integer_threads)
        if (table[cell] != 0) atomicAdd(out + cell, table[cell]);
}

} // namespace tapegraph::cuda::kernels
