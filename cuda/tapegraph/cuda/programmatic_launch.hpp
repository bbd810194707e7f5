#pragma once

#include <tapegraph/core/environment.hpp>

/// Switches programmatic dependent launch: kernels are launched while the preceding work of their
/// stream is still running.

namespace tapegraph::cuda {

/// On devices of compute capability 9.0 and later, kernels whose argument is kernels::dependent are
/// launched this way, both directly and in captured graphs. On by default.
/// TAPEGRAPH_PROGRAMMATIC_LAUNCH=0 in the environment, or setting this to false before the first
/// step, makes every kernel wait for its predecessor before it is launched.
inline bool& programmatic_launches() {
    static bool on = tapegraph::detail::environment_flag("TAPEGRAPH_PROGRAMMATIC_LAUNCH", true);
    return on;
}

} // namespace tapegraph::cuda
