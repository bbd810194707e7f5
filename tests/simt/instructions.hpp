#pragma once

#include <simt/words.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

/// Twins of the instructions in cuda/kernels/instructions.cuh. An asynchronous copy happens as late as it may: when its
/// group is waited for, so that a kernel that does not wait computes with what lay there before.

namespace tapegraph::cuda::kernels {

template <int Bytes>
inline void copy_async(void* shared, const void* global, const void*) {
    if (reinterpret_cast<std::uintptr_t>(shared) % Bytes != 0 || reinterpret_cast<std::uintptr_t>(global) % Bytes != 0)
        throw simt::error("an asynchronous copy of " + std::to_string(Bytes) + " bytes between unaligned addresses");
    simt::executor::running()->copies.push_back({shared, global, Bytes, false});
}
inline void commit_copies() {
    auto& copies = simt::executor::running()->copies;
    copies.push_back({nullptr, nullptr, 0, true});
}
template <int Groups>
inline void wait_copies() {
    auto& copies = simt::executor::running()->copies;
    int groups = 0;
    for (const simt::pending_copy& c : copies) groups += c.ends_group;
    std::size_t done = 0;
    for (; groups > Groups; ++done) {
        const simt::pending_copy& c = copies[done];
        groups -= c.ends_group;
        if (c.ends_group) continue;
        if (c.from == nullptr)
            std::memset(c.to, 0, c.bytes);
        else
            std::memcpy(c.to, c.from, c.bytes);
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(done));
}

// The 13 bits behind those of a TF32 may hold anything; here they never are zero unless the number is.
inline constexpr std::uint32_t tf32_bits = ~0x1FFFu;
inline std::uint32_t to_tf32(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    if ((bits & 0x7F800000u) == 0x7F800000u || bits << 1 == 0) return bits;
    return ((bits + 0x1000u) & tf32_bits) | 0x1555u;
}

inline void multiply_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    struct fragments {
        const std::uint32_t *a, *b;
    } const own{a, b};
    // Lanes show each other their registers, and nobody goes on before all have read.
    constexpr unsigned whole_warp = 0xFFFFFFFFu;
    const simt::site here{"multiply_tf32", 0};
    simt::detail::meet(here, whole_warp, simt::collective::sync, reinterpret_cast<std::uintptr_t>(&own));
    const simt::thread& self = *simt::executor::running();
    const fragments* all[32];
    for (int i = 0; i < 32; ++i)
        all[i] = reinterpret_cast<const fragments*>(
            self.owner->threads[static_cast<std::size_t>(self.warp() * 32 + i)]->value);
    const int g = simt::detail::lane() / 4, t = simt::detail::lane() % 4;
    for (int i = 0; i < 4; ++i) {
        const int row = g + (i >= 2 ? 8 : 0), column = 2 * t + i % 2;
        float sum = d[i];
        for (int k = 0; k < 8; ++k) {
            const std::uint32_t x = all[row % 8 * 4 + k % 4]->a[(row >= 8) + (k >= 4) * 2];
            const std::uint32_t y = all[column * 4 + k % 4]->b[k >= 4];
            sum += std::bit_cast<float>(x & tf32_bits) * std::bit_cast<float>(y & tf32_bits);
        }
        d[i] = sum;
    }
    simt::detail::meet(here, whole_warp, simt::collective::sync, reinterpret_cast<std::uintptr_t>(&own));
}

} // namespace tapegraph::cuda::kernels
