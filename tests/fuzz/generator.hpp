#pragma once

#include <fuzz/program.hpp>

namespace tapegraph::fuzz {

struct generator_options {
    int most_instructions = 12;
    std::int64_t most_elements = 400; ///< of a value; now and then, programs are given ten times as many
    std::string only{};               ///< an operation every program must contain; empty: any
};

/// A program that suits its own operations: it has been evaluated, types and extents are set. The same program for the
/// same seed and table.
program generate(std::uint64_t seed, const generator_options& options = {});

} // namespace tapegraph::fuzz
