#pragma once

#include <cstdint>

/// Declares Thrust's sequences of equally spaced integers. When
/// cuda/tapegraph/cuda/library/places.cu is linked, it registers its function here before main().
/// Without it our own kernel writes the same integers (cuda/ops/movement/fill.cuh).

namespace tapegraph::cuda {

/// Word is std::uint32_t or std::uint64_t. The functions neither wait for the device nor allocate.
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
