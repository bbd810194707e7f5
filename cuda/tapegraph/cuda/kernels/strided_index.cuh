#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// Converts the index of an element in a row-major index space to its offsets in several strided
/// lists.

namespace tapegraph::cuda::kernels {

/// A `divisor` for numerators below 2^63.
struct wide_divisor {
    std::uint64_t value = 1, multiplier = 1;
    std::uint32_t shift = 0;

    wide_divisor() = default;
    explicit wide_divisor(std::uint64_t d) : value(d) {
        __extension__ using uint128 = unsigned __int128;
        while (shift < 63 && (std::uint64_t{1} << shift) < d) ++shift;
        multiplier = static_cast<std::uint64_t>((static_cast<uint128>((std::uint64_t{1} << shift) - d) << 64) / d + 1);
    }
    __host__ __device__ std::uint64_t quotient(std::uint64_t n) const {
#ifdef __CUDA_ARCH__
        const std::uint64_t high = __umul64hi(n, multiplier);
#else
        __extension__ using uint128 = unsigned __int128;
        const auto high = static_cast<std::uint64_t>(static_cast<uint128>(n) * multiplier >> 64);
#endif
        return (high + n) >> shift;
    }
};

/// An index space of up to 8 axes, outermost first; neighbouring axes are merged where the strides
/// of every list allow it. Divisions are multiplications, of 32 bits while indices and offsets stay
/// below 2^31.
template <int Lists>
struct strided_index {
    static constexpr int most_axes = 8;

    int rank = 0;
    bool wide = false;
    std::int64_t size = 1; ///< elements of the index space
    divisor by[most_axes];
    wide_divisor by_wide[most_axes];
    std::int64_t extents[most_axes]{};
    std::int64_t strides[most_axes][Lists]{};
    std::int64_t reach[Lists]{}; ///< the largest offset

    /// Adds an axis inside the existing ones.
    void add(std::int64_t extent, const std::int64_t* stride) {
        size *= extent;
        if (extent == 1) return;
        bool merges = rank > 0;
        for (int l = 0; l < Lists; ++l) {
            merges = merges && strides[rank - 1][l] == extent * stride[l];
            reach[l] += (extent - 1) * stride[l];
        }
        if (!merges) extents[rank++] = 1;
        extents[rank - 1] *= extent;
        for (int l = 0; l < Lists; ++l) {
            strides[rank - 1][l] = stride[l];
            wide = wide || reach[l] > most_narrow;
        }
        wide = wide || size > most_narrow;
        if (extents[rank - 1] <= most_narrow) by[rank - 1] = divisor(static_cast<std::uint32_t>(extents[rank - 1]));
        by_wide[rank - 1] = wide_divisor(static_cast<std::uint64_t>(extents[rank - 1]));
    }

    std::int64_t inner_extent() const { return rank == 0 ? 1 : extents[rank - 1]; }

    /// Writes the offsets of element i; returns its position on the innermost axis.
    __host__ __device__ __forceinline__ std::int64_t offsets(std::int64_t i, std::int64_t (&at)[Lists]) const {
        if (wide) return walk<std::int64_t>(i, at);
        std::uint32_t narrow[Lists];
        const std::uint32_t inner = walk<std::uint32_t>(static_cast<std::uint32_t>(i), narrow);
        TG_UNROLL
        for (int l = 0; l < Lists; ++l) at[l] = narrow[l];
        return inner;
    }
    __host__ __device__ __forceinline__ std::int64_t offset(std::int64_t i) const requires(Lists == 1) {
        if (rank <= 1) return i * strides[0][0];
        std::int64_t at[1];
        offsets(i, at);
        return at[0];
    }

private:
    static constexpr std::int64_t most_narrow = 0x7FFFFFFF;

    template <class Index>
    __host__ __device__ __forceinline__ Index walk(Index rest, Index (&at)[Lists]) const {
        Index inner = rest;
        TG_UNROLL
        for (int l = 0; l < Lists; ++l) at[l] = 0;
        TG_ROLLED
        for (int a = rank - 1; a > 0; --a) {
            Index quotient;
            if constexpr (sizeof(Index) == 4)
                quotient = by[a].quotient(rest);
            else
                quotient = static_cast<Index>(by_wide[a].quotient(static_cast<std::uint64_t>(rest)));
            const Index place = rest - quotient * static_cast<Index>(extents[a]);
            if (a == rank - 1) inner = place;
            TG_UNROLL
            for (int l = 0; l < Lists; ++l) at[l] += place * static_cast<Index>(strides[a][l]);
            rest = quotient;
        }
        TG_UNROLL
        for (int l = 0; l < Lists; ++l) at[l] += rest * static_cast<Index>(strides[0][l]);
        return inner;
    }
};

} // namespace tapegraph::cuda::kernels
