#pragma once

#include <tapegraph/core/config.hpp>

namespace tapegraph {

/// How the CPU computes convolutions of float; double is always direct.
enum class convolution_algorithm : unsigned char {
    direct, ///< sums of products: the default
    fast ///< fewer products where the shape allows it (docs/performance.md): in two dimensions errors 4 to 10 times as large
};

} // namespace tapegraph
