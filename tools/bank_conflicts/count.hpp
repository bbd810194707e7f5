#pragma once

#include <cstddef>
#include <cstdint>

/// Counts the conflicts of shared memory's banks in kernels that the executor (tests/simt) runs.
/// The compiler reports every access, as it would to ThreadSanitizer: kernels.cpp is compiled with
/// -O0 -fsanitize=thread, which leaves the accesses as they are written, and linked without it;
/// count.cpp implements the functions that are called. Accesses of a warp's lanes belong together
/// when they come from the same place in the code for the same time; where lanes take different
/// ways through a loop this is a guess.
///
/// A device serves a warp's accesses of 4 bytes together, those of 8 in two halves, those of 16 in
/// quarters. Each takes as many turns (cycles) as the busiest of the 32 banks of 4 bytes has
/// different words to read or write. Lanes that write into several blocks of a cluster are counted
/// as if these shared their banks. Lines of simt/ are the executor's, which stores there what a
/// device keeps in its barriers: they are not conflicts of a kernel.

namespace bank_conflicts {

void begin();
/// Prints a line for each place that reads or writes shared memory since the begin. Returns the
/// turns beyond the least.
std::uint64_t end(const char* name);

void note(const void* at, std::size_t bytes, bool write, const void* place);

} // namespace bank_conflicts
