#pragma once

#ifndef __CUDACC__
#include <simt/driver.hpp>
#endif

namespace on_device {

/// While it lives, the imitated device does everything as late as CUDA allows. A real GPU's timing
/// is not changed.
#ifdef __CUDACC__
struct late_device {
    late_device() {} // NOLINT: so that an object of it is used
};
#else
using tapegraph::cuda::driver::late_device;
#endif

} // namespace on_device
