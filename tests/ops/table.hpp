#pragma once

#include <operations/operation.hpp>

/// The table tests: of every row values in double and float, first and second derivatives, at awkward shapes and values.

namespace tapegraph::testing {

/// A row's operands at given shapes, drawn from its domains.
tensors<double> drawn_operands(const row& r, const std::vector<extents>& shapes, std::uint64_t seed);

} // namespace tapegraph::testing
