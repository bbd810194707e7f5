#pragma once

#include <tapegraph/io/onnx/call.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/gather/gather_scatter.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>

#include <limits>

/// Reshapes, permutations, and parts of tensors.

namespace tapegraph::onnx::detail {

template <class G>
void write_transpose(G& g, int node) {
    const auto a = g.template attributes_of<transpose_op>(node);
    const int from = g.t.argument(node, 0);
    const placed x = g.get(from);
    if (!x.flat.empty()) {
        order permutation(a.permutation, a.permutation + a.rank);
        return g.define(node, g.transpose(g.plain(from), permutation));
    }
    // Nothing moves: only the meaning of the axes changes.
    order axes;
    for (const int axis : G::whole(x.axes, g.rank(from)))
        for (int i = 0; i < a.rank; ++i)
            if (a.permutation[i] == axis) axes.push_back(i);
    g.define(node, x.name, axes);
}

/// Whether two shapes differ only by axes of extent 1; then finds the axis of `from` for each axis
/// of `to`, -1 for new ones.
inline bool ones_apart(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to,
                       std::vector<int>& source) {
    std::size_t i = 0;
    source.assign(to.size(), -1);
    for (std::size_t k = 0; k < to.size(); ++k) {
        while (i < from.size() && from[i] == 1 && to[k] != 1) ++i;
        if (i < from.size() && from[i] == to[k])
            source[k] = static_cast<int>(i++);
        else if (to[k] != 1)
            return false;
    }
    while (i < from.size() && from[i] == 1) ++i;
    return i == from.size();
}

template <class G>
void write_reshape(G& g, int node) {
    const int from = g.t.argument(node, 0);
    const placed x = g.get(from);
    const auto source = g.dims(from), target = g.dims(node);
    std::vector<int> axis_of;
    if (x.flat.empty() && !x.axes.empty() && ones_apart(source, target, axis_of)) {
        std::vector<std::int64_t> gone;
        order axes;
        const int rank = g.rank(node);
        for (std::size_t p = 0; p < x.axes.size(); ++p) {
            int now = -1;
            for (int k = 0; k < rank; ++k)
                if (axis_of[static_cast<std::size_t>(k)] == x.axes[p]) now = k;
            if (now < 0)
                gone.push_back(static_cast<std::int64_t>(p));
            else
                axes.push_back(now);
        }
        std::string y = g.squeeze(x.name, gone);
        std::vector<std::int64_t> added;
        for (int k = 0; k < rank; ++k)
            if (axis_of[static_cast<std::size_t>(k)] < 0) {
                added.push_back(static_cast<std::int64_t>(axes.size()));
                axes.push_back(k);
            }
        return g.define(node, g.unsqueeze(y, added), axes);
    }
    // Trailing axes that are flattened into one keep their layout if the others keep theirs.
    const int rank = g.rank(node), first = rank - 1, many = g.rank(from) - first;
    bool flattens = x.flat.empty() && !x.axes.empty() && first >= 0 && many > 1 && !is_symbolic(target.back());
    for (int i = 0; flattens && i < first; ++i)
        flattens = x.axes[static_cast<std::size_t>(i)] == i &&
                   source[static_cast<std::size_t>(i)] == target[static_cast<std::size_t>(i)];
    if (flattens) {
        placed y;
        std::vector<std::int64_t> before;
        for (int p = 0; p < g.rank(from); ++p)
            before.push_back(source[static_cast<std::size_t>(x.axes[static_cast<std::size_t>(p)])]);
        for (int i = 0; i < many; ++i) {
            y.flat.push_back(source[static_cast<std::size_t>(first + i)]);
            y.flat_axes.push_back(x.axes[static_cast<std::size_t>(first + i)] - first);
        }
        y.name =
            first == 1 ? g.emit("Flatten", {x.name}, attributes().set("axis", 1)) : g.reshape(x.name, before, target);
        return g.define(node, std::move(y));
    }
    g.define(node, g.reshape(g.plain(from), source, target));
}

template <class G>
void write_broadcast(G& g, int node) {
    g.define(node, g.emit("Expand", {g.plain(g.t.argument(node, 0)), g.shape_tensor(g.dims(node))}));
}

template <class G>
void write_concat(G& g, int node) {
    const auto axis = static_cast<int>(g.template attributes_of<concat_op>(node).axis);
    order axes;
    strided_view v;
    for (int k = 0; k < g.at(node).arguments && axes.empty(); ++k)
        if (!g.backed(g.t.argument(node, k), v)) axes = g.get(g.t.argument(node, k)).axes;
    std::vector<std::string> parts;
    for (int k = 0; k < g.at(node).arguments; ++k) parts.push_back(g.in_order(g.t.argument(node, k), axes));
    g.define(node, g.emit("Concat", parts, attributes().set("axis", G::position(axes, axis))), axes);
}

/// Whether a slice only reverses one axis, and which.
template <class G>
int reversed_axis(G& g, int node) {
    if (!g.is(node, "slice") || !g.t.same_shape(node, g.t.argument(node, 0))) return -1;
    const auto a = g.template attributes_of<slice_op>(node);
    int axis = -1;
    for (int i = 0; i < g.rank(node); ++i) {
        if (a.step[i] == 1) continue;
        if (a.step[i] != -1 || axis >= 0) return -1;
        axis = i;
    }
    return axis;
}

template <class G>
void write_slice(G& g, int node) {
    const auto a = g.template attributes_of<slice_op>(node);
    const int from = g.t.argument(node, 0);
    g.get(from);
    if (const auto found = g.in_time.find(from); found != g.in_time.end() && reversed_axis(g, node) == 1)
        return g.define(node, found->second);
    const placed x = g.get(from).flat.empty() ? g.get(from) : placed{g.plain(from), {}, {}, {}};
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> starts, axes, steps;
    std::vector<std::string> ends;
    std::vector<std::int64_t> known_ends;
    bool all_known = true;
    for (int i = 0; i < g.rank(node); ++i) {
        const std::int64_t size = g.extent_of(from, i), count = g.extent_of(node, i), step = a.step[i];
        const bool from_end = counted_from_the_end(a.begin[i]);
        const std::int64_t back = from_end ? a.begin[i] - at_the_end : 0;
        if (step == 1 && size == count) continue;
        axes.push_back(G::position(x.axes, i));
        steps.push_back(step);
        std::int64_t start = a.begin[i], stop = 0;
        std::string computed;
        if (!is_symbolic(count)) {
            if (from_end) start = step > 0 ? -(back + step * (count - 1) + 1) : -1 - back;
            stop = start + step * (count - 1) + (step > 0 ? 1 : -1);
            if (count == 0) start = stop = 0;
            if (step > 0 && start < 0 && stop >= 0) stop = end;
            if (step < 0 && !from_end && stop < 0) stop = -end;
        } else if (step < 0) { // down to the first element
            if (from_end) start = -1 - back;
            stop = -end;
            if (size != count && step == -1) {
                computed = "?";
                stop = 0;
            }
        } else if (from_end) {
            start = 0;
            stop = back == 0 ? end : -back;
            if (step != 1 || g.t.extents.add(size, count, -1) != back)
                return g.refuse(node, "a range that symbols bound from both sides");
        } else if (is_symbolic(size) && step == 1 && g.t.extents.add(size, count, -1) == start) {
            stop = end;
        } else {
            computed = "+";
        }
        if (computed == "+")
            computed =
                g.extent_tensor(g.t.extents.add(start, g.t.extents.multiply(g.t.extents.add(count, 1, -1), step)));
        if (computed == "?") return g.refuse(node, "a range backwards that a symbol bounds");
        if (!computed.empty()) {
            all_known = false;
            computed = g.emit("Add", {computed, g.integers({1})});
        } else {
            computed.clear();
        }
        starts.push_back(start);
        known_ends.push_back(stop);
        ends.push_back(computed);
    }
    if (axes.empty()) return g.define(node, x);
    std::string stops;
    if (all_known) {
        stops = g.integers(known_ends);
    } else {
        for (std::size_t i = 0; i < ends.size(); ++i)
            if (ends[i].empty()) ends[i] = g.integers({known_ends[i]});
        stops = ends.size() == 1 ? ends[0] : g.emit("Concat", ends, attributes().set("axis", 0));
    }
    g.define(node, g.emit("Slice", {x.name, g.integers(starts), stops, g.integers(axes), g.integers(steps)}), x.axes);
}

template <class G>
void write_pad(G& g, int node) {
    const auto a = g.template attributes_of<pad_op>(node);
    const int from = g.t.argument(node, 0), rank = g.rank(node);
    const placed x = g.get(from).flat.empty() ? g.get(from) : placed{g.plain(from), {}, {}, {}};
    std::vector<std::int64_t> amounts(static_cast<std::size_t>(2 * rank));
    for (int i = 0; i < rank; ++i) {
        const std::int64_t all = g.t.extents.add(g.extent_of(node, i), g.extent_of(from, i), -1);
        if (a.step[i] != 1 || is_symbolic(all)) return g.refuse(node, "by amounts that are not numbers, or in steps");
        const bool from_end = counted_from_the_end(a.begin[i]);
        const std::int64_t before = from_end ? all - (a.begin[i] - at_the_end) : a.begin[i];
        const auto p = static_cast<std::size_t>(G::position(x.axes, i));
        amounts[p] = before;
        amounts[p + static_cast<std::size_t>(rank)] = all - before;
    }
    g.define(node, g.emit("Pad", {x.name, g.integers(amounts), g.constant(a.fill, g.at(node).type)}), x.axes);
}

template <class G>
void write_index_map(G& g, int node) {
    const auto a = g.template attributes_of<index_map_op>(node);
    const int from = g.t.argument(node, 0);
    const placed x = g.get(from).flat.empty() ? g.get(from) : placed{g.plain(from), {}, {}, {}};
    if (g.rank(from) != g.rank(node)) return g.refuse(node, "to another rank");
    std::string y = x.name;
    for (int i = 0; i < g.rank(node); ++i) {
        const auto map = static_cast<index_map>(a.map[i]);
        const std::int64_t size = g.extent_of(from, i), wide = g.extent_of(node, i);
        if (map == index_map::keep || (size == wide && (map == index_map::repeat || a.amount[i] == 0))) continue;
        if (is_symbolic(size) || is_symbolic(wide)) return g.refuse(node, "on an axis whose extent is not a number");
        std::vector<std::int64_t> picks;
        while (static_cast<std::int64_t>(picks.size()) < wide) {
            const auto run = run_at(map, size, a.amount[i], static_cast<std::int64_t>(picks.size()), wide);
            for (std::int64_t k = 0; k < run.count; ++k) picks.push_back(run.first + k * run.direction);
        }
        y = g.emit("Gather", {y, g.integers(picks)}, attributes().set("axis", G::position(x.axes, i)));
    }
    g.define(node, y, x.axes);
}

template <class G>
void write_gather(G& g, int node) {
    const auto a = g.template attributes_of<gather_op>(node);
    const int indices = g.t.argument(node, 1);
    const std::string table = g.plain(g.t.argument(node, 0)), at = g.plain(indices);
    if (a.batch == 0) return g.define(node, g.emit("Gather", {table, at}, attributes().set("axis", a.axis)));
    if (a.batch != a.axis) return g.refuse(node, "with batch axes before the axis");
    const std::string tuples = g.unsqueeze(g.cast(at, dtype::i64), {g.rank(indices)});
    g.define(node, g.emit("GatherND", {table, tuples}, attributes().set("batch_dims", a.batch)));
}
template <class G>
void write_gather_nd(G& g, int node) {
    g.define(node,
             g.emit("GatherND", {g.plain(g.t.argument(node, 0)), g.cast(g.plain(g.t.argument(node, 1)), dtype::i64)}));
}
template <class G>
void write_take_along(G& g, int node) {
    g.define(node, g.emit("GatherElements", {g.plain(g.t.argument(node, 0)), g.plain(g.t.argument(node, 1))},
                          attributes().set("axis", g.template attributes_of<take_along_op>(node).axis)));
}

/// Zeros of a node's shape, with its axes in some order, to which values are added.
template <class G>
std::string zeros_for(G& g, int node, const order& axes) {
    std::vector<std::int64_t> dims;
    for (const int axis : axes) dims.push_back(g.dims(node)[static_cast<std::size_t>(axis)]);
    return g.emit("Expand", {g.constant(0, g.at(node).type), g.shape_tensor(dims)});
}
/// Adds named values to zeros. Moves the axis to the front, where ScatterND selects, together with
/// the axes of the indices.
template <class G>
void write_sum_by_indices(G& g, int node, const std::string& values, int indices, int axis) {
    const int picks = g.rank(indices);
    order front, target{axis}, back;
    for (int i = 0; i < g.rank(node) - 1 + picks; ++i)
        front.push_back(i < picks ? axis + i : i < axis + picks ? i - picks : i);
    for (int i = 0; i < g.rank(node); ++i) {
        if (i != axis) target.push_back(i);
        back.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
    }
    const std::string tuples = g.unsqueeze(g.cast(g.plain(indices), dtype::i64), {picks});
    const std::string sum = g.emit("ScatterND", {zeros_for(g, node, target), tuples, g.transpose(values, front)},
                                   attributes().set("reduction", "add"));
    g.define(node, g.transpose(sum, back));
}
template <class G>
void write_scatter_add(G& g, int node) {
    const auto a = g.template attributes_of<scatter_add_op>(node);
    if (a.batch != 0) return g.refuse(node, "with batch axes");
    write_sum_by_indices(g, node, g.plain(g.t.argument(node, 0)), g.t.argument(node, 1), static_cast<int>(a.axis));
}
/// Gather, a product with weights whose axes stand where the indices' do, and sums.
template <class G>
void write_gather_scatter_add(G& g, int node) {
    const auto a = g.template attributes_of<gather_scatter_add_op<false>>(node);
    if (a.batch != 0) return g.refuse(node, "with batch axes");
    const int from = g.t.argument(node, 1), to = g.t.argument(node, 2), axis = static_cast<int>(a.axis);
    std::string messages =
        g.emit("Gather", {g.plain(g.t.argument(node, 0)), g.plain(from)}, attributes().set("axis", a.axis));
    if (g.at(node).arguments == 4) {
        const int weights = g.t.argument(node, 3);
        std::vector<std::int64_t> after; // ones for the axes of a row that the weights do not have
        for (int i = g.rank(weights) - g.rank(from); i < g.rank(node) - 1 - axis; ++i)
            after.push_back(g.rank(weights) + static_cast<std::int64_t>(after.size()));
        const std::string factors = g.plain(weights);
        messages = g.emit("Mul", {messages, after.empty() ? factors : g.unsqueeze(factors, after)});
    }
    write_sum_by_indices(g, node, messages, to, axis);
}
template <class G>
void write_scatter_nd(G& g, int node) {
    g.define(node, g.emit("ScatterND",
                          {zeros_for(g, node, G::whole({}, g.rank(node))),
                           g.cast(g.plain(g.t.argument(node, 1)), dtype::i64), g.plain(g.t.argument(node, 0))},
                          attributes().set("reduction", "add")));
}
template <class G>
void write_put_along(G& g, int node) {
    g.define(
        node,
        g.emit("ScatterElements",
               {zeros_for(g, node, G::whole({}, g.rank(node))), g.plain(g.t.argument(node, 1)),
                g.plain(g.t.argument(node, 0))},
               attributes().set("axis", g.template attributes_of<put_along_op>(node).axis).set("reduction", "add")));
}

template <class G>
void write_one_hot(G& g, int node) {
    const auto a = g.template attributes_of<one_hot_op<float>>(node);
    const dtype type = g.at(node).type;
    const std::string off = g.unsqueeze(g.constant(a.off, type), {0}), on = g.unsqueeze(g.constant(a.on, type), {0});
    g.define(node, g.emit("OneHot",
                          {g.plain(g.t.argument(node, 0)), g.integers({a.depth}),
                           g.emit("Concat", {off, on}, attributes().set("axis", 0))},
                          attributes().set("axis", a.axis)));
}

/// begin + step i, counted over all elements.
template <class G>
void write_arange(G& g, int node) {
    const auto a = g.template attributes_of<arange_op<float>>(node);
    const dtype type = g.at(node).type;
    const auto dims = g.dims(node);
    if (a.step == 0 && a.ends == 0)
        return g.define(node, g.emit("Expand", {g.constant(a.begin, type), g.shape_tensor(dims)}));
    if (a.ends != 0) return g.refuse(node, "with its last element given");
    std::int64_t count = 1;
    for (const std::int64_t d : dims)
        count = is_symbolic(d) || is_symbolic(count) ? g.t.extents.multiply(count, d) : count * d;
    const std::string steps =
        g.emit("Range", {g.integers({0}, true), g.squeeze(g.extent_tensor(count), {0}), g.integers({1}, true)});
    std::string y = g.cast(steps, type);
    if (a.step != 1) y = g.emit("Mul", {y, g.constant(a.step, type)});
    if (a.begin != 0) y = g.emit("Add", {y, g.constant(a.begin, type)});
    g.define(node, g.reshape(y, {count}, dims));
}

template <class G>
void write_argsort(G& g, int node) {
    const auto a = g.template attributes_of<argsort_op>(node);
    const int from = g.t.argument(node, 0), last = g.rank(from) - 1;
    const std::string k = a.count >= 0 ? g.integers({a.count}) : g.extent_tensor(g.extent_of(from, last));
    const std::string top =
        g.emit("TopK", {g.plain(from), k}, attributes().set("axis", last).set("largest", a.descending != 0 ? 1 : 0), 2);
    g.define(node, g.cast(g.output_of(top, 1), dtype::i32));
}

} // namespace tapegraph::onnx::detail
