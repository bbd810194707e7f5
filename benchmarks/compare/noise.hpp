#pragma once

#include <cstdint>

namespace compare {

/// Values in [-1, 1) that all contestants generate alike, bit for bit: 24 bits of a hash of the
/// index (MurmurHash3's finalizer, also in study.py). Values of a short period would not do: a
/// patch that occurs a hundred times, in which two maxima are nearly equal, is rounded to one of
/// them a hundred times, and the losses of two correct libraries diverge.
inline float noise_at(std::int64_t index) {
    auto bits = static_cast<std::uint32_t>(index + 1);
    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    bits ^= bits >> 16;
    return static_cast<float>(bits >> 8) / 8388608.0f - 1;
}

} // namespace compare
