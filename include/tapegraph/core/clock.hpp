#pragma once

#include <tapegraph/core/config.hpp>

#include <time.h> // of POSIX: MinGW has what follows in no namespace of its own

namespace tapegraph::detail {

/// Seconds since a fixed moment, on a monotonic clock. <chrono> has one, too, but is a long header
/// that includes streams and <format> from g++ 13 on; the umbrella header should not bring those
/// into every program.
inline double steady_seconds() {
    ::timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

} // namespace tapegraph::detail
