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

/// searchsorted, nonzero, unique: find elements and return int32 positions. They are built from
/// places (ops/ordering/places.hpp), sorts, running sums and gathers, so that they run wherever
/// those do. Not part of tapegraph.hpp.
///
/// The number of elements that nonzero and unique find depends on the data, but extents do not:
/// `size` is the length of the result, and `count` the number of valid elements. In eager mode,
/// without `size`, the result is exactly as long as the number found.

namespace tapegraph {

namespace detail {

template <handle H>
constexpr auto positions_below(const H& like, extent count, std::source_location where) {
    return arange<std::int32_t>(like, count, 0, 1, where);
}

/// The positions of the first `size` set marks of a line [n], counted from 1, in order, followed by
/// 0; and the number of set marks.
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
/// The elements of a line at such positions, and `missing` where there is none.
template <handle H, handle P>
constexpr auto at_places(const H& line, const P& places, double missing, std::source_location where) {
    return gather(pad(line, {{1, 0}}, {.value = missing}, where), places, 0, 0, where);
}

/// Marks elements of a line that differ from the one before; the first one does. NaN equals NaN, as
/// in NumPy.
template <handle H>
constexpr auto begins_of_runs(const H& line, std::source_location where) {
    const auto before = roll(line, 1, 0, where);
    const auto place = positions_below(line, shape_of(line)[0], where);
    const auto both_nan = logical_and(line != line, before != before);
    return eval(logical_or(place == 0, logical_and(line != before, logical_not(both_nan))), where);
}

} // namespace detail

/// Where a value that is there already would be inserted.
enum class search_side { left, right };

/// Options of `searchsorted`.
struct searchsorted_options {
    search_side side = search_side::left; ///< before or after elements of `sorted` that equal a value
};

/// The number of elements of `sorted` [..., n] before each value [..., m]: int32 [..., m]. The last
/// axis of `sorted` must be in ascending order, NaN last; the extents before it are the same in
/// both (tf.searchsorted; numpy.searchsorted has no such axes).
template <tensor_like S, tensor_like V>
constexpr auto searchsorted(const S& sorted, const V& values, searchsorted_options options = {},
                            std::source_location where = std::source_location::current()) {
    return invoke<searchsorted_op>({options.side == search_side::right}, nullptr, where, sorted, values);
}
no_such_option_in<searchsorted_options> searchsorted(any_argument, any_argument, ...) TG_MISTAKE;

/// The result of nonzero: coordinates, int32 [size, rank of x], in the order of the elements,
/// followed by zeros.
template <class Positions, class Count>
struct found_positions {
    Positions positions;
    Count count; ///< int32 []: number of nonzero elements, including those for which there was no room
};

/// The first `size` positions at which x is not 0 (NaN is not 0). A scalar has one position, which
/// needs no coordinates: [size, 0].
template <tensor_like A>
constexpr auto nonzero(const A& x, std::int64_t size, std::source_location where = std::source_location::current()) {
    const auto value = eval(x, where);
    const auto line_of_x = ravel(value, where);
    const shape dims = shape_of(value).rank() > 0 ? shape_of(value) : shape_of(line_of_x);
    const auto marks = eval(line_of_x != 0, where);
    const auto found = detail::marked_places(marks, size, where);
    // Coordinates are looked up in tensors broadcast over x, because one cannot divide by a
    // symbolic extent.
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

/// The result of unique: the distinct elements in ascending order, with a single NaN last.
template <class Values, class Indices, class Count>
struct unique_elements {
    Values values;   ///< [size], `fill_value` after the valid ones
    Indices indices; ///< int32 [size]: flat position of the first occurrence in x
    Indices inverse; ///< int32, one per element of flattened x: the index of its value
    Indices counts;  ///< int32 [size]: number of occurrences
    Count count;     ///< int32 []: number of distinct elements, including those for which there was no room
};
/// Options of `unique`, whose result has a fixed length.
struct unique_options {
    std::int64_t size = 0; ///< length of the result; further elements are dropped
    double fill_value = 0;
};

/// The distinct elements of x, read in row-major order (numpy.unique, jax.numpy.unique with size,
/// tf.unique sorted).
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
