#pragma once

#define TG_SIMT
#define TG_CUDA
#include <simt/instructions.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

/// Tests of composed operations on the imitated device, whose memory the host cannot access.

namespace tapegraph::testing {

inline const bool memory_is_guarded = cuda::driver::imitation::instance().guarded = true;

/// Checks that f gives the same on the device as on the CPU.
template <class F>
void check_same(const F& f) {
    const auto here = f();
    const int launches = cuda::driver::imitation::instance().launches;
    const device_scope on(device::cuda(0));
    CHECK(f() == here);
    CHECK(cuda::driver::imitation::instance().launches > launches);
}

} // namespace tapegraph::testing
