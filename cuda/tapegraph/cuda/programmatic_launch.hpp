#pragma once

#include <tapegraph/core/environment.hpp>

/// Whether kernels may be launched while what the stream was given before is still being done (programmatic dependent launch).

namespace tapegraph::cuda {

/// On devices of compute capability 9.0 and later, kernels whose argument is kernels::dependent are launched so, by themselves and in
/// captured graphs. On by default; TAPEGRAPH_PROGRAMMATIC_LAUNCH=0 in the environment, or setting it here before the first step,
/// has every kernel launched when its predecessor is done.
inline bool& programmatic_launches() {
    static bool on = tapegraph::detail::environment_flag("TAPEGRAPH_PROGRAMMATIC_LAUNCH", true);
    return on;
}

} // namespace tapegraph::cuda
