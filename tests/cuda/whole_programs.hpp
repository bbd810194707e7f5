#pragma once

/// For tests of programs as users write them, which run on a GPU when nvcc compiles them and on the imitated device when a plain
/// C++ compiler does. Include it first.

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

/// Kernels that the device has been given so far.
inline int launches() { return tapegraph::cuda::driver::imitation::instance().launches; }
/// From now on the host cannot look into the device's memory.
inline const bool guarded = tapegraph::cuda::driver::imitation::instance().guarded = true;

} // namespace on_device
#endif
