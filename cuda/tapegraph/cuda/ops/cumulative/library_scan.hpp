#pragma once

#include <cstddef>
#include <cstdint>

/// Long lines of integers, whose sums and products are the same in every order, are scanned by CUB where a program has it: by
/// cuda/tapegraph/cuda/library/scan.cu, which puts its functions here before main() when it is linked. Without it our scans do it,
/// to the same bits (cuda/ops/cumulative/cumulative.cuh).

namespace tapegraph::cuda {

struct scan_way {
    bool product, exclusive;
};

/// Word: std::uint32_t or std::uint64_t; results are those modulo 2^bits. Nothing here waits for the device or allocates.
template <class Word>
struct library_scan {
    /// Scratch memory for a call with this count, fewer than 2^31, on the current device; 0 where the source was not compiled for
    /// that device.
    std::size_t (*scratch_bytes)(scan_way way, std::int64_t count) = nullptr;
    /// A line of `count` neighbours from the first on, on `stream`; y may be x. Throws device_error with the operation's name.
    void (*scan)(const char* operation, void* stream, scan_way way, const Word* x, Word* y, std::int64_t count,
                 void* scratch, std::size_t scratch_bytes) = nullptr;
};

/// Empty until a source puts functions there.
template <class Word>
inline library_scan<Word> scan_of_library;

} // namespace tapegraph::cuda
