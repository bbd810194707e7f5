#pragma once

#include <cstdint>

/// Integers at equal distances are Thrust's where a program has it: cuda/tapegraph/cuda/library/places.cu puts its function here before
/// main() when it is linked. Without it our kernel writes them, the same ones (cuda/ops/movement/fill.cuh).

namespace tapegraph::cuda {

/// Word: std::uint32_t or std::uint64_t. Nothing here waits for the device or allocates.
template <class Word>
struct library_sequence {
    /// Whether the source was compiled for the current device.
    bool (*usable)() = nullptr;
    /// out[i] = begin + step i modulo 2^bits, i in [0, count), on `stream`. Throws device_error with the operation's name.
    void (*sequence)(const char* operation, void* stream, Word* out, std::int64_t count, Word begin,
                     Word step) = nullptr;
};
template <class Word>
inline library_sequence<Word> sequence_of_library;

} // namespace tapegraph::cuda
