#pragma once

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif

#include <map>
#include <mutex>

namespace tapegraph::cuda {

/// Properties of the device that this thread uses, asked for once per device: CUDA takes a millisecond to answer.
inline const driver::device_properties& current_properties() {
    static std::mutex guard;
    static std::map<int, driver::device_properties> known;
    const int device = driver::current_device();
    const std::lock_guard lock(guard);
    const auto found = known.find(device);
    return found != known.end() ? found->second : known.emplace(device, driver::properties(device)).first->second;
}

} // namespace tapegraph::cuda
