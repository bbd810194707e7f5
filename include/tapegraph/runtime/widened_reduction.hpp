#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/map.hpp>
#include <tapegraph/cpu/reduce.hpp>
#include <tapegraph/cpu/widen.hpp>

/// Reductions of 16-bit elements: reductions in float, rounded at the end.

namespace tapegraph::runtime {

namespace detail {
inline std::size_t float_bytes(const buffer_view& v) {
    return (static_cast<std::size_t>(v.elements()) * sizeof(float) + 63) / 64 * 64;
}
} // namespace detail

/// Scratch of run_widened_reduction: the results as floats, then what the reduction needs.
inline std::size_t widened_reduction_bytes(const kernel_call& call) {
    return detail::float_bytes(call.out[0]) +
           cpu::reduce_workspace_bytes<float>(call.domain.rank, call.domain.extents,
                                              static_cast<std::uint32_t>(call.attributes[0]));
}

/// Reduces result `wanted` of a region over call.domain, or the operand itself where `evaluate` is
/// null.
void run_widened_reduction(const kernel_call& call, cpu::tile_function evaluate, int wanted, int results,
                           void (*reduce)(int, const std::int64_t*, std::uint32_t, const cpu::reduce_source<float>&,
                                          float*, void*),
                           cpu::widen_function widen);
#if TG_DEFINES(reduction)
TG_DEFINITION void run_widened_reduction(const kernel_call& call, cpu::tile_function evaluate, int wanted, int results,
                                         void (*reduce)(int, const std::int64_t*, std::uint32_t,
                                                        const cpu::reduce_source<float>&, float*, void*),
                                         cpu::widen_function widen) {
    struct state {
        cpu::region_reader reader;
        const std::byte* direct;
        int wanted, results;
        cpu::widen_function widen;
    };
    const state producer{cpu::region_reader(evaluate, call),
                         evaluate == nullptr ? call.in[0].as<const std::byte>() : nullptr, wanted, results, widen};
    const auto produce = [](const void* opaque, std::int64_t begin, std::int64_t count, float* out) {
        const state& s = *static_cast<const state*>(opaque);
        if (s.direct != nullptr) return s.widen(s.direct + begin * 2, out, count);
        alignas(64) std::uint16_t tile[cpu::reduce_detail::tile_elements];
        void* targets[cpu::most_results]{};
        std::int64_t sizes[cpu::most_results]{};
        targets[s.wanted] = tile;
        sizes[s.wanted] = sizeof tile[0];
        s.reader.read(begin, count, targets, sizes, s.results);
        s.widen(tile, out, count);
    };
    const buffer_view& out = call.out[0];
    float* const wide = static_cast<float*>(call.workspace);
    const cpu::reduce_source<float> source{nullptr, produce, &producer};
    reduce(call.domain.rank, call.domain.extents, static_cast<std::uint32_t>(call.attributes[0]), source, wide,
           static_cast<std::byte*>(call.workspace) + detail::float_bytes(out));
    cpu::narrow(out.type, out.data, wide, out.elements());
}
#endif

} // namespace tapegraph::runtime
