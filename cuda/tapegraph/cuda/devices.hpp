#pragma once

#include <tapegraph/core/device.hpp>

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif

/// Tells core/device.hpp which GPUs there are. Any source of a program that includes this does so for all of them.

namespace tapegraph::cuda {

inline device_report report_of(int index) {
    const driver::device_properties p = driver::properties(index);
    return {device::cuda(index), p.name, p.memory, p.major, p.minor, p.multiprocessors};
}

namespace detail {
inline const bool devices_are_known = [] {
    tapegraph::detail::cuda_backend() = {&driver::device_count, &driver::why_no_device, &report_of};
    return true;
}();
} // namespace detail

} // namespace tapegraph::cuda
