#pragma once

#include <tapegraph/cluster/ranks/thread_exchange.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace distributed_test {

/// The error of f(exchange), which must be the same on each of `size` ranks; empty if it throws nothing.
template <class F>
std::string error_on_ranks(int size, const F& f) {
    std::vector<std::string> texts(static_cast<std::size_t>(size));
    tapegraph::distributed::run_ranks(size, [&](tapegraph::distributed::exchange& ranks) {
        try {
            f(ranks);
        } catch (const tapegraph::error& e) {
            texts[static_cast<std::size_t>(ranks.rank())] = e.what();
        }
    });
    for (const std::string& each : texts) CHECK(each == texts[0]);
    return texts[0];
}

} // namespace distributed_test
