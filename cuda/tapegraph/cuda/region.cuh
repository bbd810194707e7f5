#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/region.cuh>

#include <algorithm>
#include <numeric>

/// Runs fused regions on the device. One kernel per region handles every pattern of broadcasting,
/// any alignment and any number of elements.
///
/// Results have the CPU's bits as long as the compiler neither contracts multiplications with
/// additions nor approximates: use nvcc's -fmad=false, and its defaults -prec-div=true,
/// -prec-sqrt=true, -ftz=false (so no -use_fast_math). The functions of core/math keep their bits
/// even without -fmad=false. The exception is a conversion to an integer type that cannot represent
/// the number, which depends on the processor.

namespace tapegraph::cuda {

namespace detail {

/// The strides of an operand's axes within a domain that it is broadcast over: 0 where its extent
/// is 1.
inline void broadcast_strides(const buffer_view& operand, int rank, std::int64_t (&strides)[max_rank]) {
    std::int64_t stride = 1;
    for (int a = rank - 1; a >= 0; --a) {
        const int own = a - (rank - operand.rank);
        const std::int64_t extent = own >= 0 ? operand.extents[own] : 1;
        strides[a] = extent == 1 ? 0 : stride;
        stride *= extent;
    }
}

inline bool is_aligned(const void* data, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// A call's operands in the form that kernels of regions with this many slots expect; `alignment`
/// is the required alignment of each in bytes.
template <int Slots>
kernels::region_operands<Slots> operands_of(const kernel_call& call, const std::size_t* alignment) {
    constexpr int lists = kernels::region_operands<Slots>::lists;
    kernels::region_operands<Slots> operands;
    const buffer_view& domain = call.domain;
    std::int64_t strides[lists][max_rank]{};
    for (int s = 0; s < Slots; ++s) {
        operands.data[s] = call.in[s].data;
        // An operand with as many elements as the domain is read in order, whatever axes of extent
        // 1 either has.
        const bool whole = call.in[s].elements() == domain.elements();
        if (whole) operands.in_order |= 1u << s;
        broadcast_strides(whole ? domain : call.in[s], domain.rank, strides[s]);
    }
    for (int a = 0; a < domain.rank; ++a) {
        std::int64_t along[lists]{};
        for (int s = 0; s < Slots; ++s) along[s] = strides[s][a];
        operands.index.add(domain.extents[a], along);
    }
    operands.aligned = true;
    for (int s = 0; s < Slots; ++s) {
        const bool repeated = operands.index.rank == 0 || operands.index.strides[operands.index.rank - 1][s] == 0;
        if (repeated) operands.repeated |= 1u << s;
        operands.aligned = operands.aligned && (repeated || is_aligned(call.in[s].data, alignment[s]));
    }
    return operands;
}
/// The operands of a region's call. The domain must not be empty.
template <class Access>
typename Access::operands operands_of(const kernel_call& call) {
    return operands_of<Access::slot_count>(call, Access::slot_alignment);
}

/// The blocks of a launch whose threads loop: as many as there is work, up to this limit.
inline constexpr std::int64_t most_blocks = 1 << 20;
inline unsigned blocks_for(std::int64_t work, std::int64_t most = most_blocks) {
    return static_cast<unsigned>(work < most ? work : most);
}

// From this many elements on, threads loop several times if there are as many as a device holds at
// once.
inline constexpr std::int64_t many_elements = 1 << 21;

/// The number of blocks of map_steadily; 0: use map_region. With 2, 3 or 4 blocks on each of 132
/// multiprocessors, the last iteration still has many of them at work.
inline std::int64_t steady_blocks(const kernel_call& call, int slots, std::uint32_t in_order, int lanes,
                                  const std::size_t* alignment) {
    constexpr std::int64_t most = 1056, least_turns = 8;
    const buffer_view& domain = call.domain;
    const std::int64_t elements = domain.elements();
    std::int64_t period = 1; // of all operands: products of the last extents divide each other
    for (int s = 0; s < slots; ++s) {
        const buffer_view& operand = call.in[s];
        if ((in_order >> s & 1) != 0) {
            if (!is_aligned(operand.data, alignment[s])) return 0;
            continue;
        }
        std::int64_t own = 1, inside = 1;
        for (int a = 1; a <= std::min(operand.rank, domain.rank); ++a) {
            inside *= domain.extents[domain.rank - a];
            if (operand.extents[operand.rank - a] != 1) own = inside;
        }
        period = std::max(period, own);
    }
    if (period == 1 || elements % lanes != 0) return 0;
    const std::int64_t vectors = period / std::gcd<std::int64_t>(period, lanes);
    const std::int64_t unit = vectors / std::gcd<std::int64_t>(vectors, kernels::map_threads);
    const std::int64_t wanted = std::min(most, elements / (least_turns * lanes * kernels::map_threads));
    return unit > most ? 0 : std::max(unit, wanted / unit * unit);
}

/// `blocks` limits the launch, for tests of a thread's second iteration; `many` does the same for
/// map_steadily.
template <class Region>
void run_region(const kernel_call& call, std::int64_t blocks = most_blocks, std::int64_t many = many_elements) {
    using access = kernels::region_access<Region>;
    kernels::map_arguments_of<Region> p;
    p.elements = call.domain.elements();
    if (p.elements == 0) return;
    p.in = operands_of<access>(call);
    p.aligned = true;
    for (int k = 0; k < access::result_count; ++k) {
        p.out[k] = call.out[k].data;
        p.aligned = p.aligned && is_aligned(p.out[k], access::result_alignment[k]);
    }
    if constexpr (access::slot_count > 1)
        if (p.elements >= many && p.aligned)
            if (const std::int64_t steady =
                    steady_blocks(call, access::slot_count, p.in.in_order, access::lanes, access::slot_alignment);
                steady > 0) {
                launch(call, "an elementwise kernel", {static_cast<unsigned>(steady), kernels::map_threads},
                       kernels::map_steadily<Region>, p);
                return;
            }
    constexpr std::int64_t in_block = std::int64_t{kernels::map_threads} * access::lanes * kernels::map_unroll<Region>;
    launch(call, "an elementwise kernel", {blocks_for(divide_up(p.elements, in_block), blocks), kernels::map_threads},
           kernels::map_region<Region>, p);
}

} // namespace detail

template <class Region>
struct region_kernel {
    static void run(const kernel_call& call) { detail::run_region<Region>(call); }
};

} // namespace tapegraph::cuda
