#pragma once

#include <cstdint>

namespace study {

/// Bytes that this machine, or the container the process runs in, still has to give; a number beyond all need where that is
/// not known.
std::uint64_t available_memory();

/// The most memory this process has held, in bytes.
std::int64_t process_high_water_mark();

} // namespace study
