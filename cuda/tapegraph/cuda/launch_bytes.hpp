#pragma once

#include <cstdint>

/// What a launch costs, where a number of launches is weighed against bytes through memory.

namespace tapegraph::cuda::detail {

/// A launch keeps a device waiting as long as this many bytes: 1.3 us at 3.3 TB/s. A prediction for an H100, not measured. A
/// variable, so that tests can have small tensors go either way.
inline std::int64_t bytes_per_launch = std::int64_t{4} << 20;

} // namespace tapegraph::cuda::detail
