#pragma once

#include <tapegraph/core/dtype.hpp>

#include <operations/attributes.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// A random program as a value: a straight line of instructions that can be printed, read back, changed and run.

namespace tapegraph::fuzz {

using extents = testing::extents;

using testing::attributes;
using testing::choices;
using testing::number_text;

/// `op` names an operation of the table, or a leaf:
///   input       reals, drawn from [real[0], real[1]] by whole[0], the seed; whole[1...] are the extents
///   numbers     the same, by which nothing is differentiated
///   conditions  bools; whole as above
///   indices     int32 of [0, whole[1]) drawn by whole[0]; whole[2...] are the extents
///   constant    the number real[0] as a tensor of rank 0
struct instruction {
    std::string op{};
    std::vector<int> operands{}; ///< numbers of earlier instructions
    attributes with{};
    bool inner = false;      ///< part of the formulas that use it, instead of having a value of its own
    dtype type = dtype::f64; ///< what evaluation found
    extents dims{};

    bool leaf() const { return operands.empty(); }
};

struct program {
    std::vector<instruction> code;
    std::vector<int> outputs;

    int size() const { return static_cast<int>(code.size()); }
};

/// One line per instruction, "v2 ~= sum v0 v1 (1, 0) [0.5] : f64[2, 3]" ("~=" for an inner one), and the outputs.
std::string to_text(const program& p);
/// Reads what to_text writes; types and extents after the colon are not needed. Throws argument_error.
program from_text(const std::string& text);

} // namespace tapegraph::fuzz
