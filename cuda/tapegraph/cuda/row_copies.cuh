#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/row_copy.cuh>
#include <tapegraph/runtime/row_copies.hpp>

#include <algorithm>

/// The device's implementation of runtime/row_copies.hpp.

namespace tapegraph::cuda {

namespace detail {

/// The most blocks of a copy, several times what is resident; beyond that, threads copy more words.
/// A variable for tests.
inline std::int64_t most_copying_blocks = 2048;

inline kernels::copied_rows in_words(runtime::row_copy copy) {
    if (copy.bytes == copy.to_pitch && (copy.from == nullptr || copy.bytes == copy.from_pitch)) { // contiguous
        copy.bytes *= static_cast<std::size_t>(copy.rows);
        copy.rows = 1;
    }
    if (copy.rows == 1) copy.to_pitch = copy.from_pitch = copy.bytes;
    if (copy.from == nullptr) copy.from_pitch = 0;
    const std::size_t all = reinterpret_cast<std::uintptr_t>(copy.to) | reinterpret_cast<std::uintptr_t>(copy.from) |
                            copy.bytes | copy.to_pitch | copy.from_pitch;
    const std::size_t word = std::min<std::size_t>(all & (~all + 1), sizeof(kernels::wide_word));
    kernels::copied_rows c;
    c.to = copy.to, c.from = copy.from;
    c.word = static_cast<int>(word);
    c.row_words = static_cast<std::int64_t>(copy.bytes / word);
    c.words = c.row_words * copy.rows;
    c.to_pitch = static_cast<std::int64_t>(copy.to_pitch / word);
    c.from_pitch = static_cast<std::int64_t>(copy.from_pitch / word);
    if (c.words >> 31 == 0) c.row = kernels::divisor(static_cast<std::uint32_t>(c.row_words));
    return c;
}

} // namespace detail

inline void copy_rows(const kernel_call& call, const runtime::row_copy* copies, std::size_t count) {
    constexpr std::size_t most = kernels::copied_rows_list::most;
    constexpr std::int64_t threads = 256;
    for (std::size_t first = 0; first < count; first += most) {
        const std::size_t here = std::min(most, count - first);
        kernels::copied_rows_list list;
        std::int64_t words = 0;
        for (std::size_t i = 0; i < here; ++i) {
            list.at[i] = detail::in_words(copies[first + i]);
            words = std::max(words, list.at[i].words);
        }
        if (words == 0) continue;
        const std::int64_t blocks = std::min(detail::divide_up(words, threads), detail::most_copying_blocks);
        const driver::launch_shape shape{{static_cast<unsigned>(blocks), static_cast<unsigned>(here)},
                                         static_cast<unsigned>(threads)};
        launch(call, "scan", shape, kernels::copy_rows<>, list);
    }
}

/// Stores words of 8 bytes.
inline void store_words(const kernel_call& call, void* to, const std::uint64_t* words, std::size_t count) {
    constexpr std::size_t most = kernels::words_of_launch::most;
    for (std::size_t first = 0; first < count; first += most) {
        const std::size_t here = std::min(most, count - first);
        kernels::words_of_launch list{};
        std::copy_n(words + first, here, list.at);
        launch(call, "scan", {1, static_cast<unsigned>(most)}, kernels::store_words<>, list, static_cast<int>(here),
               static_cast<std::uint64_t*>(to) + first);
    }
}

} // namespace tapegraph::cuda
