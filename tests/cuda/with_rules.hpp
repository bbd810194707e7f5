#pragma once

#include <simt/blas.hpp>
#include <simt/driver.hpp>

namespace tapegraph::testing {

/// While it lives, a test may set the time of launches, which kernels compute wrongly
/// (driver::rules()), and the time of products of the imitated library.
struct with_rules {
    with_rules() = default;
    with_rules(const with_rules&) = delete;
    with_rules& operator=(const with_rules&) = delete;
    ~with_rules() {
        cuda::driver::rules() = {};
        cuda::blas::imitation::instance().cost = 1;
    }
};

} // namespace tapegraph::testing
