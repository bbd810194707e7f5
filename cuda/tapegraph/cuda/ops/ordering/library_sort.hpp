#pragma once

#include <cstddef>
#include <cstdint>

/// Long rows are sorted by CUB's radix sort where a program has it. CUB's headers take nvcc seconds, so they are included by one
/// source, cuda/tapegraph/cuda/library/sort.cu. When it is linked, it puts its functions here before main(); without it our
/// merges sort all rows, to the same bits (cuda/ops/ordering/sort.cuh).

namespace tapegraph::cuda {

namespace kernels {
template <class Key>
struct sort_pair;
}

/// Key: std::uint32_t or std::uint64_t. Nothing here waits for the device or allocates.
template <class Key>
struct library_sort {
    /// Scratch memory for a call with this count, fewer than 2^31, and bits, on the current device; 0 where the source was not
    /// compiled for that device.
    std::size_t (*scratch_bytes)(std::int64_t count, int bits) = nullptr;
    /// Sorts pairs by the lowest `bits` bits of their keys, equal ones staying in order, on `stream`. More bits than a key has
    /// are the lowest ones of the positions, which count for more than the key. Returns where the pairs end up: `pairs` or
    /// `other`, of which both are overwritten; which of them follows from count and bits. Throws device_error with the
    /// operation's name.
    kernels::sort_pair<Key>* (*sort)(const char* operation, void* stream, kernels::sort_pair<Key>* pairs,
                                     kernels::sort_pair<Key>* other, std::int64_t count, int bits, void* scratch,
                                     std::size_t scratch_bytes) = nullptr;
    /// The same of `rows` rows of `length` pairs, each by itself, with at most as many bits as a key has; null where the library sorts
    /// no rows side by side.
    std::size_t (*scratch_bytes_of_rows)(std::int64_t rows, std::int64_t length, int bits) = nullptr;
    kernels::sort_pair<Key>* (*sort_rows)(const char* operation, void* stream, kernels::sort_pair<Key>* pairs,
                                          kernels::sort_pair<Key>* other, std::int64_t rows, std::int64_t length,
                                          int bits, void* scratch, std::size_t scratch_bytes) = nullptr;
};

/// Empty until a source puts functions there.
template <class Key>
inline library_sort<Key> sort_of_library;

} // namespace tapegraph::cuda
