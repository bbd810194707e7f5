#pragma once

#include <cstdint>

namespace study {

/// Bytes that are still available on this machine, or in the container that the process runs in; a
/// number larger than any need where that is unknown.
std::uint64_t available_memory();

/// The most memory this process has held, in bytes.
std::int64_t process_high_water_mark();

} // namespace study
