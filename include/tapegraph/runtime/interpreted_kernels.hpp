#pragma once

#include <tapegraph/cpu/interpreter.hpp>
#include <tapegraph/runtime/kernel.hpp>
#include <tapegraph/runtime/several_reductions.hpp>

/// Fused kernels whose region is interpreted: they use the drivers of compiled ones, with one
/// function for every region.

namespace tapegraph::runtime {

/// The description of such a call: the region, and for a kernel of several sums the sources of its
/// results.
struct interpreted_kernel : cpu::interpreted_region {
    several_results sums;
};

inline void run_interpreted_map(const kernel_call& call) {
    const cpu::tile_function whole = call.region->whole;
    cpu::run_map(whole != nullptr ? whole : &cpu::interpret_tile, call);
}

template <class T>
struct interpreted_sums {
    static void run(const kernel_call& call) {
        run_several<T>(call, &cpu::interpret_tile, nullptr, static_cast<const interpreted_kernel*>(call.region)->sums);
    }
    static std::size_t workspace(const kernel_call& call) {
        return static_cast<std::size_t>(static_cast<const interpreted_kernel*>(call.region)->sums.reduced) *
               cpu::reduce_workspace_bytes<T>(call.domain.rank, call.domain.extents,
                                              static_cast<std::uint32_t>(call.attributes[0]));
    }
};

} // namespace tapegraph::runtime
