#pragma once

#include <tapegraph/ops/reduction/norm.hpp>

/// Lengths of gradients and variables for optimizers.

namespace tapegraph::detail {

/// The Euclidean norm of all elements, a scalar; correct even where squares would overflow or
/// underflow.
constexpr auto whole_length(const auto& x) {
    return euclidean(x, axes{}.bits(shape_of(x).rank()), false, std::source_location::current());
}

} // namespace tapegraph::detail
