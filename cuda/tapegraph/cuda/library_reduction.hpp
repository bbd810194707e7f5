#pragma once

#include <tapegraph/core/reduction.hpp>

#include <cstddef>
#include <cstdint>

/// Declares reductions of all elements of a tensor by CUB, for those whose value does not depend on
/// the order: sums, products, maxima and minima of integers, and positions of extremes. When
/// cuda/tapegraph/cuda/library/reduce.cu is linked, it registers its functions here before main().
/// Without it our own reductions compute the same bits (cuda/reduction.cuh,
/// cuda/ops/ordering/arg_reduce.cuh).

namespace tapegraph::cuda {

/// Integers of 1, 4 and 8 bytes; sums and products are taken modulo 2^bits, of unsigned ones alone. The
/// functions neither wait for the device nor allocate.
template <class Integer>
struct library_reduction {
    /// Scratch memory for a call with this count, from 1 to 2^31 - 1, on the current device; 0
    /// where the source was not compiled for that device, or the library does not do it.
    std::size_t (*scratch_bytes)(reduction kind, std::int64_t count) = nullptr;
    /// Reduces `count` contiguous elements on `stream`. Throws device_error with the operation's
    /// name.
    void (*reduce)(const char* operation, void* stream, reduction kind, const Integer* x, Integer* out,
                   std::int64_t count, void* scratch, std::size_t scratch_bytes) = nullptr;
};
template <class Integer>
inline library_reduction<Integer> reduction_of_library;

/// The position of the largest or smallest of `count` contiguous elements; the first among equals,
/// with NaN before everything else.
template <class Element>
struct library_arg_reduction {
    std::size_t (*scratch_bytes)(bool maximum, std::int64_t count) = nullptr;
    void (*find)(const char* operation, void* stream, bool maximum, const Element* x, std::int32_t* out,
                 std::int64_t count, void* scratch, std::size_t scratch_bytes) = nullptr;
};
template <class Element>
inline library_arg_reduction<Element> arg_reduction_of_library;

} // namespace tapegraph::cuda
