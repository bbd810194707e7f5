#pragma once

#include <cstddef>
#include <cstdint>

/// Declares CUB's radix sort of long rows. CUB's headers cost nvcc seconds, so only one source
/// includes them, cuda/tapegraph/cuda/library/sort.cu. When it is linked, it registers its
/// functions here before main(). Without it our own merge sort handles all rows, to the same bits
/// (cuda/ops/ordering/sort.cuh).

namespace tapegraph::cuda {

namespace kernels {
template <class Key>
struct sort_pair;
}

/// Key is std::uint32_t or std::uint64_t. The functions neither wait for the device nor allocate.
template <class Key>
struct library_sort {
    /// Scratch memory for a call with this count, fewer than 2^31, and bits, on the current device;
    /// 0 where the source was not compiled for that device.
    std::size_t (*scratch_bytes)(std::int64_t count, int bits) = nullptr;
    /// Sorts pairs by the lowest `bits` bits of their keys on `stream`; the sort is stable. Bits
    /// beyond those of a key are the lowest ones of the positions, which rank above the key.
    /// Returns where the sorted pairs are: `pairs` or `other`, both of which are overwritten; which
    /// of them follows from count and bits. Throws device_error with the operation's name.
    kernels::sort_pair<Key>* (*sort)(const char* operation, void* stream, kernels::sort_pair<Key>* pairs,
                                     kernels::sort_pair<Key>* other, std::int64_t count, int bits, void* scratch,
                                     std::size_t scratch_bytes) = nullptr;
    /// As above, for `rows` rows of `length` pairs, each sorted separately, with at most as many
    /// bits as a key has; null where the library does not sort rows side by side.
    std::size_t (*scratch_bytes_of_rows)(std::int64_t rows, std::int64_t length, int bits) = nullptr;
    kernels::sort_pair<Key>* (*sort_rows)(const char* operation, void* stream, kernels::sort_pair<Key>* pairs,
                                          kernels::sort_pair<Key>* other, std::int64_t rows, std::int64_t length,
                                          int bits, void* scratch, std::size_t scratch_bytes) = nullptr;
};

/// Empty until a linked source registers its functions.
template <class Key>
inline library_sort<Key> sort_of_library;

} // namespace tapegraph::cuda
