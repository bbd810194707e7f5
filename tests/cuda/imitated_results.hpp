#pragma once

#define TG_SIMT
#define TG_CUDA
#include <simt/instructions.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

/// What is made of many operations, on the imitated device, whose memory the host cannot look into.

namespace tapegraph::testing {

inline const bool memory_is_guarded = cuda::driver::imitation::instance().guarded = true;

/// f gives on the device what it gives on the CPU.
template <class F>
void check_same(const F& f) {
    const auto here = f();
    const int launches = cuda::driver::imitation::instance().launches;
    const device_scope on(device::cuda(0));
    CHECK(f() == here);
    CHECK(cuda::driver::imitation::instance().launches > launches);
}

} // namespace tapegraph::testing
