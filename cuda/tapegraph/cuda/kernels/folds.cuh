#pragma once

#include <tapegraph/core/reduction.hpp>
#include <tapegraph/cuda/kernels/region.cuh>

#include <algorithm>
#include <bit>

/// The parts that reduction kernels are made of: sources of values, and folds.

namespace tapegraph::cuda::kernels {

/// Folds for sums, products, maxima and minima. A thread folds short runs of floats in float and
/// joins the runs in double.
template <reduction R, class T>
struct value_fold {
    using run = T;
    using total = std::conditional_t<std::is_same_v<T, float>, double, T>;

    static __device__ __forceinline__ run no_run() { return tapegraph::detail::identity<R, run>; }
    static __device__ __forceinline__ total nothing() { return tapegraph::detail::identity<R, total>; }
    template <class Number>
    static __device__ __forceinline__ run from(Number x) {
        return static_cast<run>(x);
    }
    template <class V>
    static __device__ __forceinline__ void combine(V& a, const V& b) {
        tapegraph::detail::combine<R>(a, b);
    }
    static __device__ __forceinline__ total joined(const run& x) { return static_cast<total>(x); }
    /// The value of the lane whose index differs in `bits`.
    static __device__ __forceinline__ total exchanged(const total& x, int bits) {
        return static_cast<total>(__shfl_xor_sync(0xFFFFFFFFu, x, bits));
    }
};

/// The number that a word in memory represents; a 16-bit one as float.
template <class Register, class Word>
__device__ __forceinline__ auto number_of(Word word) {
    if constexpr (requires(Register r) { r.bits; }) {
        Register r;
        r.load(word);
        return r.value;
    } else {
        return word;
    }
}

/// The values of a region with one result.
template <class Region>
struct region_source;
template <class Slots, int Register, class... Instructions>
struct region_source<region<Slots, results<Register>, Instructions...>> {
    using access = region_access<region<Slots, results<Register>, Instructions...>>;
    using element =
        std::remove_cvref_t<decltype(machine::reg_at<Register>(std::declval<typename access::evaluator::file&>()))>;
    static constexpr int lanes = access::lanes;
    /// The number of vectors read before the first is folded: 64 bytes of one operand of floats.
    /// Shorter elements take more registers.
    static constexpr int ahead =
        std::clamp(static_cast<int>(std::bit_floor(16u / (lanes * std::max(access::slot_count, 1)))), 1, 4);
    using batch = typename access::inputs;

    typename access::operands in;

    __host__ __device__ bool flat() const { return in.flat(); }
    __device__ __forceinline__ void read_flat(std::int64_t i, int count, batch& x) const {
        access::read_flat(in, i, count, x);
    }
    __device__ __forceinline__ void read(std::int64_t i, int count, batch& x) const { access::read(in, i, count, x); }
    __device__ __forceinline__ void read_scattered(const std::int64_t (&i)[lanes], int count, batch& x) const {
        access::read_scattered(in, i, count, x);
    }
    /// Passes values as numbers, bool as 0 or 1.
    template <class F>
    static __device__ __forceinline__ void each(batch& x, const F& f) {
        typename access::outputs y;
        access::evaluate(x, y);
        TG_UNROLL
        for (int v = 0; v < lanes; ++v) f(v, number_of<element>(lanes_of<0>(y)[v]));
    }
};

/// The totals that an earlier kernel has left.
template <class T>
struct memory_source {
    static constexpr int lanes = 1, ahead = 4;
    struct batch {
        T value{};
    };

    const T* data;

    __host__ __device__ bool flat() const { return true; }
    __device__ __forceinline__ void read_flat(std::int64_t i, int, batch& x) const { x.value = data[i]; }
    __device__ __forceinline__ void read(std::int64_t i, int, batch& x) const { x.value = data[i]; }
    __device__ __forceinline__ void read_scattered(const std::int64_t (&i)[1], int, batch& x) const {
        x.value = data[i[0]];
    }
    template <class F>
    static __device__ __forceinline__ void each(batch& x, const F& f) {
        f(0, x.value);
    }
};

/// Converts totals to results of element type T, rounded once.
template <class T, class Total>
__device__ __forceinline__ void put(void* out, std::int64_t i, const Total& total) {
    if constexpr (storage_type<T>)
        static_cast<std::uint16_t*>(out)[i] = storage_bits<T>(static_cast<float>(total));
    else if constexpr (std::is_same_v<T, bool>)
        static_cast<std::uint8_t*>(out)[i] = total;
    else
        static_cast<T*>(out)[i] = static_cast<T>(total);
}

} // namespace tapegraph::cuda::kernels
