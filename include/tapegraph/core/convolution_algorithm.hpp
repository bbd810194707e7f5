#pragma once

#include <tapegraph/core/config.hpp>

namespace tapegraph {

/// How a convolution of float and its gradients are computed; double is always direct. Devices choose
/// among kernels of their own (docs/devices.md), and use Winograd's algorithm only where it is
/// `automatic` or `winograd`.
enum class convolution_algorithm : unsigned char {
    automatic, ///< of a layer: what the process has chosen; of the process, its default: chosen from the shape
               ///< (docs/performance/convolutions.md)
    direct,    ///< sums of products
    winograd,  ///< Winograd (Toom-Cook) tiles of 4 by 4 outputs, with errors 4 to 10 times as large
    fourier    ///< tiles along one dimension by real Fourier transforms
};

} // namespace tapegraph
