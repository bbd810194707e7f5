#pragma once

#include <cstddef>
#include <cstdint>

/// Declares CUB's scan of long lines of integers, whose sums and products are the same in every
/// order. When cuda/tapegraph/cuda/library/scan.cu is linked, it registers its functions here
/// before main(). Without it our own scans compute the same bits
/// (cuda/ops/cumulative/cumulative.cuh).

namespace tapegraph::cuda {

struct scan_way {
    bool product, exclusive;
};

/// Word is std::uint32_t or std::uint64_t; results are taken modulo 2^bits. The functions neither
/// wait for the device nor allocate.
template <class Word>
struct library_scan {
    /// Scratch memory for a call with this count, fewer than 2^31, on the current device; 0 where
    /// the source was not compiled for that device.
    std::size_t (*scratch_bytes)(scan_way way, std::int64_t count) = nullptr;
    /// Scans a line of `count` contiguous elements on `stream`; y may be x. Throws device_error
    /// with the operation's name.
    void (*scan)(const char* operation, void* stream, scan_way way, const Word* x, Word* y, std::int64_t count,
                 void* scratch, std::size_t scratch_bytes) = nullptr;
};

/// Empty until a linked source registers its functions.
template <class Word>
inline library_scan<Word> scan_of_library;

} // namespace tapegraph::cuda
