#pragma once

#include "options.hpp"

#include <tapegraph/tapegraph.hpp>

#include <cstdint>

/// What sources that contain models need.

namespace study {

/// Gives a GPU's pool the limit of --memory-limit, before its first buffer.
inline void limit_memory([[maybe_unused]] const common_options& o) {
#ifdef TG_CUDA
    if (o.device.is_cuda() && o.memory_limit > 0)
        tapegraph::cuda::memory_pool::of(o.device.index())
            .configure({.limit = static_cast<std::size_t>(o.memory_limit)});
#endif
}

/// The most memory that models have held: of the CPU's what tensors, variables among them, and a compiled graph's arena took;
/// of a GPU's all that was in use at once.
template <class Model>
std::int64_t library_high_water_mark(const Model& model, [[maybe_unused]] const common_options& o) {
#ifdef TG_CUDA
    if (o.device.is_cuda())
        return static_cast<std::int64_t>(tapegraph::cuda::memory_pool::of(o.device.index()).statistics().peak);
#endif
    std::int64_t bytes = tapegraph::eager_memory().peak;
    if constexpr (requires { model.arena_bytes(); }) bytes += static_cast<std::int64_t>(model.arena_bytes());
    return bytes;
}

} // namespace study
