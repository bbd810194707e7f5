#pragma once

#include <tapegraph/core/config.hpp>

namespace tapegraph {

/// How the CPU computes convolutions of float; double is always direct.
enum class convolution_algorithm : unsigned char {
    direct, ///< sums of products for every shape
    fast ///< the default: fewer products where the shape allows it (docs/performance.md), with errors 4 to 10 times as large there
};

} // namespace tapegraph
