#pragma once

#include <tapegraph/core/config.hpp>

namespace tapegraph {

/// How the CPU computes a convolution of float and its gradients; double is always direct.
enum class convolution_algorithm : unsigned char {
    automatic, ///< of a layer: what the process has chosen; of the process, its default: what the shape says (docs/performance.md)
    direct,   ///< sums of products
    winograd, ///< tiles of 4 by 4 outputs by fewer products (Toom and Cook), with errors 4 to 10 times as large
    fourier   ///< tiles along one dimension by real Fourier transforms
};

} // namespace tapegraph
