#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

/// Operators that choose elements by indices, and that sort.

namespace tapegraph::io::onnx_import {

namespace rules {

/// Returns indices as i64, with negative ones counted from the end.
inline node from_the_front(call& c, int i, const extent& size) {
    const array* const known = c.known(i);
    if (known != nullptr && size.known() && !known->symbolic()) {
        array items(dtype::i64, known->dims());
        for (std::int64_t k = 0; k < known->size(); ++k) {
            const std::int64_t at = known->integer(k);
            if (at < -size.value || at >= size.value)
                refuse("index " + std::to_string(at) + " of an axis of " + std::to_string(size.value));
            static_cast<std::int64_t*>(items.data())[k] = at < 0 ? at + size.value : at;
        }
        return c.on.constant(items);
    }
    const node at = converted(c.plain(i), c.type(i), dtype::i64);
    return eval(where(at < 0, at + graph::extent_number(at, size), at));
}
inline shape attached(call& c, shape s) {
    s.attach(&c.on.trace().extents);
    return s;
}

inline void gather_rule(call& c) {
    const int axis = c.axis(c.integer("axis", 0), c.rank(0));
    if (c.known(1) != nullptr && c.known(1)->rank() == 0 && !c.known(1)->symbolic()) {
        std::vector<int> axes;
        const node x = as_it_lies(c, 0, axes);
        const std::int64_t at = c.known(1)->integer(0);
        const int place = place_of(axes, axis);
        axes.erase(axes.begin() + place);
        for (int& a : axes) a -= a > axis;
        return c.give_laid(0, take(x, at, place), c.type(0), axes);
    }
    c.give(0, gather(c.plain(0), from_the_front(c, 1, c.dims(0)[axis]), axis), c.type(0));
}
inline void gather_elements(call& c) {
    const int axis = c.axis(c.integer("axis", 0), c.rank(0));
    const shape picks = c.dims(1);
    if (picks.rank() != c.rank(0)) refuse("of several ranks");
    const node at = from_the_front(c, 1, c.dims(0)[axis]);
    node x = c.plain(0);
    for (int i = 0; i < picks.rank(); ++i)
        if (i != axis && !(x.shape()[i].value == picks[i].value)) x = part(x, i, 0, picks[i]);
    c.give(0, take_along(x, at, axis), c.type(0));
}

/// Flattens tuples on the last axis to positions in the axes [first, first + k) of s.
inline node positions(call& c, int i, const shape& s, int first, int k) {
    const node at = converted(c.plain(i), c.type(i), dtype::i64);
    node sum;
    for (int j = 0; j < k; ++j) {
        const extent size = s[first + j];
        const node one = take(at, j, at.rank() - 1);
        const node here = eval(where(one < 0, one + graph::extent_number(one, size), one));
        sum = j == 0 ? here : eval(sum * graph::extent_number(sum, size) + here);
    }
    return sum;
}
inline int width_of_tuples(call& c, int i) {
    const shape s = c.dims(i);
    if (s.rank() == 0) refuse("indices without an axis");
    return static_cast<int>(known_extent(s[s.rank() - 1], "tuples"));
}
inline void gather_nd_rule(call& c) {
    const auto batch = static_cast<int>(c.integer("batch_dims", 0));
    const shape s = c.dims(0), picks = c.dims(1);
    const int k = width_of_tuples(c, 1);
    if (batch < 0 || batch >= picks.rank() || batch + k > s.rank()) refuse("batch_dims = " + std::to_string(batch));
    std::vector<std::int64_t> flat, target;
    flat.push_back(s.size(0, batch).value), flat.push_back(s.size(batch, batch + k).value);
    flat.push_back(s.size(batch + k, s.rank()).value);
    const node at = positions(c, 1, s, batch, k);
    const node rows = reshape(at, shape_of_items(c, {flat[0], picks.size(batch, picks.rank() - 1).value}));
    const node chosen = gather(reshape(c.plain(0), shape_of_items(c, flat)), rows, 1, 1);
    for (int i = 0; i + 1 < picks.rank(); ++i) target.push_back(picks[i].value);
    for (int i = batch + k; i < s.rank(); ++i) target.push_back(s[i].value);
    c.give(0, reshape(chosen, shape_of_items(c, target)), c.type(0));
}

enum class joining { replace, add, multiply, largest, smallest };
inline joining joining_of(call& c) {
    const std::string how = c.text("reduction", "none");
    if (how == "none") return joining::replace;
    if (how == "add") return joining::add;
    if (how == "mul") return joining::multiply;
    if (how == "max") return joining::largest;
    if (how == "min") return joining::smallest;
    refuse("reduction = '" + how + "'");
}

/// Combines `data` with `updates` at indices along an axis, which is the last one of all three;
/// other extents are equal.
inline node placed(const node& data, const node& at, const node& updates, joining how) {
    const shape s = data.shape();
    if (how == joining::add) return eval(data + put_along(updates, at, s, -1));
    if (how == joining::replace) {
        const node hits = put_along(eval(full_like(at, 1.0)), at, s, -1);
        return eval(where(hits > 0, put_along(updates, at, s, -1), data));
    }
    // Every position looks at all updates, because several may meet there: their product or
    // extreme.
    const node places = arange<std::int64_t>(at, s[s.rank() - 1]);
    const node here = eval(with_axis(places, 1) == with_axis(at, at.rank() - 1)),
               value = with_axis(updates, at.rank() - 1);
    const double big = data.type() == dtype::i32  ? 2147483647.0
                       : is_floating(data.type()) ? std::numeric_limits<double>::infinity()
                                                  : 9007199254740992.0;
    const axes last = axes_of({here.rank() - 1});
    if (how == joining::multiply) return eval(data * prod(eval(where(here, value, 1)), last));
    if (how == joining::largest) return eval(maximum(data, max(eval(where(here, value, -big)), last)));
    return eval(minimum(data, min(eval(where(here, value, big)), last)));
}
/// The same for every element type.
inline node placed_any(const node& data, const node& at, const node& updates, joining how) {
    const dtype type = data.type();
    const dtype wide = type == dtype::u8 || type == dtype::boolean ? dtype::i32 : type;
    if (type == dtype::boolean && how != joining::replace) refuse("of bool, other than to replace");
    return converted(placed(converted(data, type, wide), at, converted(updates, type, wide), how), wide, type);
}
inline std::vector<int> axis_last(int axis, int rank) {
    std::vector<int> order;
    for (int i = 0; i < rank; ++i) order.push_back(i);
    std::swap(order[static_cast<std::size_t>(axis)], order.back());
    return order;
}
inline void scatter_elements(call& c) {
    const joining how = joining_of(c);
    const int rank = c.rank(0), axis = c.axis(c.integer("axis", 0), rank);
    if (c.rank(1) != rank || c.rank(2) != rank || c.type(2) != c.type(0)) refuse("of several ranks or types");
    const std::vector<int> order = axis_last(axis, rank);
    const node at = c.on.transposed(from_the_front(c, 1, c.dims(0)[axis]), order);
    const node updates = c.on.transposed(c.plain(2), order);
    node data = c.on.transposed(c.plain(0), order);
    const node whole = data;
    bool smaller = false;
    for (int i = 0; i + 1 < rank; ++i)
        if (at.shape()[i].value != data.shape()[i].value) {
            data = part(data, i, 0, at.shape()[i]);
            smaller = true;
        }
    node result = placed_any(data, at, updates, how);
    for (int i = rank - 2; smaller && i >= 0; --i) { // the remainder, axis by axis
        const extent size = result.shape()[i], whole_extent = whole.shape()[i];
        if (size.value == whole_extent.value) continue;
        node remainder = part(whole, i, size, whole_extent - size);
        for (int k = 0; k < i; ++k)
            if (remainder.shape()[k].value != result.shape()[k].value)
                remainder = part(remainder, k, 0, result.shape()[k]);
        result = tapegraph::concat(std::vector<node>{result, remainder}, i);
    }
    c.give(0, c.on.transposed(result, order), c.type(0));
}
inline void scatter_nd_rule(call& c) {
    const joining how = joining_of(c);
    const shape s = c.dims(0);
    const int k = width_of_tuples(c, 1);
    if (c.type(2) != c.type(0) || k > s.rank()) refuse("of several types, or by tuples longer than its rank");
    const extent rows = s.size(0, k), columns = s.size(k, s.rank()), count = c.dims(1).size(0, c.rank(1) - 1);
    const node at = reshape(positions(c, 1, s, 0, k), shape_of_items(c, {1, count.value}));
    const auto flat = [&](int i, const extent& n) {
        return c.on.transposed(reshape(c.plain(i), shape_of_items(c, {n.value, columns.value})), {1, 0});
    };
    const node spread = eval(broadcast_to(at, shape_of_items(c, {columns.value, count.value})));
    const node result = placed_any(flat(0, rows), spread, flat(2, count), how);
    c.give(0, reshape(c.on.transposed(result, {1, 0}), s), c.type(0));
}

inline void one_hot_rule(call& c) {
    const int axis = c.axis(c.integer("axis", -1), c.rank(0) + 1);
    const auto depth = static_cast<std::int64_t>(c.scalar(1, "a depth"));
    if (depth < 0) refuse("a depth of " + std::to_string(depth));
    const node given = converted(c.plain(0), c.type(0), dtype::i64);
    const node at = with_axis(eval(where(given < 0, given + static_cast<double>(depth), given)), axis);
    shape along;
    for (int i = 0; i <= c.rank(0); ++i) along.push_back(i == axis ? depth : 1);
    const node hit = eval(at == reshape(arange<std::int64_t>(c.on.example(), depth), along));
    const node values = c.plain(2);
    c.give(0, eval(where(hit, take(values, 1), take(values, 0))), c.type(2));
}
inline void top_k_rule(call& c) {
    const int axis = c.axis(c.integer("axis", -1), c.rank(0));
    const std::int64_t k =
        c.has(1) ? static_cast<std::int64_t>(c.integers(1, "numbers of elements").at(0)) : c.integer("k", 1);
    const bool largest = c.integer("largest", 1) != 0;
    c.ignore("sorted"); // sorted results are valid for either value
    const auto found = top_k(in_signed_order(c.plain(0), c.type(0)), k, axis, {.largest = largest});
    c.give(0, in_signed_order(found.values, c.type(0)), c.type(0));
    c.give(1, eval(cast<std::int64_t>(found.indices)), dtype::i64);
}
inline void reverse_sequence(call& c) {
    const std::int64_t time = c.integer("time_axis", 0), batch = c.integer("batch_axis", 1);
    if (time + batch != 1 || time < 0 || batch < 0 || c.rank(0) < 2) refuse("axes other than the first two");
    node x = c.plain(0);
    std::vector<int> order;
    for (int i = 0; i < c.rank(0); ++i) order.push_back(i);
    if (time == 0) std::swap(order[0], order[1]);
    x = c.on.transposed(x, order);
    const node lengths = with_axis(converted(c.plain(1), c.type(1), dtype::i64), 1);
    const node t = with_axis(arange<std::int64_t>(x, x.shape()[1]), 0);
    const node at = eval(where(t < lengths, lengths - 1 - t, t));
    c.give(0, c.on.transposed(gather(x, at, 1, 1), order), c.type(0));
}
inline std::span<const operator_rule> indexing() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Gather", &gather_rule},
        {"GatherElements", &gather_elements},
        {"GatherND", &gather_nd_rule},
        {"Scatter", &scatter_elements},
        {"ScatterElements", &scatter_elements},
        {"ScatterND", &scatter_nd_rule},
        {"OneHot", &one_hot_rule},
        {"TopK", &top_k_rule},
        {"ReverseSequence", &reverse_sequence},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
