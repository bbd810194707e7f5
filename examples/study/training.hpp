#pragma once

#include "options.hpp"

#include <tapegraph/tapegraph.hpp>

#include <cstdint>

/// Shared by sources that contain models.

namespace study {

/// Applies the limit of --memory-limit to a GPU's pool, before its first buffer.
inline void limit_memory([[maybe_unused]] const common_options& o) {
#ifdef TG_CUDA
    if (o.device.is_cuda() && o.memory_limit > 0)
        tapegraph::cuda::memory_pool::of(o.device.index())
            .configure({.limit = static_cast<std::size_t>(o.memory_limit)});
#endif
}

/// The most memory that models have held: on the CPU what tensors, including variables, and a
/// compiled graph's arena took; on a GPU everything that was in use at once.
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
