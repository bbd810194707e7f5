#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/region.cuh>

/// Fused regions on the device. One kernel per region takes every pattern of broadcasting, any alignment and any number of
/// elements.
///
/// Results have the CPU's bits as long as the compiler neither contracts multiplications with additions nor approximates:
/// nvcc's -fmad=false, and its defaults -prec-div=true, -prec-sqrt=true, -ftz=false (so no -use_fast_math). The functions of
/// core/math keep their bits without -fmad=false, too. What differs is a conversion to an integer type that cannot hold the
/// number, which is whatever a processor makes of it.

namespace tapegraph::cuda {

namespace detail {

/// Strides of an operand's axes within a domain that it is broadcast over: 0 where its extent is 1.
inline void broadcast_strides(const buffer_view& operand, int rank, std::int64_t (&strides)[max_rank]) {
    std::int64_t stride = 1;
    for (int a = rank - 1; a >= 0; --a) {
        const int own = a - (rank - operand.rank);
        const std::int64_t extent = own >= 0 ? operand.extents[own] : 1;
        strides[a] = extent == 1 ? 0 : stride;
        stride *= extent;
    }
}

/// Operands as a region's kernels see them. The domain must not be empty.
template <int Slots>
kernels::region_operands<Slots> operands_of(const kernel_call& call) {
    kernels::region_operands<Slots> operands;
    const buffer_view& domain = call.domain;
    std::int64_t strides[Slots > 0 ? Slots : 1][max_rank]{};
    for (int s = 0; s < Slots; ++s) {
        operands.data[s] = call.in[s].data;
        // An operand of as many elements as the domain is read in order, whatever axes of extent 1 either has.
        if (call.in[s].elements() == domain.elements())
            broadcast_strides(domain, domain.rank, strides[s]);
        else
            broadcast_strides(call.in[s], domain.rank, strides[s]);
    }
    for (int a = 0; a < domain.rank; ++a) {
        std::int64_t along[kernels::region_operands<Slots>::lists]{};
        for (int s = 0; s < Slots; ++s) along[s] = strides[s][a];
        operands.index.add(domain.extents[a], along);
    }
    return operands;
}

/// Blocks of a launch whose kernel takes turns: as many as there is work, up to this.
inline constexpr std::int64_t most_blocks = 1 << 20;
inline unsigned blocks_for(std::int64_t work, std::int64_t most = most_blocks) {
    return static_cast<unsigned>(work < most ? work : most);
}

/// `blocks`: at most so many, for tests of what a thread does in its second turn.
template <class Region>
void run_region(const kernel_call& call, std::int64_t blocks = most_blocks) {
    using access = kernels::region_access<Region>;
    kernels::map_arguments_of<Region> p;
    p.elements = call.domain.elements();
    if (p.elements == 0) return;
    p.in = operands_of<access::slot_count>(call);
    for (int k = 0; k < access::result_count; ++k) p.out[k] = call.out[k].data;
    constexpr std::int64_t in_block = std::int64_t{kernels::map_threads} * access::lanes * kernels::map_unroll<Region>;
    launch(call, "an elementwise kernel",
           {blocks_for((p.elements + in_block - 1) / in_block, blocks), kernels::map_threads},
           kernels::map_region<Region>, p);
}

} // namespace detail

template <class Region>
struct region_kernel {
    static void run(const kernel_call& call) { detail::run_region<Region>(call); }
};

} // namespace tapegraph::cuda
