#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// From the number of an element in a row-major index space to where it lies in several strided lists.

namespace tapegraph::cuda::kernels {

/// Up to 8 axes, outermost first; neighbouring axes are merged where every list lets them. While numbers and offsets stay
/// below 2^31, divisions are multiplications; beyond that they are 64-bit divisions, ten times as slow and still right.
template <int Lists>
struct strided_index {
    static constexpr int most_axes = 8;

    int rank = 0;
    bool wide = false;
    std::int64_t size = 1; ///< elements of the index space
    divisor by[most_axes];
    std::int64_t extents[most_axes]{};
    std::int64_t strides[most_axes][Lists]{};
    std::int64_t reach[Lists]{}; ///< the largest offset

    /// Adds an axis inside of those there are.
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
    }

    std::int64_t inner_extent() const { return rank == 0 ? 1 : extents[rank - 1]; }

    /// Writes the offsets of element i; returns its place on the innermost axis.
    __host__ __device__ std::int64_t offsets(std::int64_t i, std::int64_t (&at)[Lists]) const {
        TG_UNROLL
        for (int l = 0; l < Lists; ++l) at[l] = 0;
        if (rank == 0) return 0;
        if (wide) return walk<std::int64_t>(i, at);
        std::uint32_t narrow[Lists]{};
        const std::uint32_t inner = walk<std::uint32_t>(static_cast<std::uint32_t>(i), narrow);
        TG_UNROLL
        for (int l = 0; l < Lists; ++l) at[l] = narrow[l];
        return inner;
    }
    __host__ __device__ std::int64_t offset(std::int64_t i) const requires(Lists == 1) {
        std::int64_t at[1];
        offsets(i, at);
        return at[0];
    }

private:
    static constexpr std::int64_t most_narrow = 0x7FFFFFFF;

    template <class Index>
    __host__ __device__ __forceinline__ Index walk(Index rest, Index (&at)[Lists]) const {
        Index inner = rest;
        for (int a = rank - 1; a > 0; --a) {
            Index quotient, place;
            if constexpr (sizeof(Index) == 4) {
                quotient = by[a].quotient(rest);
                place = by[a].remainder(rest, quotient);
            } else {
                quotient = rest / extents[a];
                place = rest - quotient * extents[a];
            }
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
