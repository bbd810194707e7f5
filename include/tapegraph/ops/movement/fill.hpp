#pragma once

#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/movement/slice.hpp>

/// Constants created with a handle that selects the mode: full_like, zeros_like, ones_like, fill,
/// arange, linspace, eye; and masks by position: tril, triu, diag, diag_part, sequence_mask.

namespace tapegraph {

/// The second operand in the shape and type of the first, whose values are ignored.
struct full_like_op : map_op<2> {
    static constexpr std::string_view name = "full_like";
    template <class V>
    TG_HD static constexpr V value(V, V y) {
        return y;
    }
    template <int I>
        requires(I == 1)
    static constexpr auto vjp(auto dy, auto, auto, auto) { return dy; }
};

/// A number in the shape and element type of x. It is a formula, like every elementwise operation;
/// x receives no derivative.
template <tensor_like A>
constexpr auto full_like(const A& x, double value) {
    return apply<full_like_op>(x, value);
}
/// Zeros of x's type and shape.
template <tensor_like A>
constexpr auto zeros_like(const A& x) {
    return apply<full_like_op>(x, 0.0);
}
/// Ones of x's type and shape.
template <tensor_like A>
constexpr auto ones_like(const A& x) {
    return apply<full_like_op>(x, 1.0);
}

/// begin + step i for the i-th element, counted through the whole shape; the operand only selects
/// the mode.
template <class T>
struct arange_op {
    static constexpr std::string_view name = "arange";
    using result_element = T;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr bool takes_storage_types = true;
    static constexpr int arity = 1;
    struct attributes {
        double begin = 0, step = 0, last = 0;
        std::int64_t ends = 0; ///< if not zero, the last element is exactly `last`
    };
    static constexpr void infer(const attributes&, inference& io) {
        io.type = dtype_of<T>;
        io.result = *io.target;
        io.require_no_negative_extent("fill, arange: an extent is negative");
    }
};

/// A tensor filled with one number. `like` is any handle of the model: fill<float>(x, {3, 4}, 0.5).
template <class T, tensor_like L>
constexpr auto fill(const L& like, shape dims, double value,
                    std::source_location where = std::source_location::current()) {
    dims.attach(shape_of(like).table());
    return invoke<arange_op<T>>({value, 0, 0, 0}, &dims, where, like);
}

namespace detail {
/// A tensor of `dims` with the element type of x, which is float or double.
template <handle X>
constexpr auto filled_like(const X& x, const shape& dims, double value, std::source_location where) {
    if constexpr (one_handle<mode_of_t<X>>)
        return type_of(x) == dtype::f64 ? fill<double>(x, dims, value, where) : fill<float>(x, dims, value, where);
    else
        return fill<element_t<static_type<X>::value>>(x, dims, value, where);
}
} // namespace detail

/// begin, begin + step, ...: `count` elements of type T.
template <class T, tensor_like L>
constexpr auto arange(const L& like, extent count, double begin = 0, double step = 1,
                      std::source_location where = std::source_location::current()) {
    shape dims;
    dims.attach(shape_of(like).table());
    dims.push_back(count);
    return invoke<arange_op<T>>({begin, step, 0, 0}, &dims, where, like);
}

/// `count` evenly spaced numbers from begin to end, both included.
template <class T, tensor_like L>
constexpr auto linspace(const L& like, double begin, double end, std::int64_t count,
                        std::source_location where = std::source_location::current()) {
    shape dims;
    dims.attach(shape_of(like).table());
    dims.push_back(count);
    const double step = count > 1 ? (end - begin) / static_cast<double>(count - 1) : 0;
    return invoke<arange_op<T>>({begin, step, end, count > 1}, &dims, where, like);
}

namespace detail {
/// column - row for every element of a matrix, as a formula.
template <tensor_like L>
constexpr auto diagonal_number(const L& like, extent rows, extent columns, std::source_location where) {
    const auto column = arange<std::int32_t>(like, columns, 0, 1, where); // named: operands of one call are in no order
    const auto row = expand_dims(arange<std::int32_t>(like, rows, 0, 1, where), -1, where);
    return column - row;
}
/// The last two extents. A vector counts as a matrix of one repeated row, and is refused when it is
/// combined with the mask.
constexpr extent last_extent(const shape& s, int from_end) {
    return s.rank() >= from_end ? s[s.rank() - from_end] : extent(0);
}
} // namespace detail

/// Ones on diagonal `offset` (above the main one when positive), zeros elsewhere: [rows, columns].
template <class T, tensor_like L>
constexpr auto eye(const L& like, extent rows, extent columns, std::int64_t offset = 0,
                   std::source_location where = std::source_location::current()) {
    return eval(cast<T>(detail::diagonal_number(like, rows, columns, where) == offset), where);
}
template <class T, tensor_like L>
constexpr auto eye(const L& like, extent rows, std::source_location where = std::source_location::current()) {
    return eye<T>(like, rows, rows, 0, where);
}

/// The matrices of the last two axes with zeros above diagonal `offset`, as a formula.
template <tensor_like A>
constexpr auto tril(const A& x, std::int64_t offset = 0, std::source_location where = std::source_location::current()) {
    const shape s = shape_of(x);
    const auto kept =
        eval(detail::diagonal_number(x, detail::last_extent(s, 2), detail::last_extent(s, 1), where) <= offset, where);
    return tapegraph::where(kept, x, 0);
}
/// The matrices of the last two axes with zeros below diagonal `offset`, as a formula.
template <tensor_like A>
constexpr auto triu(const A& x, std::int64_t offset = 0, std::source_location where = std::source_location::current()) {
    const shape s = shape_of(x);
    const auto kept =
        eval(detail::diagonal_number(x, detail::last_extent(s, 2), detail::last_extent(s, 1), where) >= offset, where);
    return tapegraph::where(kept, x, 0);
}

/// Whether position k of a row is below its length: lengths [...] of i32 or i64 to bool [...,
/// longest].
template <tensor_like A>
constexpr auto sequence_mask(const A& lengths, extent longest,
                             std::source_location where = std::source_location::current()) {
    const auto places = arange<std::int64_t>(lengths, longest, 0, 1, where);
    return eval(places < cast<std::int64_t>(expand_dims(lengths, -1, where)), where);
}

/// Diagonal `offset` of the matrices on the last two axes, whose extents must be numbers: [..., n,
/// m] to [..., k].
template <tensor_like A>
constexpr auto diag_part(const A& x, std::int64_t offset = 0,
                         std::source_location where = std::source_location::current()) {
    const auto whole = eval(x, where);
    const shape from = shape_of(whole);
    const int rank = from.rank();
    if (rank < 2 || !from[rank - 1].known() || !from[rank - 2].known())
        return detail::refused_part(whole, slice_op::no_matrix, where);
    const std::int64_t n = from[rank - 2].value, m = from[rank - 1].value;
    const std::int64_t down = n + (offset < 0 ? offset : 0), right = m - (offset > 0 ? offset : 0);
    const std::int64_t shorter = down < right ? down : right, count = shorter < 0 ? 0 : shorter;
    shape flat = detail::no_axes(from);
    for (int i = 0; i + 2 < rank; ++i) flat.push_back(from[i]);
    flat.push_back(n * m);
    shape target = flat;
    target.set(rank - 2, count);
    slice_op::attributes a = detail::whole_slice();
    a.begin[rank - 2] = count == 0 ? 0 : offset < 0 ? -offset * m : offset;
    a.step[rank - 2] = m + 1;
    return invoke<slice_op>(a, &target, where, invoke<reshape_op>({}, &flat, where, whole));
}

/// Zeros with x on diagonal `offset`: [..., n], n a number, to [..., n + |offset|, n + |offset|].
template <tensor_like A>
constexpr auto diag(const A& x, std::int64_t offset = 0, std::source_location where = std::source_location::current()) {
    const auto values = eval(x, where);
    const shape from = shape_of(values);
    const int rank = from.rank();
    if (rank < 1 || rank == max_rank || !from[rank - 1].known())
        return detail::refused_part(values, slice_op::no_matrix, where);
    const std::int64_t n = from[rank - 1].value, side = n + (offset < 0 ? -offset : offset);
    shape flat = from, target = from;
    flat.set(rank - 1, side * side);
    target.set(rank - 1, side);
    target.push_back(side);
    pad_op::attributes a = detail::whole_slice();
    a.begin[rank - 1] = n == 0 ? 0 : offset < 0 ? -offset * side : offset;
    a.step[rank - 1] = side + 1;
    return invoke<reshape_op>({}, &target, where, invoke<pad_op>(a, &flat, where, values));
}

} // namespace tapegraph
