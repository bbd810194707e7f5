#pragma once

#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/rounding.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/ordering/places.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// bincount, histogram_fixed_width: count occurrences of numbers. Counts are int32. Not part of
/// tapegraph.hpp.

namespace tapegraph {

namespace detail {
/// Keeps 0 .. length - 1 and maps everything else to length, one past the end, which nothing reads.
template <handle H>
constexpr auto counted_place(const H& values, std::int64_t length, std::source_location where) {
    const auto number = eval(cast<std::int32_t>(values), where);
    return eval(tapegraph::where(logical_and(number >= 0, number < length), number, length), where);
}
template <handle W, handle P>
constexpr auto counted(const W& weights, const P& places, std::int64_t length, std::source_location where) {
    return slice(scatter_add(weights, places, shape{length + 1}, 0, 0, where), {{0, length}}, where);
}
} // namespace detail

/// The number of occurrences of each of 0 .. length - 1 among integers of any shape: int32
/// [length]. Others are not counted (tf.math.bincount with maxlength; JAX with length).
template <tensor_like A>
constexpr auto bincount(const A& values, std::int64_t length,
                        std::source_location where = std::source_location::current()) {
    const auto number = eval(cast<std::int32_t>(ravel(eval(values, where), where)), where);
    return invoke<count_places_op>({length, 0}, nullptr, where, number);
}
/// The sums of the weights of each of 0 .. length - 1, added in their order: weights' type
/// [length]. Weights have the values' shape; the derivative by a weight is the adjoint of its bin,
/// and 0 for one that was not counted.
template <tensor_like A, tensor_like W>
constexpr auto bincount(const A& values, const W& weights, std::int64_t length,
                        std::source_location where = std::source_location::current()) {
    const auto flat = ravel(eval(values, where), where);
    return detail::counted(ravel(eval(weights, where), where), detail::counted_place(flat, length, where), length,
                           where);
}

/// The number of elements in each of `bins` bins of equal width between `low` and `high`: int32
/// [bins]. Elements below are counted in the first bin, elements at `high` or above in the last one
/// (tf.histogram_fixed_width); NaN is not counted.
template <tensor_like A>
constexpr auto histogram_fixed_width(const A& x, double low, double high, std::int64_t bins = 100,
                                     std::source_location where = std::source_location::current()) {
    const auto flat = ravel(eval(x, where), where);
    const double width = (high - low) / static_cast<double>(bins);
    const auto part = eval(floor((flat - low) / width), where);
    const double last = static_cast<double>(bins - 1);
    // Comparisons with NaN are false, so NaN is mapped to one past the last bin. The cast sees only
    // numbers of bins.
    const auto place =
        eval(tapegraph::where(part <= 0, 0,
                              tapegraph::where(part >= last, last, tapegraph::where(part == part, part, bins))),
             where);
    return bincount(place, bins, where);
}

} // namespace tapegraph
