#pragma once

/// For tests of programs as users write them, which run on a GPU when nvcc compiles them and on the imitated device when a plain
/// C++ compiler does. Include it first.

#ifndef TG_CUDA
#define TG_CUDA
#endif
#ifndef __CUDACC__
#define TG_SIMT
#include <simt/driver.hpp>
#include <simt/instructions.hpp>
#endif

#include <tapegraph/tapegraph.hpp>

namespace on_device {

#ifdef TG_SIMT
using tapegraph::cuda::driver::late_device;

/// Kernels that the device has been given so far.
inline int launches() { return tapegraph::cuda::driver::imitation::instance().launches; }
/// From now on the host cannot look into the device's memory.
inline const bool guarded = tapegraph::cuda::driver::imitation::instance().guarded = true;
#else
/// A GPU is as late as it is.
struct late_device {
    late_device() {} // NOLINT: so that an object of it is used
};
#endif

} // namespace on_device
