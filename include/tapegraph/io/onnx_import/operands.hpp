#pragma once

#include <tapegraph/io/onnx_import/call.hpp>

/// Helpers of many rules: operands in one layout, conversions of element types, named axes.

namespace tapegraph::io::onnx_import {

/// All rules compute on graph nodes; they seal formulas at once.
using node = graph_node;

/// -2^63. Elements of u64 are i64 with the same bits.
inline constexpr double lowest_i64 = -9223372036854775808.0;
/// Swaps the order of u64 and that of its bits as i64: the highest bit is inverted. For other types it
/// is x.
inline node in_signed_order(const node& x, dtype type) {
    return type == dtype::u64 ? node(eval(where(x < 0, x - lowest_i64, x + lowest_i64))) : x;
}
/// Half of elements of u64, without the remainder.
inline node half_of_u64(const node& x) {
    const node half = eval(floor_divide(x, 2));
    return eval(where(x < 0, half - lowest_i64, half));
}
/// u64 as floating numbers, rounded once: what is cut off from halves of large ones counts, if at all, as a
/// lowest bit.
inline node u64_as(const node& x, dtype to) {
    node y = x;
    const auto convert = [&]<class T>(std::type_identity<T>) {
        const node half = half_of_u64(x), odd = eval(maximum(half % 2, x % 2));
        y = eval(where(x < 0, 2 * cast<T>(half - half % 2 + odd), cast<T>(x)));
    };
    floating_types::visit(to, convert);
    return y;
}

/// Converts elements of a file's type `from` to `to`.
inline node converted(const node& x, dtype from, dtype to) {
    if (from == to) return x;
    const auto as = [](const node& v, dtype type) -> node {
        if (v.type() == type) return v;
        node result = v;
        const auto cast_to = [&]<class T>(std::type_identity<T>) { result = eval(cast<T>(v)); };
        if (!common_types::visit(type, cast_to)) cast_to(std::type_identity<bool>{});
        return result;
    };
    if (from == dtype::u64 && is_floating(to)) return u64_as(x, to);
    if (to == dtype::u64 && is_floating(from)) {
        const node wide = as(x, dtype::f64);
        const node above = eval(cast<std::int64_t>(wide + lowest_i64) + lowest_i64); // from 2^63 on
        return eval(where(wide >= -lowest_i64, above, cast<std::int64_t>(wide)));
    }
    if (to == dtype::boolean) return x.type() == dtype::boolean ? x : eval(x != 0);
    if (to == dtype::u8) { // numbers outside its range wrap
        if (from == dtype::boolean) return as(x, dtype::u8);
        const node wide = as(x, is_floating(from) ? dtype::i32 : dtype::i64);
        return as(eval(wide % 256), dtype::u8);
    }
    if (size_of(carrier_of(to)) > size_of(to)) {
        const node wide = as(x, dtype::i64);
        return as(call::wrapped(wide, to), carrier_of(to));
    }
    return as(x, carrier_of(to));
}

/// Operands of one formula in one layout.
struct laid {
    std::vector<node> x;
    std::vector<int> axes; ///< of the result; empty: in order
};

inline laid side_by_side(call& c, const std::vector<int>& which) {
    laid result;
    int wide = 0, holders = 0;
    const auto is_number = [&](int i) {
        return c.known(i) != nullptr && c.known(i)->size() == 1 && c.operand(i).weight.empty() &&
               !c.known(i)->symbolic();
    };
    for (const int i : which) wide = std::max(wide, c.rank(i));
    for (const int i : which)
        if (c.rank(i) == wide) {
            if (!is_number(i)) ++holders;
            if (result.axes.empty() && c.operand(i).traced) result.axes = c.operand(i).axes;
        }
    for (const int i : which) {
        if (is_number(i) && (holders > 0 || c.rank(i) == 0)) {
            array number = *c.known(i);
            number.set_dims({});
            result.x.push_back(c.on.constant(number));
        } else if (c.rank(i) == wide || result.axes.empty()) {
            result.x.push_back(result.axes.empty() ? c.plain(i) : c.arranged(i, result.axes));
        } else {
            const shape own = c.dims(i);
            shape full;
            full.attach(&c.on.trace().extents);
            for (int k = 0; k < wide - own.rank(); ++k) full.push_back(1);
            for (int k = 0; k < own.rank(); ++k) full.push_back(own[k]);
            result.x.push_back(c.on.transposed(reshape(c.plain(i), full), result.axes));
        }
    }
    return result;
}

/// Returns a value in its current layout, and the places of its axes.
inline node as_it_lies(call& c, int i, std::vector<int>& axes) {
    const node x = c.operand(i).traced ? c.operand(i).node : c.plain(i);
    axes = c.operand(i).axes;
    if (axes.empty())
        for (int k = 0; k < x.rank(); ++k) axes.push_back(k);
    return x;
}
inline int place_of(const std::vector<int>& axes, int axis) {
    return static_cast<int>(std::find(axes.begin(), axes.end(), axis) - axes.begin());
}

/// Axes of a reduction as the library's functions take them.
inline axes axes_of(const std::vector<int>& which) {
    axes a;
    a.all = false;
    a.count = 0;
    for (const int i : which) {
        if (a.count == max_rank) throw argument_error("axes: more of them than a tensor has");
        a.index[a.count++] = static_cast<std::int8_t>(i);
    }
    return a;
}

/// A shape of numbers and symbols.
inline shape shape_of_items(call& c, const std::vector<std::int64_t>& items) {
    if (items.size() > static_cast<std::size_t>(max_rank))
        refuse("a result of rank " + std::to_string(items.size()) + ", 8 is the highest");
    shape s(static_cast<int>(items.size()), items.data());
    s.attach(&c.on.trace().extents);
    return s;
}
/// Returns an extent that must be a number.
inline std::int64_t known_extent(const extent& e, const char* what) {
    if (!e.known()) refuse_symbols(std::string(what) + " of an extent that is not a number");
    return e.value;
}

/// A constant of these numbers.
inline node constant_of(call& c, const std::vector<double>& items, std::vector<std::int64_t> dims, dtype type) {
    if (type == dtype::f32) { // once, not in each prediction
        array a(dtype::f32, std::move(dims));
        for (std::size_t i = 0; i < items.size(); ++i) static_cast<float*>(a.data())[i] = static_cast<float>(items[i]);
        return c.on.constant(a);
    }
    array a(dtype::f64, std::move(dims));
    if (!items.empty()) std::memcpy(a.data(), items.data(), items.size() * sizeof(double));
    return converted(c.on.constant(a), dtype::f64, type);
}
/// `count` elements of an axis from `begin` on.
inline node part(const node& x, int axis, extent begin, extent count) {
    return tapegraph::detail::part_of(x, axis, begin, count, std::source_location::current());
}
inline node sliced(const node& x, const std::vector<range>& ranges) {
    const shape from = x.shape();
    shape target = from;
    slice_op::attributes a = tapegraph::detail::whole_slice();
    for (std::size_t i = 0; i < ranges.size(); ++i)
        tapegraph::detail::slice_axis(ranges[i], from, a, target, static_cast<int>(i));
    return graph::invoke<slice_op>(a, &target, std::source_location::current(), x);
}
inline node with_axis(const node& x, int at) { return expand_dims(x, axes_of({at})); }

/// A node that the file does not have, by which a rule computes: what is known stays known.
struct added_node {
    std::string type;
    std::vector<value_pointer> in;
    std::vector<attribute> attributes;
    std::int64_t opset;
};
inline value_pointer computed(call& c, const added_node& added) {
    file_node n;
    n.name = c.node().name.empty() && !c.node().outputs.empty() ? c.node().outputs.front() : c.node().name;
    n.type = added.type;
    n.attributes = added.attributes;
    n.outputs = {"result"};
    environment inside;
    inside.values[""] = nullptr;
    for (std::size_t i = 0; i < added.in.size(); ++i) {
        n.inputs.push_back(added.in[i] == nullptr ? "" : "operand " + std::to_string(i));
        inside.values[n.inputs.back()] = added.in[i];
    }
    const std::int64_t before = c.opset();
    c.on.set_opset(added.opset);
    c.on.run_node(n, inside);
    c.on.set_opset(before);
    const value_pointer result = inside.values["result"];
    if (result->refused) refuse("its parts do not fit together");
    return result;
}
inline attribute with(const char* name, std::int64_t i) {
    attribute a;
    a.name = name, a.type = attribute::integer, a.i = i;
    return a;
}
inline attribute with(const char* name, float f) {
    attribute a;
    a.name = name, a.type = attribute::number, a.f = f;
    return a;
}
inline attribute with(const char* name, std::vector<std::int64_t> items) {
    attribute a;
    a.name = name, a.type = attribute::integers, a.ints = std::move(items);
    return a;
}
/// The result of a standard operator, by a version of the standard that has operands for axes.
inline value_pointer result_of(call& c, const char* type, std::vector<value_pointer> in,
                               std::vector<attribute> attributes = {}) {
    while (!in.empty() && in.back() == nullptr) in.pop_back();
    return computed(c, {type, std::move(in), std::move(attributes), 21});
}
/// The values side by side along an axis, which is a new one if they are `raised`.
inline value_pointer joined(call& c, std::vector<value_pointer> parts, int axis, bool raised) {
    if (raised)
        for (value_pointer& v : parts)
            v = computed(c, {"Unsqueeze",
                             {v, c.on.make_known(array::integers({axis}))},
                             {},
                             std::max<std::int64_t>(c.opset(), 13)});
    return computed(
        c, {"Concat", std::move(parts), {with("axis", std::int64_t{axis})}, std::max<std::int64_t>(c.opset(), 4)});
}
/// The limit of parts that an operator makes: graphs of more take too long to build.
inline constexpr std::int64_t most_parts = 1000;

/// Computes in float where elements have 16 bits and the operation does not accept them.
template <class F>
node in_float(const node& x, const F& f) {
    if (!is_storage_type(x.type())) return f(x);
    const node y = f(converted(x, x.type(), dtype::f32));
    return y.type() == dtype::f32 ? converted(y, dtype::f32, x.type()) : y;
}

} // namespace tapegraph::io::onnx_import
