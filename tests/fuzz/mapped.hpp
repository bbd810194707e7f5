#pragma once

#include <fuzz/evaluate.hpp>

#include <cstdint>
#include <string>

/// vmap of every instruction of a program against the instruction run example by example.

namespace tapegraph::fuzz {

/// Some leaves become batches of one to three examples; what an instruction gives under vmap must be what it gives for each
/// example by itself. `values` are those of the program. Empty, or what differs; `instructions` counts those looked at.
std::string check_mapped(const program& p, const std::vector<any_tensor>& values, std::int64_t& instructions);

} // namespace tapegraph::fuzz
