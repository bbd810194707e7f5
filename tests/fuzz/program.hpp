#pragma once

#include <tapegraph/core/dtype.hpp>

#include <support/finite_differences.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// A random program as a value: a straight line of instructions that can be printed, read back, changed and run.

namespace tapegraph::fuzz {

using extents = testing::extents;

/// What an instruction is told beside its operands: axes, flags, extents; and numbers.
struct attributes {
    std::vector<std::int64_t> whole;
    std::vector<double> real;

    bool operator==(const attributes&) const = default;
};

/// `op` names a row of the table of operations, or a leaf:
///   input       reals, drawn from [real[0], real[1]] by whole[0], the seed; whole[1...] are the extents
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

/// All digits that a double needs to be read again.
std::string number_text(double value);
/// One line per instruction, "v2 ~= sum v0 v1 (1, 0) [0.5] : f64[2, 3]" ("~=" for an inner one), and the outputs.
std::string to_text(const program& p);
/// Reads what to_text writes; types and extents behind the colon are not needed. Throws argument_error.
program from_text(const std::string& text);

/// Numbers in [0, 1) and choices, reproducible from a seed.
class choices {
public:
    explicit choices(std::uint64_t seed) : numbers_(seed) {}
    double between(double low, double high) { return numbers_.between(low, high); }
    bool chance(double probability) { return numbers_.next() < probability; }
    /// A whole number of [low, high].
    std::int64_t whole(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(numbers_.next() * static_cast<double>(high - low + 1));
    }
    template <class List>
    const auto& pick(const List& list) {
        return list[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(std::size(list)) - 1))];
    }

private:
    testing::sequence numbers_;
};

} // namespace tapegraph::fuzz
