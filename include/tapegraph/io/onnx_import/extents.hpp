#pragma once

#include <tapegraph/io/onnx_import/call.hpp>

/// Shapes that are computed from shapes: integers, some of which are symbols, without a node.

namespace tapegraph::io::onnx_import {

namespace detail {

/// Gives extents in the element type of the operands: what is known as an array of that type, symbols as the i64 that encode them.
inline void give_extents(call& c, const array& items, dtype type) {
    if (type == dtype::i64) return c.give_known(0, items);
    if (items.symbolic()) {
        const value_pointer v = c.on.make_known(items);
        v->type = type;
        return c.give(0, v);
    }
    array narrow(type, items.dims());
    for (std::int64_t i = 0; i < items.size(); ++i)
        static_cast<std::int32_t*>(narrow.data())[i] = static_cast<std::int32_t>(items.integer(i));
    c.give_known(0, std::move(narrow));
}
inline void give_extents(call& c, const array& items) {
    give_extents(c, items, c.type(c.node().type == "Where" ? 1 : 0));
}
inline bool holds_extents(dtype type) { return type == dtype::i64 || type == dtype::i32; }

/// Whether an integer of a file is as low as those that encode symbols.
inline bool looks_symbolic(const array& a) {
    if (a.symbolic()) return false;
    for (std::int64_t i = 0; i < a.size(); ++i)
        if (is_symbolic(a.integer(i))) return true;
    return false;
}

inline bool arithmetic_of_extents(call& c, const std::string& op) {
    const array &a = *c.known(0), &b = *c.known(1);
    if (a.rank() > 1 || b.rank() > 1) return false;
    const std::int64_t n = a.size() == 1 ? b.size() : a.size();
    if ((a.size() != 1 && a.size() != n) || (b.size() != 1 && b.size() != n)) return false;
    extent_table* const table = &c.on.trace().extents;
    std::vector<std::int64_t> items;
    for (std::int64_t i = 0; i < n; ++i) {
        const extent x(a.integer(a.size() == 1 ? 0 : i), table), y(b.integer(b.size() == 1 ? 0 : i), table);
        if (op == "Add")
            items.push_back((x + y).value);
        else if (op == "Sub")
            items.push_back((x - y).value);
        else if (op == "Mul")
            items.push_back((x * y).value);
        else if (op == "Max") {
            if (x.value != y.value && !(x.known() && y.known()) && !(x.known() && x.value <= 0) &&
                !(y.known() && y.value <= 0))
                return false;
            const bool first = x.known() && y.known() ? x.value > y.value : !x.known();
            items.push_back(first ? x.value : y.value);
        } else if (y.known()) {
            if (y.value <= 0 || (x.known() && x.value < 0)) return false;
            items.push_back((x / y.value).value);
        } else {
            const std::int64_t quotient = x.value == 0         ? 0
                                          : x.value == y.value ? 1
                                                               : table->divide_exactly(x.value, y.value);
            if (quotient == -1) return false;
            items.push_back(quotient);
        }
    }
    give_extents(c, array::integers(items, a.rank() == 0 && b.rank() == 0));
    return true;
}

inline bool slice_of_extents(call& c) {
    const array& a = *c.known(0);
    std::vector<std::int64_t> starts, ends, axes{0}, steps{1};
    if (c.inputs() > 1) {
        starts = c.known(1)->as_integers(), ends = c.known(2)->as_integers();
        if (c.has(3)) axes = c.known(3)->as_integers();
        if (c.has(4)) steps = c.known(4)->as_integers();
    } else {
        starts = c.integers("starts"), ends = c.integers("ends"), axes = c.integers("axes", {0});
    }
    if (starts.size() != 1 || ends.size() != 1 || axes.size() != 1 || steps.size() != 1 || steps[0] <= 0) return false;
    if ((c.inputs() > 1 && (c.known(1)->symbolic() || c.known(2)->symbolic())) || (axes[0] != 0 && axes[0] != -1))
        return false;
    const std::int64_t n = a.size();
    const auto clipped = [n](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + n : v, 0, n); };
    std::vector<std::int64_t> items;
    for (std::int64_t i = clipped(starts[0]); i < clipped(ends[0]); i += steps[0]) items.push_back(a.integer(i));
    give_extents(c, array::integers(items));
    return true;
}

inline bool reshaped_extents(call& c, const std::string& op) {
    array same = *c.known(0);
    const bool drops = op == "Squeeze";
    if ((drops ? same.rank() != 1 || same.size() != 1 : op == "Unsqueeze" ? same.rank() != 0 : true)) return false;
    const std::vector<std::int64_t> axes = c.has(1) ? c.known(1)->as_integers() : c.integers("axes");
    if (axes.size() > 1 || (!axes.empty() && axes[0] != 0 && axes[0] != -1)) return false;
    same.set_dims(drops ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{1});
    give_extents(c, std::move(same));
    return true;
}

inline bool product_of_extents(call& c) {
    const array& items = *c.known(0);
    const std::vector<std::int64_t> axes = c.integers("axes", {0});
    if (items.rank() != 1 || c.has(1) || axes.size() != 1 || (axes[0] != 0 && axes[0] != -1) ||
        c.integer("noop_with_empty_axes", 0) != 0)
        return false;
    extent product(1, &c.on.trace().extents);
    for (std::int64_t i = 0; i < items.size(); ++i) product = product * extent(items.integer(i), &c.on.trace().extents);
    give_extents(c, array::integers({product.value}, c.integer("keepdims", 1) == 0));
    return true;
}

/// A scalar as a list of one, and back.
inline bool relaid_extents(call& c) {
    array same = *c.known(0);
    const array& dims = *c.known(1);
    if (dims.symbolic() || dims.size() > 1) return false;
    const std::int64_t one = dims.size() == 0 ? 1 : dims.integer(0);
    if (dims.size() == 0 ? same.size() != 1 : one != -1 && one != same.size()) return false;
    same.set_dims(dims.size() == 0 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{same.size()});
    c.integer("allowzero", 0);
    return give_extents(c, std::move(same)), true;
}

/// What exporters write around Expand: is an extent -1? An extent that is not known is never negative, so it differs from -1.
inline bool equal_extents(call& c) {
    const array &a = *c.known(0), &b = *c.known(1);
    const std::int64_t n = a.size() == 1 ? b.size() : a.size();
    if ((a.size() != 1 && a.size() != n) || (b.size() != 1 && b.size() != n)) return false;
    array equal(dtype::boolean,
                a.rank() == 0 && b.rank() == 0 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{n});
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t x = a.integer(a.size() == 1 ? 0 : i), y = b.integer(b.size() == 1 ? 0 : i);
        const bool unknown = (a.symbolic() && is_symbolic(x)) || (b.symbolic() && is_symbolic(y));
        if (unknown && x != y) {
            const std::int64_t other = a.symbolic() && is_symbolic(x) ? y : x;
            if (other >= 0 || is_symbolic(other)) return false;
        }
        static_cast<bool*>(equal.data())[i] = x == y;
    }
    return c.give_known(0, std::move(equal)), true;
}
inline bool chosen_extents(call& c) {
    for (int i = 0; i < 3; ++i)
        if (!c.has(i) || c.known(i)->rank() > 1 || c.known(i)->size() > 64 ||
            (i == 0 ? c.type(i) != dtype::boolean
                    : !holds_extents(c.type(i)) || c.type(i) != c.type(1) || looks_symbolic(*c.known(i))))
            return false;
    const array &which = *c.known(0), &yes = *c.known(1), &no = *c.known(2);
    const std::int64_t n = which.size();
    if (which.rank() != yes.rank() || yes.rank() != no.rank() || yes.size() != n || no.size() != n) return false;
    std::vector<std::int64_t> items;
    for (std::int64_t i = 0; i < n; ++i) items.push_back((which.integer(i) != 0 ? yes : no).integer(i));
    return give_extents(c, array::integers(items, which.rank() == 0)), true;
}

} // namespace detail

