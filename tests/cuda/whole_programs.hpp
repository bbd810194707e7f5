#pragma once

/// For tests of programs as users write them, which run on a GPU when nvcc compiles them and on the
/// imitated device when a plain C++ compiler does. Include it first.

#ifndef TG_CUDA
#define TG_CUDA
#endif
#ifndef __CUDACC__
#define TG_SIMT
#include <simt/instructions.hpp>
#endif
#include <cuda/late_device.hpp>

#include <tapegraph/tapegraph.hpp>

#ifdef TG_SIMT
namespace on_device {

/// The number of kernels launched on the device so far.
inline int launches() { return tapegraph::cuda::driver::imitation::instance().launches; }
/// From now on the host cannot access the device's memory. Buffers of the first device are not
/// reused, so that freed memory stays inaccessible to everyone.
inline const bool guarded = [] {
    tapegraph::cuda::driver::imitation::instance().guarded = true;
    tapegraph::cuda::memory_pool::of(0).configure({.reuse = 0});
    return true;
}();

} // namespace on_device
#endif
