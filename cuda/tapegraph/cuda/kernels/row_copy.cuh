#pragma once

#include <tapegraph/cuda/kernels/box.cuh>
#include <tapegraph/cuda/words.cuh>

#include <cstdint>

/// Memory operations of programs that run within a kernel. Nothing is shared; memory plan:
///
///   copy_rows    Several copies of rows in one launch: blocks of a y have a copy, and their
///                threads its words, neighbours side by side. The host combines elements into words
///                of up to 16 bytes where alignment allows.
///   store_words  Numbers that the host knows, as the launch's arguments: a replayed launch has
///                them, too.

namespace tapegraph::cuda::kernels {

struct copied_rows {
    void* to = nullptr;
    const void* from = nullptr; ///< null: zeros are written
    int word = 1;               ///< bytes; everything else counts words
    divisor row;                ///< per row, for copies below 2^31
    std::int64_t row_words = 0, words = 0, to_pitch = 0, from_pitch = 0;
};
struct copied_rows_list {
    static constexpr int most = 16;
    copied_rows at[most];
};

template <class Word>
__device__ void copy_words(const copied_rows& c, std::int64_t first, std::int64_t step) {
    const auto* from = static_cast<const Word*>(c.from);
    auto* to = static_cast<Word*>(c.to);
    for (std::int64_t i = first; i < c.words; i += step) {
        const std::int64_t row = c.words >> 31 == 0 ? c.row.quotient(static_cast<std::uint32_t>(i)) : i / c.row_words,
                           column = i - row * c.row_words;
        to[row * c.to_pitch + column] = from == nullptr ? Word{} : from[row * c.from_pitch + column];
    }
}

// A template, so that several sources may define it.
template <class = void>
__global__ void copy_rows(const __grid_constant__ copied_rows_list list) {
    const copied_rows& c = list.at[blockIdx.y];
    const std::int64_t first = thread_number(), step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    switch (c.word) {
    case 1: return copy_words<std::uint8_t>(c, first, step);
    case 2: return copy_words<std::uint16_t>(c, first, step);
    case 4: return copy_words<std::uint32_t>(c, first, step);
    case 8: return copy_words<std::uint64_t>(c, first, step);
    default: return copy_words<wide_word>(c, first, step);
    }
}

struct words_of_launch {
    static constexpr int most = 32; ///< one per thread
    std::uint64_t at[most];
};
template <class = void>
__global__ void store_words(const __grid_constant__ words_of_launch words, int count, std::uint64_t* to) {
    if (static_cast<int>(threadIdx.x) < count) to[threadIdx.x] = words.at[threadIdx.x];
}

} // namespace tapegraph::cuda::kernels
