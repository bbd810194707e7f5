#pragma once

#include <tapegraph/ops/cumulative/cumulative.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/ordering/counting.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/ordering/places.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// searchsorted, nonzero, unique: where something is, as int32 positions. They stand on places (ops/ordering/places.hpp), sorts, running sums
/// and gathers, so that they run wherever those do. Not part of tapegraph.hpp.
///
/// How much nonzero and unique find depends on the elements, and extents do not: `size` says how many places the result has, and
/// `count` how many of them are meant. In eager mode, without `size`, the result is as long as what was found.

namespace tapegraph {

namespace detail {

template <handle H>
constexpr auto positions_below(const H& like, extent count, std::source_location where) {
    return arange<std::int32_t>(like, count, 0, 1, where);
}

/// The places of the first `size` marks of a line [n], counted from 1, in order, and 0 behind them; and how many marks there are.
template <class Places, class Count>
struct marked {
    Places places; ///< int32 [size]
    Count count;   ///< int32 []
};
template <handle H>
constexpr auto marked_places(const H& marks, std::int64_t size, std::source_location where) {
    const auto places = invoke<marked_places_op>({size}, nullptr, where, marks);
    const auto count = sum(cast<std::int32_t>(marks), {}, {}, where);
    return marked<std::remove_cvref_t<decltype(places)>, std::remove_cvref_t<decltype(count)>>{places, count};
}
/// What stands at such places of a line, and `missing` where there is none.
template <handle H, handle P>
constexpr auto at_places(const H& line, const P& places, double missing, std::source_location where) {
    return gather(pad(line, {{1, 0}}, {.value = missing}, where), places, 0, 0, where);
}

/// Elements of a line that differ from the one before; the first one does. NaN equals NaN, as in NumPy.
template <handle H>
constexpr auto begins_of_runs(const H& line, std::source_location where) {
    const auto before = roll(line, 1, 0, where);
    const auto place = positions_below(line, shape_of(line)[0], where);
    const auto both_nan = logical_and(line != line, before != before);
    return eval(logical_or(place == 0, logical_and(line != before, logical_not(both_nan))), where);
}

} // namespace detail

enum class search_side { left, right };

struct searchsorted_options {
    search_side side = search_side::left; ///< before those of `sorted` that equal a value, or behind them
};

/// How many elements of `sorted` [..., n] lie before each value [..., m]: int32 [..., m]. The last axis of `sorted` must be in
/// ascending order, NaN last; extents before it are the same in both (tf.searchsorted; numpy.searchsorted has no such axes).
template <tensor_like S, tensor_like V>
constexpr auto searchsorted(const S& sorted, const V& values, searchsorted_options options = {},
                            std::source_location where = std::source_location::current()) {
    return invoke<searchsorted_op>({options.side == search_side::right}, nullptr, where, sorted, values);
}
no_such_option_in<searchsorted_options> searchsorted(any_argument, any_argument, ...) TG_MISTAKE;

/// What nonzero gives: coordinates, int32 [size, rank of x], in the order of the elements, and zeros behind those that are meant.
template <class Positions, class Count>
struct found_positions {
    Positions positions;
    Count count; ///< int32 []: of all that are not 0, also of those for which there was no room
};

/// Where x is not 0 (true; NaN is not 0): the first `size` places. A scalar has one place, which needs no coordinates: [size, 0].
template <tensor_like A>
constexpr auto nonzero(const A& x, std::int64_t size, std::source_location where = std::source_location::current()) {
    const auto value = eval(x, where);
    const auto line_of_x = ravel(value, where);
    const shape dims = shape_of(value).rank() > 0 ? shape_of(value) : shape_of(line_of_x);
    const auto marks = eval(line_of_x != 0, where);
    const auto found = detail::marked_places(marks, size, where);
    // Coordinates are looked up where they are spread over x: a symbolic extent is no number that one could divide by.
    const auto coordinate = [&](int axis) {
        shape beside;
        for (int i = 0; i < dims.rank(); ++i) beside.push_back(i == axis ? dims[i] : extent(1));
        const auto line = reshape(detail::positions_below(marks, dims[axis], where), beside, where);
        const auto spread = ravel(broadcast_to(line, dims, where), where);
        return expand_dims(detail::at_places(spread, found.places, 0, where), -1, where);
    };
    auto positions = coordinate(0);
    if (shape_of(value).rank() == 0) positions = slice(positions, {{}, {0, 0}}, where);
    for (int axis = 1; axis < dims.rank(); ++axis) positions = concat(positions, coordinate(axis), 1, where);
    return found_positions<decltype(positions), std::remove_cvref_t<decltype(found.count)>>{positions, found.count};
}

/// What unique gives: the different elements in ascending order, NaN last and once.
template <class Values, class Indices, class Count>
struct unique_elements {
    Values values;   ///< [size], `fill_value` behind those that are meant
    Indices indices; ///< int32 [size]: where each occurs first in x, counted row by row
    Indices inverse; ///< int32, x's elements in a line: which of the values each is
    Indices counts;  ///< int32 [size]: how often each occurs
    Count count;     ///< int32 []: of all different elements, also of those for which there was no room
};
struct unique_options {
    std::int64_t size = 0; ///< places of the result; what does not fit is left out
    double fill_value = 0;
};

/// The different elements of x, which is read row by row (numpy.unique, jax.numpy.unique with size, tf.unique sorted).
template <tensor_like A>
constexpr auto unique(const A& x, unique_options options,
                      std::source_location where = std::source_location::current()) {
    const auto flat = ravel(eval(x, where), where);
    const shape dims = shape_of(flat);
    const auto order = argsort(flat, 0, {}, where);
    const auto line = take_along(flat, order, 0, where);
    const auto begins = detail::begins_of_runs(line, where);
    const auto found = detail::marked_places(begins, options.size, where);
    const auto which = eval(cumulative_sum(eval(cast<std::int32_t>(begins), where), 0, {}, where) - 1, where);
    const auto values = detail::at_places(line, found.places, options.fill_value, where);
    const auto indices = detail::at_places(order, found.places, 0, where);
    const auto inverse = put_along(which, order, dims, 0, where);
    const auto counts = invoke<count_places_op>({options.size, 1}, nullptr, where, which);
    return unique_elements<std::remove_cvref_t<decltype(values)>, std::remove_cvref_t<decltype(indices)>,
                           std::remove_cvref_t<decltype(found.count)>>{values, indices, inverse, counts, found.count};
}
no_such_option_in<unique_options> unique(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
