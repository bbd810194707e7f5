#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

/// Explicit vectors of a width chosen by the instruction set, by GCC's vector extension without
/// intrinsics. Vectors are passed by reference and never returned: by value, their calling
/// convention would depend on the target of the caller.

namespace tapegraph::cpu {

namespace detail {
template <std::size_t Size>
using integer_of_size = std::conditional_t<
    Size == 1, std::int8_t,
    std::conditional_t<Size == 2, std::int16_t, std::conditional_t<Size == 4, std::int32_t, std::int64_t>>>;
} // namespace detail

/// Combines lanes of a and b by number, those of b following those of a; the result has as many
/// lanes as a.
template <int... Lanes, class V>
TG_INLINE void shuffle(V& to, const V& a, const V& b) {
#if defined(__clang__)
    to = __builtin_shufflevector(a, b, Lanes...);
#else // nvcc's front end drops the pack in __builtin_shufflevector
    typedef detail::integer_of_size<sizeof(a[0])> mask __attribute__((vector_size(sizeof(V))));
    constexpr mask lanes = {Lanes...};
    to = __builtin_shuffle(a, b, lanes);
#endif
}

/// A vector of `Bytes` bytes of T. `storage` is the same vector at any address that is aligned for T.
template <class T, int Bytes>
struct vector {
    static constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
    typedef T type __attribute__((vector_size(Bytes)));
    typedef T storage __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));

    TG_INLINE static void load(type& v, const T* p) { v = *reinterpret_cast<const storage*>(p); }
    TG_INLINE static void store(T* p, const type& v) { *reinterpret_cast<storage*>(p) = v; }

    // c += a * b, b a vector or a number for all lanes; one rounding where the function has FMA and permits contraction
    // (cpu/gemm_kernel.hpp: fused).
    template <class B>
    TG_INLINE static void multiply_add(type& c, const type& a, const B& b) {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
        c = a * b + c;
    }

    /// Loads the first `count` lanes; the others are zero and their memory is not read.
    TG_INLINE static void load_first(type& v, const T* p, int count) {
        alignas(Bytes) T lane[lanes] = {};
        copy_first(lane, p, count);
        v = *reinterpret_cast<const type*>(lane);
    }
    TG_INLINE static void store_first(T* p, const type& v, int count) {
        alignas(Bytes) T lane[lanes];
        *reinterpret_cast<type*>(lane) = v;
        copy_first(p, lane, count);
    }

private:
    // Pieces of constant size compile to single moves; a memcpy of run-time size would be a call.
    TG_INLINE static void copy_first(T* to, const T* from, int count) {
        piece<8>(to, from, count);
        piece<4>(to, from, count);
        piece<2>(to, from, count);
        piece<1>(to, from, count);
    }
    template <int Size>
    TG_INLINE static void piece(T*& to, const T*& from, int count) {
        if constexpr (Size < lanes) {
            if (count & Size) {
                std::memcpy(to, from, Size * sizeof(T));
                to += Size;
                from += Size;
            }
        }
    }
};

} // namespace tapegraph::cpu
