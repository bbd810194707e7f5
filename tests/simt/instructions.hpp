#pragma once

#include <tapegraph/core/half.hpp>

#include <simt/words.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

/// Twins of the instructions in cuda/kernels/instructions.cuh. An asynchronous copy happens as late
/// as it may: when its group is waited for, so that a kernel that does not wait computes with the
/// old contents.

/// The caller's location, as a default argument.
#define SIMT_CALLER (::simt::site{__builtin_FILE(), static_cast<int>(__builtin_LINE())})

namespace tapegraph::cuda::kernels {

template <int Bytes>
inline void copy_async(void* shared, const void* global, bool there, simt::site where = SIMT_CALLER) {
    if (reinterpret_cast<std::uintptr_t>(shared) % Bytes != 0 ||
        (there && reinterpret_cast<std::uintptr_t>(global) % Bytes != 0))
        throw simt::error("an asynchronous copy of " + std::to_string(Bytes) + " bytes between unaligned addresses");
    if (!there) {
        const simt::settings& s = simt::current_settings();
        if (s.filled != nullptr) s.filled->insert(where);
        if (s.unfilled.line != 0 && s.unfilled == where) return;
    }
    simt::executor::running()->copies.push_back({shared, there ? global : nullptr, Bytes, false});
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

// The 13 bits below those of a TF32 may hold anything; here they are never zero unless the number
// is.
inline constexpr std::uint32_t tf32_bits = ~0x1FFFu;
inline std::uint32_t to_tf32(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    if ((bits & 0x7F800000u) == 0x7F800000u || bits << 1 == 0) return bits;
    return ((bits + 0x1000u) & tf32_bits) | 0x1555u;
}

namespace simt_detail {

/// Lanes exchange values and call use(all); no lane continues before all have done so.
template <class Own, class Use>
void show_warp(const char* what, const Own& own, const Use& use) {
    constexpr unsigned whole_warp = 0xFFFFFFFFu;
    const simt::site here{what, 0};
    simt::detail::meet(here, whole_warp, simt::collective::sync, reinterpret_cast<std::uintptr_t>(&own));
    const simt::thread& self = *simt::executor::running();
    const Own* all[32];
    for (int i = 0; i < 32; ++i)
        all[i] =
            reinterpret_cast<const Own*>(self.owner->threads[static_cast<std::size_t>(self.warp() * 32 + i)]->value);
    use(all);
    simt::detail::meet(here, whole_warp, simt::collective::sync, reinterpret_cast<std::uintptr_t>(&own));
}

struct fragments {
    const std::uint32_t *a, *b;
};
/// Adds `first` and the products as tensor cores are known to add (Fasi, Higham, Mikaitis and
/// Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021): all are aligned to the largest, and
/// whatever is then below its 24 bits is dropped, as it is from the sum.
inline float truncated_sum(float first, const double* products, int count) {
    double largest = std::abs(static_cast<double>(first));
    for (int i = 0; i < count; ++i) largest = std::max(largest, std::abs(products[i]));
    if (!(largest > 0) || !std::isfinite(largest)) {
        for (int i = 0; i < count; ++i) first += static_cast<float>(products[i]);
        return first;
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    double sum = std::trunc(std::ldexp(static_cast<double>(first), 24 - exponent));
    for (int i = 0; i < count; ++i) sum += std::trunc(std::ldexp(products[i], 24 - exponent));
    sum = std::ldexp(sum, exponent - 24);
    const auto nearest = static_cast<float>(sum);
    return std::abs(static_cast<double>(nearest)) > std::abs(sum) ? std::nextafter(nearest, 0.0f) : nearest;
}
/// The registers of a fragment for the call at `where`: in their order, unless a test swaps them.
template <int Count>
struct taken {
    std::uint32_t registers[Count];
    taken(const std::uint32_t* from, const simt::site& where, bool second) {
        const simt::settings& s = simt::current_settings();
        const bool swaps = s.swap != 0 && (s.swap >> 2 & 1) == static_cast<int>(second) && s.swapped == where;
        for (int i = 0; i < Count; ++i) registers[i] = from[swaps ? (i ^ (s.swap & 3)) % Count : i];
    }
};
inline void note_call(const simt::site& where) {
    if (auto* const all = simt::current_settings().multiplied; all != nullptr) all->insert(where);
}

/// d += a b, 16 by `depth` by 8: row_a(fragments, row >= 8, k) and column_b(fragments, k) take an
/// element from those of the lane that holds it: lane_of(row or column, k).
template <class LaneOf, class RowA, class ColumnB>
void multiply(const char* what, int depth, float (&d)[4], const std::uint32_t* a, const std::uint32_t* b,
              const LaneOf& lane_of, const RowA& row_a, const ColumnB& column_b) {
    show_warp(what, fragments{a, b}, [&](const fragments* const* all) {
        const int g = simt::detail::lane() / 4, t = simt::detail::lane() % 4;
        for (int i = 0; i < 4; ++i) {
            const int row = g + (i >= 2 ? 8 : 0), column = 2 * t + i % 2;
            float sum = d[i];
            double products[16];
            for (int k = 0; k < depth; ++k) {
                const float x = row_a(*all[lane_of(row % 8, k)], row >= 8, k),
                            y = column_b(*all[lane_of(column, k)], k);
                products[k] = static_cast<double>(x) * y;
                sum += x * y;
            }
            d[i] = simt::current_settings().truncating ? truncated_sum(d[i], products, depth) : sum;
        }
    });
}

} // namespace simt_detail

inline void multiply_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                          simt::site where = SIMT_CALLER) {
    simt_detail::note_call(where);
    const simt_detail::taken<4> of_a(a, where, false);
    const simt_detail::taken<2> of_b(b, where, true);
    simt_detail::multiply(
        "multiply_tf32", 8, d, of_a.registers, of_b.registers, [](int line, int k) { return line * 4 + k % 4; },
        [](const simt_detail::fragments& f, bool lower, int k) {
            return std::bit_cast<float>(f.a[lower + (k >= 4) * 2] & tf32_bits);
        },
        [](const simt_detail::fragments& f, int k) { return std::bit_cast<float>(f.b[k >= 4] & tf32_bits); });
}

template <class T>
void multiply_pairs(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                    simt::site where = SIMT_CALLER) {
    simt_detail::note_call(where);
    const simt_detail::taken<4> of_a(a, where, false);
    const simt_detail::taken<2> of_b(b, where, true);
    const auto half_of = [](std::uint32_t pair, int k) {
        return static_cast<float>(std::bit_cast<T>(static_cast<std::uint16_t>(pair >> k % 2 * 16)));
    };
    simt_detail::multiply(
        "multiply_pairs", 16, d, of_a.registers, of_b.registers, [](int line, int k) { return line * 4 + k % 8 / 2; },
        [&](const simt_detail::fragments& f, bool lower, int k) { return half_of(f.a[lower + (k >= 8) * 2], k); },
        [&](const simt_detail::fragments& f, int k) { return half_of(f.b[k >= 8], k); });
}

template <int Count, bool Transposed>
void load_matrices(std::uint32_t* to, const void* shared) {
    if (simt::detail::lane() < 8 * Count && reinterpret_cast<std::uintptr_t>(shared) % 16 != 0)
        throw simt::error("a row of a matrix that is not aligned to its 16 bytes");
    simt_detail::show_warp("load_matrices", shared, [&](const void* const* const* all) {
        const int g = simt::detail::lane() / 4, t = simt::detail::lane() % 4;
        for (int i = 0; i < Count; ++i) {
            const auto row = [&](int j) { return static_cast<const unsigned char*>(*all[8 * i + j]); };
            if constexpr (Transposed) {
                std::uint16_t pair[2];
                for (int j = 0; j < 2; ++j) std::memcpy(&pair[j], row(2 * t + j) + 2 * g, 2);
                std::memcpy(&to[i], pair, 4);
            } else {
                std::memcpy(&to[i], row(g) + 4 * t, 4);
            }
        }
    });
}

} // namespace tapegraph::cuda::kernels
