#pragma once

#include <tapegraph/core/config.hpp>

#include <ctime>

namespace tapegraph::detail {

/// Seconds since some fixed moment, on a clock that nobody sets. <chrono> has one, too, but is long, and from g++ 13 on includes
/// streams and <format>; the umbrella header should not bring that into every program.
inline double steady_seconds() {
    std::timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

} // namespace tapegraph::detail
