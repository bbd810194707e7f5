#pragma once

#include <tapegraph/io/onnx_import/ml_scores.hpp>
#include <tapegraph/ops/records/records.hpp>

#include <cstring>
#include <deque>
#include <limits>
#include <utility>

/// Ensembles of decision trees: their nodes as tables, checked, and the walk of records through them.

namespace tapegraph::io::onnx_import {

namespace rules {

struct forest {
    /// Of each node. A leaf is its own child.
    struct tree_node {
        std::int64_t feature = 0, yes = 0, no = 0;
        double split = 0;
        branch mode = branch::leq;
        bool leaf = true, missing_is_true = false;
        std::vector<std::pair<std::int64_t, double>> votes; ///< of a leaf: targets and weights
    };
    std::vector<tree_node> nodes;
    std::vector<std::int64_t> roots;
    std::int64_t targets = 1;
    dtype type = dtype::f32; ///< in which splits are compared and votes summed
};

/// The greatest number of branches from a root to a leaf. Refuses nodes below themselves.
inline int depth_of(const forest& f) {
    constexpr int unseen = -2, open = -1;
    std::vector<int> depth(f.nodes.size(), unseen);
    std::vector<std::int64_t> path;
    const auto visit = [&](std::int64_t i) {
        if (i < 0 || i >= static_cast<std::int64_t>(f.nodes.size()))
            refuse("node " + std::to_string(i) + " of trees with " + std::to_string(f.nodes.size()) + " nodes");
        const int found = depth[static_cast<std::size_t>(i)];
        if (found == open) refuse("node " + std::to_string(i) + " below itself");
        if (found == unseen) path.push_back(i);
        return found;
    };
    int deepest = 0;
    for (const std::int64_t r : f.roots) {
        visit(r);
        while (!path.empty()) {
            const auto at = static_cast<std::size_t>(path.back());
            const forest::tree_node& n = f.nodes[at];
            if (n.leaf) {
                depth[at] = 0;
            } else if (depth[at] == unseen) { // its children come first
                if (n.feature < 0) refuse("feature " + std::to_string(n.feature));
                depth[at] = open;
                visit(n.yes), visit(n.no);
                continue;
            } else if (depth[at] == open) {
                depth[at] = 1 + std::max(depth[static_cast<std::size_t>(n.yes)], depth[static_cast<std::size_t>(n.no)]);
            }
            deepest = std::max(deepest, depth[at]);
            path.pop_back();
        }
    }
    return deepest;
}

/// The leaf that each record reaches in each tree, [records, trees], as a row of the tables of votes. `rows` are the
/// nodes that have such rows, in order.
struct reached {
    node leaves;
    std::vector<std::size_t> rows;
};

/// The places of inner nodes in the walk's table. A node, its children and a grandchild share a line of the cache,
/// as far as they are inner nodes: a walk touches half as many lines.
inline std::vector<std::size_t> order_of_walk(const forest& f) {
    constexpr std::size_t together = 4;
    std::vector<std::size_t> order;
    std::vector<bool> seen(f.nodes.size());
    std::vector<std::size_t> tops;
    const auto fresh = [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        return !f.nodes[at].leaf && !seen[at];
    };
    for (const std::int64_t root : f.roots) {
        tops.push_back(static_cast<std::size_t>(root));
        while (!tops.empty()) {
            std::deque<std::size_t> near{tops.back()};
            tops.pop_back();
            for (std::size_t taken = 0; !near.empty() && taken < together;) {
                const std::size_t i = near.front();
                near.pop_front();
                if (!fresh(static_cast<std::int64_t>(i))) continue;
                seen[i] = true;
                order.push_back(i);
                ++taken;
                for (const std::int64_t below : {f.nodes[i].no, f.nodes[i].yes})
                    if (fresh(below)) near.push_back(static_cast<std::size_t>(below));
            }
            tops.insert(tops.end(), near.rbegin(), near.rend());
        }
    }
    return order;
}

/// The walk's table of a forest: [nodes, words].
template <class T>
array table_of_walk(const forest& f, const std::vector<std::size_t>& order, const std::vector<std::int32_t>& place) {
    array table(dtype::i32, {static_cast<std::int64_t>(order.size()), walked_node<T>::words});
    auto* to = static_cast<std::byte*>(table.data());
    for (const std::size_t i : order) {
        const forest::tree_node& from = f.nodes[i];
        walked_node<T> n;
        std::memset(static_cast<void*>(&n), 0, sizeof n); // padding too: equal tables are found by their bytes
        n.split = static_cast<T>(from.split);
        n.feature = static_cast<std::uint32_t>(from.feature) | static_cast<std::uint32_t>(from.mode) << 28 |
                    (from.missing_is_true ? walked_node<T>::missing : 0);
        n.child[0] = place[static_cast<std::size_t>(from.no)], n.child[1] = place[static_cast<std::size_t>(from.yes)];
        std::memcpy(to, &n, sizeof n);
        to += sizeof n;
    }
    return table;
}

inline reached walk_of(call& c, const forest& f, const node& x, int depth) {
    walk_trees_op::attributes a;
    bool leq = true, lt = true;
    std::vector<std::int32_t> place(f.nodes.size());
    reached r;
    for (std::size_t i = 0; i < f.nodes.size(); ++i) {
        const forest::tree_node& n = f.nodes[i];
        if (n.leaf) {
            place[i] = ~static_cast<std::int32_t>(r.rows.size());
            r.rows.push_back(i);
            continue;
        }
        leq = leq && n.mode == branch::leq, lt = lt && n.mode == branch::lt;
        if (n.missing_is_true) a.missing = 1;
    }
    a.modes = static_cast<std::int64_t>(leq  ? tapegraph::detail::all_branches::leq
                                        : lt ? tapegraph::detail::all_branches::lt
                                             : tapegraph::detail::all_branches::mixed);
    a.depth = depth;
    const std::vector<std::size_t> order = order_of_walk(f);
    for (std::size_t k = 0; k < order.size(); ++k) place[order[k]] = static_cast<std::int32_t>(k);
    array roots(dtype::i32, {static_cast<std::int64_t>(f.roots.size())});
    for (std::size_t t = 0; t < f.roots.size(); ++t)
        static_cast<std::int32_t*>(roots.data())[t] = place[static_cast<std::size_t>(f.roots[t])];
    const array table =
        f.type == dtype::f64 ? table_of_walk<double>(f, order, place) : table_of_walk<float>(f, order, place);
    r.leaves = graph::invoke<walk_trees_op>(a, nullptr, std::source_location::current(), x, c.on.constant(table),
                                            c.on.constant(roots));
    return r;
}

/// The leaves of records [records, features]. Predictions walk by one operation. A graph that becomes a part of
/// another, which may be exported or run on a device, has a few operations for each level of the trees.
inline reached leaves_of(call& c, const forest& f, const node& x) {
    const int depth = depth_of(f);
    const std::size_t count = f.nodes.size();
    std::vector<std::int64_t> features, children, missing, modes;
    std::vector<double> splits;
    bool used[6] = {}, tracks = false;
    const std::int64_t width = known_extent(x.shape()[1], "trees over features");
    for (const forest::tree_node& n : f.nodes) {
        features.push_back(n.feature);
        children.push_back(n.no), children.push_back(n.yes);
        splits.push_back(n.split);
        modes.push_back(static_cast<std::int64_t>(n.mode));
        missing.push_back(n.missing_is_true);
        if (n.leaf) continue;
        used[static_cast<int>(n.mode)] = true;
        tracks = tracks || n.missing_is_true;
        if (n.feature >= width)
            refuse("feature " + std::to_string(n.feature) + " of records with " + std::to_string(width));
    }
    const auto table = [&](const std::vector<std::int64_t>& items) { return c.on.constant(array::integers(items)); };
    const bool fits = count <= std::size_t{std::numeric_limits<std::int32_t>::max()} &&
                      width <= std::int64_t{walked_node<float>::features};
    if (c.on.predicts && depth > 0 && fits) return walk_of(c, f, x, depth);
    const auto trees = static_cast<std::int64_t>(f.roots.size());
    reached all;
    for (std::size_t i = 0; i < count; ++i) all.rows.push_back(i);
    node& at = all.leaves;
    at = eval(broadcast_to(table(f.roots), shape_of_items(c, {x.shape()[0].value, trees})));
    if (depth == 0) return all;
    const node split_table = constant_of(c, splits, {static_cast<std::int64_t>(count)}, f.type);
    const node feature_table = table(features), child_table = table(children), mode_table = table(modes);
    const node missing_table = table(missing);
    for (int step = 0; step < depth; ++step) {
        const node v = take_along(x, gather(feature_table, at, 0), 1), s = gather(split_table, at, 0);
        const auto answer = [&](int mode) -> node {
            switch (static_cast<branch>(mode)) {
            case branch::leq: return eval(v <= s);
            case branch::lt: return eval(v < s);
            case branch::gte: return eval(v >= s);
            case branch::gt: return eval(v > s);
            case branch::eq: return eval(v == s);
            default: return eval(v != s);
            }
        };
        node go;
        bool any = false;
        for (int m = 0; m < 6; ++m) {
            if (!used[m]) continue;
            go =
                any ? node(eval(where(gather(mode_table, at, 0) == static_cast<double>(m), answer(m), go))) : answer(m);
            any = true;
        }
        if (tracks) go = eval(logical_or(go, logical_and(is_nan(v), gather(missing_table, at, 0) != 0)));
        at = gather(child_table, eval(2 * at + cast<std::int64_t>(go)), 0);
    }
    return all;
}

enum class joined_votes : std::uint8_t { sum, mean, smallest, largest };

/// The votes of the leaves for each target: [records, targets]. Where a leaf may leave
/// some target without a vote, `voted` says which have one.
inline node votes_of(call& c, const forest& f, const reached& where_to, joined_votes how, node* voted = nullptr,
                     bool* some_without = nullptr) {
    const bool extreme = how == joined_votes::smallest || how == joined_votes::largest;
    const double infinity = std::numeric_limits<double>::infinity();
    const double none = how == joined_votes::smallest ? infinity : how == joined_votes::largest ? -infinity : 0;
    const auto count = static_cast<std::int64_t>(where_to.rows.size());
    if (count > 0 && f.targets > (std::int64_t{1} << 28) / count)
        refuse(std::to_string(count) + " leaves with votes for " + std::to_string(f.targets) + " targets");
    std::vector<double> weights(static_cast<std::size_t>(count * f.targets), none), has(weights.size(), 0);
    for (std::size_t i = 0; i < where_to.rows.size(); ++i)
        for (const auto& [target, weight] : f.nodes[where_to.rows[i]].votes) {
            if (target < 0 || target >= f.targets)
                refuse("a vote for target " + std::to_string(target) + " of " + std::to_string(f.targets));
            const auto k = i * static_cast<std::size_t>(f.targets) + static_cast<std::size_t>(target);
            weights[k] = extreme || has[k] == 0 ? weight : weights[k] + weight;
            has[k] = 1;
        }
    const auto joined = [&](const std::vector<double>& table, dtype type) { // [records, trees, targets]
        return gather(constant_of(c, table, {count, f.targets}, type), where_to.leaves, 0);
    };
    const axes over = axes_of({1});
    bool all_voted = true;
    for (std::size_t i = 0; i < where_to.rows.size(); ++i)
        for (std::size_t k = 0; k < static_cast<std::size_t>(f.targets) && f.nodes[where_to.rows[i]].leaf; ++k)
            all_voted = all_voted && has[i * static_cast<std::size_t>(f.targets) + k] != 0;
    if (voted != nullptr && !all_voted) {
        *voted = eval(max(joined(has, dtype::f32), over) > 0);
        *some_without = true;
    }
    const node all = joined(weights, f.type);
    if (extreme) {
        const node y = how == joined_votes::smallest ? min(all, over) : max(all, over);
        return all_voted ? y : node(eval(where(y == none, 0, y)));
    }
    return how == joined_votes::mean ? mean(all, over) : sum(all, over);
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
