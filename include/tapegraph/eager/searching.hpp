#pragma once

#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/ops/ordering/counting.hpp>
#include <tapegraph/ops/ordering/searching.hpp>

#include <string>

/// nonzero, where, unique and bincount of tensors, whose elements are known, so that the length of
/// the result depends on them. Not part of tapegraph.hpp.

namespace tapegraph {

/// The coordinates of all nonzero elements: int32 [found, rank of x].
template <class T>
auto nonzero(const tensor<T>& x, std::source_location where = std::source_location::current()) {
    const auto found = nonzero(x, x.size(), where);
    return eval(slice(found.positions, {{0, found.count.item()}}, where), where);
}
/// The same under the name of TensorFlow and NumPy.
template <class T>
auto where(const tensor<T>& condition, std::source_location where = std::source_location::current()) {
    return nonzero(condition, where);
}

/// All distinct elements; see above.
template <class T>
auto unique(const tensor<T>& x, std::source_location where = std::source_location::current()) {
    auto found = tapegraph::unique(x, {.size = x.size()}, where);
    const std::int64_t count = found.count.item();
    found.values = slice(found.values, {{0, count}}, where);
    found.indices = slice(found.indices, {{0, count}}, where);
    found.counts = slice(found.counts, {{0, count}}, where);
    return found;
}

/// Counts the occurrences of each of 0 .. the largest element. Throws range_error for a negative
/// value.
template <class T>
auto bincount(const tensor<T>& values, std::source_location where = std::source_location::current()) {
    if (values.size() == 0) return zeros<std::int32_t>({0});
    const std::int64_t least = min(values).item(), largest = max(values).item();
    if (least < 0) throw range_error("bincount: " + std::to_string(least) + " is negative");
    return bincount(values, largest + 1, where);
}

} // namespace tapegraph
