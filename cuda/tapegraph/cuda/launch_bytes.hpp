#pragma once

#include <cstdint>

/// The cost of a launch in bytes, for choices that weigh launches against memory traffic.

namespace tapegraph::cuda::detail {

/// A launch keeps a device waiting for as long as moving this many bytes takes: 1.3 us at 3.3 TB/s.
/// This is a prediction for an H100, not a measurement. It is a variable so that tests can steer
/// small tensors either way.
inline std::int64_t bytes_per_launch = std::int64_t{4} << 20;

} // namespace tapegraph::cuda::detail