inline bool compute_extents(call& c) {
    const std::string& op = c.node().type;
    if (op == "Where") return detail::chosen_extents(c);
    for (int i = 0; i < c.inputs(); ++i)
        if (c.has(i) && (!detail::holds_extents(c.type(i)) || c.known(i)->rank() > 1 || c.known(i)->size() > 64 ||
                         ((op != "Slice" || i == 0) && detail::looks_symbolic(*c.known(i)))))
            return false;
    if (!c.has(0)) return false;
    if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div" || op == "Max")
        return c.inputs() == 2 && c.has(1) && c.type(0) == c.type(1) && detail::arithmetic_of_extents(c, op);
    if (op == "ReduceProd") return detail::product_of_extents(c);
    if (op == "Slice" && c.known(0)->rank() == 1) return detail::slice_of_extents(c);
    if (op == "Squeeze" || op == "Unsqueeze") return detail::reshaped_extents(c, op);
    if (op == "Reshape") return c.has(1) && detail::relaid_extents(c);
    if (op == "Equal") return c.has(1) && detail::equal_extents(c);
    if (op == "Identity") return c.give(0, c.pointer(0)), true;
    if (op == "Cast" && (c.integer("to", 0) == 6 || c.integer("to", 0) == 7)) {
        if (c.known(0)->symbolic() || c.integer("to", 0) == 7) {
            array same = array::integers(c.known(0)->as_integers());
            same.set_dims(c.known(0)->dims());
            return detail::give_extents(c, same, c.integer("to", 0) == 6 ? dtype::i32 : dtype::i64), true;
        }
        return false;
    }
    if (op == "Gather" && c.known(0)->rank() == 1) {
        const std::int64_t axis = c.integer("axis", 0);
        const array &from = *c.known(0), &at = *c.known(1);
        if (axis != 0 && axis != -1) return false;
        std::vector<std::int64_t> items;
        for (std::int64_t i = 0; i < at.size(); ++i) {
            const std::int64_t k = at.integer(i) < 0 ? at.integer(i) + from.size() : at.integer(i);
            if (k < 0 || k >= from.size())
                refuse("index " + std::to_string(at.integer(i)) + " of " + std::to_string(from.size()));
            items.push_back(from.integer(k));
        }
        return detail::give_extents(c, array::integers(items, at.rank() == 0)), true;
    }
    if (op == "Concat") {
        std::vector<std::int64_t> items;
        const std::int64_t axis = c.integer("axis", 0);
        if (axis != 0 && axis != -1) return false;
        for (int i = 0; i < c.inputs(); ++i) {
            if (!c.has(i) || c.known(i)->rank() != 1 || c.type(i) != c.type(0)) return false;
            const auto more = c.known(i)->as_integers();
            items.insert(items.end(), more.begin(), more.end());
        }
        return detail::give_extents(c, array::integers(items)), true;
    }
    return false;
}

} // namespace tapegraph::io::onnx_import
