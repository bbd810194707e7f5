#pragma once

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
        c.kept->made_of(c.in[1], layout.key, static_cast<std::size_t>(layout.floats) * sizeof(float),
                        [&](void* to) { algorithm.filters(g, c.in[1].as<const float>(), static_cast<float*>(to)); }));
}

} // namespace tapegraph::runtime::detail
