#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// A part of an index space that one launch covers, with the last axis fastest.

namespace tapegraph::cuda::kernels {

template <int Rank>
struct box {
    std::uint32_t elements = 0; ///< below 2^31
    divisor count[Rank];
    std::int64_t first[Rank]{};

    box() = default;
    box(const std::int64_t* first_, const std::int64_t* count_, std::int64_t elements_)
        : elements(static_cast<std::uint32_t>(elements_)) {
        for (int i = 0; i < Rank; ++i) {
            first[i] = first_[i];
            count[i] = divisor(static_cast<std::uint32_t>(count_[i]));
        }
    }

    struct place {
        std::int64_t at[Rank];
    };
    __device__ place operator[](std::uint32_t element) const {
        place p;
        TG_UNROLL
        for (int i = Rank - 1; i > 0; --i) {
            const std::uint32_t next = count[i].quotient(element);
            p.at[i] = first[i] + count[i].remainder(element, next);
            element = next;
        }
        p.at[0] = first[0] + element;
        return p;
    }
};

/// The index of this thread in a grid of blocks along x.
__device__ inline std::uint32_t thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

} // namespace tapegraph::cuda::kernels
