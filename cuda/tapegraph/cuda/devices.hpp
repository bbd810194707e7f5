#pragma once

#include <tapegraph/core/device.hpp>

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif

/// Registers the process's GPUs with core/device.hpp. One source that includes this does so for the
/// whole program.

namespace tapegraph::cuda {

inline device_report report_of(int index) {
    const driver::device_properties p = driver::properties(index);
    return {device::cuda(index), p.name, p.memory, p.major, p.minor, p.multiprocessors};
}

namespace detail {
inline const bool devices_are_known = [] {
    tapegraph::detail::device_backend& backend = tapegraph::detail::cuda_backend();
    backend.count = &driver::device_count;
    backend.why_none = &driver::why_no_device;
    backend.report = &report_of;
    return true;
}();
} // namespace detail

} // namespace tapegraph::cuda
