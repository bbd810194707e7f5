#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

/// Operators that change the shape or the order of elements.

namespace tapegraph::io::onnx_import {

namespace rules {

inline void identity(call& c) { c.give(0, c.pointer(0)); }

inline void shape_rule(call& c) {
    const shape s = c.dims(0);
    const auto clipped = [&](std::int64_t v) {
        return std::clamp<std::int64_t>(v < 0 ? v + s.rank() : v, 0, s.rank());
    };
    const std::int64_t first = clipped(c.integer("start", 0)), last = clipped(c.integer("end", s.rank()));
    std::vector<std::int64_t> items;
    for (std::int64_t i = first; i < last; ++i) items.push_back(s[static_cast<int>(i)].value);
    c.give_known(0, array::integers(items));
}
inline void size_rule(call& c) { c.give_known(0, array::integers({c.dims(0).size().value}, true)); }

/// Moves nothing, for weights and other values alike: it only records another order of axes.
inline void transpose_rule(call& c) {
    std::vector<int> axes, places(static_cast<std::size_t>(c.rank(0)));
    const node x = as_it_lies(c, 0, axes);
    std::vector<std::int64_t> order = c.integers("perm");
    if (order.empty())
        for (int i = c.rank(0) - 1; i >= 0; --i) order.push_back(i);
    if (order.size() != axes.size()) refuse("perm of another rank");
    for (std::size_t i = 0; i < order.size(); ++i)
        places[static_cast<std::size_t>(c.axis(order[i], c.rank(0)))] = static_cast<int>(i);
    for (int& a : axes) a = places[static_cast<std::size_t>(a)];
    c.give_laid(0, x, c.type(0), axes);
}

inline void give_shaped(call& c, const std::vector<std::int64_t>& items) {
    const shape target = shape_of_items(c, items);
    c.give(0, reshape(c.plain(0), target), c.type(0));
}
inline void reshape_rule(call& c) {
    c.ignore("consumed_inputs");
    const bool zeros = c.integer("allowzero", 0) != 0;
    std::vector<std::int64_t> items = c.inputs() > 1 ? c.extents(1, "extents") : c.integers("shape");
    const shape from = c.dims(0);
    for (std::size_t i = 0; i < items.size(); ++i)
        if (items[i] == 0 && !zeros) {
            if (static_cast<int>(i) >= from.rank()) refuse("extent 0 of an axis that does not exist");
            items[i] = from[static_cast<int>(i)].value;
        }
    give_shaped(c, items);
}
inline void flatten_rule(call& c) {
    const shape from = c.dims(0);
    const std::int64_t a = c.integer("axis", 1);
    const int axis = a == from.rank() ? from.rank() : c.axis(a, from.rank() + (a < 0 ? 0 : 1));
    give_shaped(c, {from.size(0, axis).value, from.size(axis, from.rank()).value});
}
inline std::vector<std::int64_t> axes_input(call& c, int i) {
    return c.has(i) ? c.integers(i, "axes") : c.integers("axes");
}
inline void squeeze_rule(call& c) {
    const shape from = c.dims(0);
    std::set<int> gone;
    for (const std::int64_t a : axes_input(c, 1)) gone.insert(c.axis(a, from.rank()));
    for (int i = 0; gone.empty() && i < from.rank(); ++i)
        if (!from[i].known()) refuse_symbols("of whatever axes have one element");
    if (gone.empty())
        for (int i = 0; i < from.rank(); ++i)
            if (from[i].value == 1) gone.insert(i);
    std::vector<std::int64_t> items;
    for (int i = 0; i < from.rank(); ++i)
        if (!gone.contains(i))
            items.push_back(from[i].value);
        else if (from[i].known() && from[i].value != 1)
            refuse("axis " + std::to_string(i) + " has " + std::to_string(from[i].value) + " elements");
    give_shaped(c, items);
}
inline void unsqueeze_rule(call& c) {
    const shape from = c.dims(0);
    const std::vector<std::int64_t> given = axes_input(c, 1);
    const int rank = from.rank() + static_cast<int>(given.size());
    std::set<int> added;
    for (const std::int64_t a : given) added.insert(c.axis(a, rank));
    if (added.size() != given.size()) refuse("an axis is named twice");
    std::vector<std::int64_t> items;
    for (int i = 0, next = 0; i < rank; ++i) items.push_back(added.contains(i) ? 1 : from[next++].value);
    give_shaped(c, items);
}

inline void expand_rule(call& c) {
    const std::vector<std::int64_t> items = c.extents(1, "extents");
    bool valid = true;
    shape target = broadcast(c.dims(0), shape_of_items(c, items), valid);
    target.attach(&c.on.trace().extents);
    if (!valid) refuse("to a shape that does not fit");
    c.give(0, eval(broadcast_to(c.plain(0), target)), c.type(0));
}

inline void concat_rule(call& c) {
    std::vector<int> axes;
    for (int i = 0; i < c.inputs(); ++i)
        if (axes.empty() && c.operand(i).traced) axes = c.operand(i).axes;
    std::vector<node> parts;
    const int axis = c.axis(c.integer("axis", 1), c.rank(0));
    for (int i = 0; i < c.inputs(); ++i) {
        if (c.type(i) != c.type(0)) refuse("of several element types");
        if (c.rank(i) != c.rank(0)) refuse("of several ranks");
        parts.push_back(axes.empty() ? c.plain(i) : c.arranged(i, axes));
    }
    c.give_laid(0, tapegraph::concat(parts, axes.empty() ? axis : place_of(axes, axis)), c.type(0), axes);
}

inline void split_rule(call& c) {
    std::vector<int> axes;
    const node x = as_it_lies(c, 0, axes);
    const int axis = c.axis(c.integer("axis", 0), c.rank(0));
    const extent whole = c.dims(0)[axis];
    std::vector<std::int64_t> sizes = c.has(1) ? c.integers(1, "sizes") : c.integers("split");
    const std::int64_t count = c.integer("num_outputs", c.outputs());
    if (count != c.outputs())
        refuse("num_outputs = " + std::to_string(count) + ", and " + std::to_string(c.outputs()) + " outputs");
    if (sizes.empty()) {
        const std::int64_t n = known_extent(whole, "equal parts"), part_size = (n + count - 1) / count;
        for (std::int64_t k = 0; k < count; ++k)
            sizes.push_back(std::clamp<std::int64_t>(n - k * part_size, 0, part_size));
    }
    if (static_cast<int>(sizes.size()) != c.outputs()) refuse("of other than its outputs' number of sizes");
    std::int64_t at = 0;
    for (int k = 0; k < c.outputs(); at += sizes[static_cast<std::size_t>(k++)])
        c.give_laid(k, part(x, place_of(axes, axis), at, sizes[static_cast<std::size_t>(k)]), c.type(0), axes);
    if (whole.known() && at != whole.value) refuse("its sizes do not add up to " + std::to_string(whole.value));
}

inline void slice_rule(call& c) {
    const bool from_inputs = c.inputs() > 1;
    const auto list = [&](int i, const char* name) { return from_inputs ? c.extents(i, name) : c.integers(name); };
    std::vector<std::int64_t> starts = list(1, "starts"), ends = list(2, "ends"), steps, where;
    if (from_inputs ? c.has(3) : true) where = from_inputs ? c.integers(3, "axes") : c.integers("axes");
    if (where.empty())
        for (std::size_t i = 0; i < starts.size(); ++i) where.push_back(static_cast<std::int64_t>(i));
    steps = c.has(4) ? c.integers(4, "steps") : std::vector<std::int64_t>(starts.size(), 1);
    if (starts.size() != ends.size() || where.size() != starts.size() || steps.size() != starts.size())
        refuse("starts, ends, axes and steps of several lengths");
    std::vector<int> axes;
    node x = as_it_lies(c, 0, axes);
    std::vector<range> ranges(axes.size(), all);
    const shape from = c.dims(0);
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const int axis = c.axis(where[i], c.rank(0)), place = place_of(axes, axis);
        constexpr std::int64_t far = 1'000'000'000; // what converters write for "up to the end" is this or more
        const extent size = from[axis];
        if (is_symbolic(starts[i]) || is_symbolic(ends[i])) {
            const extent_table* const table = size.table;
            const extent begin(starts[i], const_cast<extent_table*>(table)),
                end(ends[i], const_cast<extent_table*>(table));
            if (steps[i] != 1 || (begin.known() && begin.value < 0) ||
                (end.known() && (end.value < 0 || end.value >= far)))
                refuse_symbols("to a place that is computed");
            x = part(x, place, begin, end - begin);
            continue;
        }
        range r{starts[i], ends[i], steps[i]};
        if (steps[i] == 0) refuse("steps of 0");
        if (size.known()) { // clips as Python does
            const std::int64_t n = size.value;
            const auto at = [&](std::int64_t v, std::int64_t low, std::int64_t high) {
                return std::clamp<std::int64_t>(v < 0 ? (v < -n - 1 ? -1 : v + n) : v, low, high);
            };
            const bool back = r.step < 0;
            const std::int64_t first = at(r.begin, back ? -1 : 0, back ? n - 1 : n),
                               last = at(r.end, back ? -1 : 0, back ? n - 1 : n);
            const std::int64_t count =
                back ? (first - last - r.step - 1) / -r.step : (last - first + r.step - 1) / r.step;
            slice_op::attributes a = tapegraph::detail::whole_slice();
            shape target = x.shape();
            a.begin[place] = count > 0 ? first : 0;
            a.step[place] = count > 0 ? r.step : 1;
            target.set(place, std::max<std::int64_t>(count, 0));
            x = graph::invoke<slice_op>(a, &target, std::source_location::current(), x);
            continue;
        }
        if (r.end >= far) r.end = all.end;
        if (r.step < 0) {
            if (r.step != -1 || (r.begin != -1 && r.begin < far) || r.end > -far)
                refuse_symbols("backwards over an extent that is not a number");
            x = reverse(x, axes_of({place}));
            continue;
        }
        if (r.begin < -far) r.begin = 0;
        ranges.assign(axes.size(), all);
        ranges[static_cast<std::size_t>(place)] = r;
        x = sliced(x, ranges);
    }
    c.give_laid(0, x, c.type(0), axes);
}

inline void tile_rule(call& c) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(c.rank(0)), 1);
    if (c.inputs() > 2) // before opset 6: tiles and axis
        counts[static_cast<std::size_t>(c.axis(static_cast<std::int64_t>(c.scalar(2, "axis")), c.rank(0)))] =
            static_cast<std::int64_t>(c.scalar(1, "tiles"));
    else
        counts = c.integers(1, "repeats");
    if (static_cast<int>(counts.size()) != c.rank(0)) refuse("of other than its operand's rank");
    const node x = c.plain(0);
    shape target = x.shape();
    index_map_op::attributes a;
    for (int i = 0; i < c.rank(0); ++i) {
        const std::int64_t count = counts[static_cast<std::size_t>(i)];
        if (count < 0) refuse("a negative number of times");
        target.set(i, target[i] * count);
        if (count != 1) a.map[i] = static_cast<std::int64_t>(index_map::wrap);
    }
    c.give(0, graph::invoke<index_map_op>(a, &target, std::source_location::current(), x), c.type(0));
}

