#pragma once

#include <tapegraph/ops/convolution/cpu.hpp>
#include <tapegraph/ops/convolution/cpu_algorithm.hpp>
#include <tapegraph/runtime/kept_memory.hpp>

namespace tapegraph::runtime::detail {

/// The transformed filters of a call (operand 1), in a program that keeps them between runs; null
/// elsewhere. At batch 1 transforming them takes about as long as the rest of the convolution.
inline const float* kept_filters(const kernel_call& c, const convolution_geometry& g,
                                 const cpu::convolution_algorithm_passes& algorithm) {
    if (c.kept == nullptr || g.batch <= 0) return nullptr;
    const cpu::transformed_filters layout = algorithm.layout(g);
    return static_cast<const float*>(
        c.kept->made_of(c, 1, layout.key, static_cast<std::size_t>(layout.floats) * sizeof(float),
                        [&](void* to) { algorithm.filters(g, c.in[1].as<const float>(), static_cast<float*>(to)); }));
}

/// The same where the filters of direct sums are arranged otherwise, which takes about as long as
/// the products of a few pixels. May be null in such programs, too.
template <class T>
const T* kept_direct_filters(const kernel_call& c, const convolution_geometry& g) {
    const std::size_t bytes = c.kept == nullptr ? 0 : cpu::kept_filter_bytes<T>(g);
    if (bytes == 0) return nullptr;
    const kept_memory::key_type key{kept_filters_key + 2 * g.groups + (cpu::detail::unfolds(g) ? 1 : 0), g.out_channels,
                                    g.kernel_height * g.kernel_width * g.group_in(),
                                    cpu::active_tile_kernels<T>().lanes};
    return static_cast<const T*>(c.kept->made_if_unchanged(
        c, 1, key, bytes, [&](void* to) { cpu::arrange_kept_filters(g, c.in[1].as<const T>(), static_cast<T*>(to)); }));
}

/// Tells reports how much memory a forward pass keeps. `algorithm`: null for direct sums.
template <class T>
void announce_filters(const kernel_call& c, const convolution_geometry& g,
                      const cpu::convolution_algorithm_passes* algorithm) {
    if (c.kept == nullptr || !c.kept->watches(c, 1)) return;
    if (algorithm == nullptr)
        c.kept->announce(cpu::kept_filter_bytes<T>(g));
    else
        c.kept->announce(g.batch <= 0 ? 0 : static_cast<std::size_t>(algorithm->layout(g).floats) * sizeof(float));
}

} // namespace tapegraph::runtime::detail
