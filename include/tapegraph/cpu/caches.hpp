#pragma once

#include <tapegraph/core/config.hpp>

#include <algorithm>
#include <cstdint>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

/// Cache sizes of a core. They only affect the order in which kernels traverse memory, never the
/// order of a sum: bits are the same on every processor of one instruction set.

namespace tapegraph::cpu {

/// Bytes of a core's L2, at most 1 MiB; 1 MiB also where the system does not report it.
inline std::int64_t l2_bytes() {
    static const std::int64_t bytes = [] {
        std::int64_t cache_bytes = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
        cache_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
        constexpr std::int64_t most = std::int64_t{1} << 20;
        return cache_bytes > 0 && cache_bytes < most ? cache_bytes : most;
    }();
    return bytes;
}

/// The number of parts of this size that stay in a core's L2 while other operands stream past them;
/// at least one.
inline std::int64_t parts_within_l2(std::int64_t bytes_of_part) {
    return std::max<std::int64_t>(1, l2_bytes() * 2 / 5 / bytes_of_part);
}

} // namespace tapegraph::cpu
