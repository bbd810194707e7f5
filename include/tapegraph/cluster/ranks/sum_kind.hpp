#pragma once

#include <tapegraph/core/dtype.hpp>
#include <tapegraph/core/half.hpp>

#include <cstddef>
#include <cstdint>

/// Type-erased addition of elements: communication between ranks is compiled once for all types.

namespace tapegraph::distributed {

/// sum[i] = left[i] + right[i]; the result may be either operand.
struct sum_kind {
    std::size_t bytes; ///< per element
    void (*add)(void* sum, const void* left, const void* right, std::size_t count);
    dtype type; ///< for devices, which have their own kernels
};

namespace detail {

template <class T>
constexpr T added(T a, T b) {
    if constexpr (storage_type<T>)
        return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
    else
        return static_cast<T>(a + b);
}

template <class T>
TG_VECTORISES void add_elements(void* sum, const void* left, const void* right, std::size_t count) {
    T* const to = static_cast<T*>(sum);
    const T* const a = static_cast<const T*>(left);
    const T* const b = static_cast<const T*>(right);
    // Where the result is one of the operands, each element is read before it is written.
    TG_SIMD
    for (std::size_t i = 0; i < count; ++i) to[i] = added(a[i], b[i]);
}

} // namespace detail

/// For float, double, and integers. The 16-bit types are added as float and rounded at every node
/// of the tree; for float sums widen the values first, like tree_accumulator.
template <class T>
inline constexpr sum_kind sum_of{sizeof(T), &detail::add_elements<T>, dtype_of<T>};

} // namespace tapegraph::distributed