/// Pads x before and after each axis; negative amounts cut off.
inline node padded(call& c, node x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
                   const std::string& mode, double fill) {
    for (int i = 0; i < x.rank(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        const std::int64_t cut_before = std::max<std::int64_t>(-before[k], 0),
                           cut_after = std::max<std::int64_t>(-after[k], 0);
        if (cut_before + cut_after > 0) x = part(x, i, cut_before, x.shape()[i] - cut_before - cut_after);
    }
    pad_op::attributes box = tapegraph::detail::whole_slice();
    index_map_op::attributes a;
    shape target = x.shape();
    const auto map = mode == "reflect" ? index_map::reflect : mode == "edge" ? index_map::edge : index_map::wrap;
    if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") refuse("mode = '" + mode + "'");
    bool any = false;
    for (int i = 0; i < x.rank(); ++i) {
        const std::int64_t added_before = std::max<std::int64_t>(before[static_cast<std::size_t>(i)], 0),
                           added_after = std::max<std::int64_t>(after[static_cast<std::size_t>(i)], 0);
        if (added_before + added_after == 0) continue;
        any = true;
        box.begin[i] = added_before;
        a.map[i] = static_cast<std::int64_t>(map);
        a.amount[i] = added_before;
        target.set(i, target[i] + (added_before + added_after));
    }
    (void)c;
    if (!any) return x;
    box.fill = fill;
    if (mode == "constant") return graph::invoke<pad_op>(box, &target, std::source_location::current(), x);
    return graph::invoke<index_map_op>(a, &target, std::source_location::current(), x);
}
inline void pad_rule(call& c) {
    const std::string mode = c.text("mode", "constant");
    std::vector<std::int64_t> amounts, where;
    double fill = 0;
    if (c.inputs() > 1) {
        amounts = c.integers(1, "amounts");
        if (c.has(2) && mode == "constant") fill = c.scalar(2, "a value");
        if (c.has(3)) where = c.integers(3, "axes");
    } else {
        amounts = c.integers(c.opset() < 2 ? "paddings" : "pads");
        fill = c.number("value", 0);
    }
    const int rank = c.rank(0);
    if (where.empty())
        for (int i = 0; i < rank; ++i) where.push_back(i);
    if (amounts.size() != 2 * where.size()) refuse("of other than two amounts an axis");
    std::vector<std::int64_t> before(static_cast<std::size_t>(rank)), after(static_cast<std::size_t>(rank));
    for (std::size_t i = 0; i < where.size(); ++i) {
        const auto k = static_cast<std::size_t>(c.axis(where[i], rank));
        before[k] = amounts[i], after[k] = amounts[i + where.size()];
    }
    std::vector<int> axes;
    const node x = as_it_lies(c, 0, axes);
    std::vector<std::int64_t> b, e;
    for (const int a : axes)
        b.push_back(before[static_cast<std::size_t>(a)]), e.push_back(after[static_cast<std::size_t>(a)]);
    c.give_laid(0, padded(c, x, b, e, mode, fill), c.type(0), axes);
}

inline node permuted(call& c, const node& x, const std::vector<int>& order) { return c.on.transposed(x, order); }
inline void depth_to_space(call& c) {
    const std::int64_t b = c.integer("blocksize", 1);
    const std::string mode = c.text("mode", "DCR");
    if (mode != "DCR" && mode != "CRD") refuse("mode = '" + mode + "'");
    if (c.rank(0) != 4 || b < 1) refuse("of rank " + std::to_string(c.rank(0)));
    const shape s = c.dims(0);
    const extent depth = s[1] / (b * b);
    const auto shaped = [&](const node& x, const std::vector<std::int64_t>& e) {
        return reshape(x, shape_of_items(c, e));
    };
    const bool dcr = mode == "DCR";
    node x = dcr ? shaped(c.plain(0), {s[0].value, b, b, depth.value, s[2].value, s[3].value})
                 : shaped(c.plain(0), {s[0].value, depth.value, b, b, s[2].value, s[3].value});
    x = permuted(c, x, dcr ? std::vector<int>{0, 3, 4, 1, 5, 2} : std::vector<int>{0, 1, 4, 2, 5, 3});
    c.give(0, shaped(x, {s[0].value, depth.value, (s[2] * b).value, (s[3] * b).value}), c.type(0));
}
inline void space_to_depth(call& c) {
    const std::int64_t b = c.integer("blocksize", 1);
    if (c.rank(0) != 4 || b < 1) refuse("of rank " + std::to_string(c.rank(0)));
    const shape s = c.dims(0);
    const auto shaped = [&](const node& x, const std::vector<std::int64_t>& e) {
        return reshape(x, shape_of_items(c, e));
    };
    const std::string mode = c.text("mode", "DCR");
    if (mode != "DCR" && mode != "CRD") refuse("mode = '" + mode + "'");
    node x = shaped(c.plain(0), {s[0].value, s[1].value, (s[2] / b).value, b, (s[3] / b).value, b});
    x = permuted(c, x, mode == "DCR" ? std::vector<int>{0, 3, 5, 1, 2, 4} : std::vector<int>{0, 1, 3, 5, 2, 4});
    c.give(0, shaped(x, {s[0].value, (s[1] * (b * b)).value, (s[2] / b).value, (s[3] / b).value}), c.type(0));
}
inline void center_crop_pad(call& c) {
    const std::vector<std::int64_t> target = c.integers(1, "extents");
    std::vector<std::int64_t> where = c.integers("axes");
    if (where.empty())
        for (int i = 0; i < c.rank(0); ++i) where.push_back(i);
    if (where.size() != target.size()) refuse("of other than its axes' number of extents");
    node x = c.plain(0);
    std::vector<std::int64_t> before(static_cast<std::size_t>(c.rank(0))), after = before;
    for (std::size_t i = 0; i < where.size(); ++i) {
        const int axis = c.axis(where[i], c.rank(0));
        const std::int64_t n = known_extent(c.dims(0)[axis], "the middle"), more = target[i] - n;
        if (more < 0)
            x = part(x, axis, (-more) / 2, target[i]);
        else
            before[static_cast<std::size_t>(axis)] = more / 2, after[static_cast<std::size_t>(axis)] = more - more / 2;
    }
    c.give(0, padded(c, x, before, after, "constant", 0), c.type(0));
}
inline void if_rule(call& c) {
    const attribute *yes = c.find("then_branch"), *no = c.find("else_branch");
    if (yes == nullptr || no == nullptr || !yes->g || !no->g) refuse("without two branches");
    if (c.known(0) == nullptr) {
        const auto a = c.on.run_graph(*yes->g, c.around()), b = c.on.run_graph(*no->g, c.around());
        const node which = reshape(c.plain(0), shape{});
        for (std::size_t k = 0; k < a.size() && k < b.size(); ++k) {
            if (a[k]->refused || b[k]->refused) refuse_symbols("a branch of it is refused");
            if (a[k]->sequence || b[k]->sequence) refuse_symbols("by a value, with sequences as results");
            if (a[k]->type != b[k]->type || !(a[k]->dims() == b[k]->dims()))
                refuse_symbols("by a value, its branches having several shapes");
            c.give(static_cast<int>(k), eval(where(which, c.on.plain(*a[k]), c.on.plain(*b[k]))), a[k]->type);
        }
        return;
    }
    const auto results = c.on.run_graph(c.known(0)->integer(0) != 0 ? *yes->g : *no->g, c.around());
    for (std::size_t k = 0; k < results.size(); ++k) {
        if (results[k]->refused) refuse_symbols("the branch that is taken is refused");
        c.give(static_cast<int>(k), results[k]);
    }
}

inline std::span<const operator_rule> movement() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Identity", &identity},
        {"Shape", &shape_rule},
        {"Size", &size_rule},
        {"Transpose", &transpose_rule},
        {"Reshape", &reshape_rule},
        {"Flatten", &flatten_rule},
        {"Squeeze", &squeeze_rule},
        {"Unsqueeze", &unsqueeze_rule},
        {"Expand", &expand_rule},
        {"Concat", &concat_rule},
        {"Split", &split_rule},
        {"Slice", &slice_rule},
        {"Tile", &tile_rule},
        {"Pad", &pad_rule},
        {"DepthToSpace", &depth_to_space},
        {"SpaceToDepth", &space_to_depth},
        {"CenterCropPad", &center_crop_pad},
        {"If", &if_rule},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
