#pragma once

#include <tapegraph/data/pipeline.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

/// What tests of pipelines share.

namespace pipeline_test {

namespace tg = tapegraph;
namespace data = tapegraph::data;
using numbers = std::vector<std::int64_t>;

/// The elements of one epoch.
template <class Set>
auto elements_of(const Set& set, std::uint64_t epoch = 0) {
    std::vector<typename Set::element> all;
    for (auto& e : set.epoch(epoch)) all.push_back(e);
    return all;
}

/// Batches of numbers as lists.
template <class Set>
std::vector<numbers> batches_of(const Set& set, std::uint64_t epoch = 0) {
    std::vector<numbers> all;
    for (auto& e : set.epoch(epoch)) all.push_back(e.to_vector());
    return all;
}

inline numbers counted(std::int64_t from, std::int64_t to) {
    numbers all;
    for (; from < to; ++from) all.push_back(from);
    return all;
}

} // namespace pipeline_test
