#pragma once

#include <tapegraph/core/config.hpp>

namespace tapegraph {

/// How the CPU computes a convolution of float and its gradients; double is always direct.
enum class convolution_algorithm : unsigned char {
    automatic, ///< of a layer: what the process has chosen; of the process, its default: chosen from the shape
               ///< (docs/performance/convolutions.md)
    direct,    ///< sums of products
    winograd,  ///< Winograd (Toom-Cook) tiles of 4 by 4 outputs, with errors 4 to 10 times as large
    fourier    ///< tiles along one dimension by real Fourier transforms
};

} // namespace tapegraph
