#pragma once

#include <tapegraph/io/onnx_import/forest.hpp>

#include <cmath>
#include <map>
#include <set>

/// TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble of ai.onnx.ml
/// (onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html).

namespace tapegraph::io::onnx_import {

namespace rules {

/// The element type in which trees over this operand compare.
inline dtype type_of_trees(call& c, bool wide) { return wide || c.type(0) == dtype::f64 ? dtype::f64 : dtype::f32; }
inline joined_votes joined_by(const std::string& name) {
    if (name == "SUM") return joined_votes::sum;
    if (name == "AVERAGE") return joined_votes::mean;
    if (name == "MIN") return joined_votes::smallest;
    if (name == "MAX") return joined_votes::largest;
    refuse("aggregate_function = '" + name + "'");
}
inline branch branch_of(const std::string& name) {
    static constexpr std::string_view names[6] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                 "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    for (int k = 0; k < 6; ++k)
        if (names[k] == name) return static_cast<branch>(k);
    refuse("nodes_modes '" + name + "'");
}

/// Trees whose nodes are named by tree and number; `votes` is "class" or "target".
inline forest forest_of_lists(call& c, const std::string& votes, bool& wide) {
    const std::vector<std::int64_t> trees = c.integers("nodes_treeids"), ids = c.integers("nodes_nodeids"),
                                    features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
                                    no = c.integers("nodes_falsenodeids");
    std::vector<std::int64_t> missing = c.integers("nodes_missing_value_tracks_true");
    const std::vector<std::string> modes = c.texts("nodes_modes");
    c.ignore("nodes_hitrates"), c.ignore("nodes_hitrates_as_tensor"); // how often nodes were reached
    const std::vector<double> splits = numbers_of(c, "nodes_values", wide);
    const std::size_t n = trees.size();
    if (missing.empty()) missing.resize(n);
    for (const std::size_t other :
         {ids.size(), features.size(), yes.size(), no.size(), modes.size(), splits.size(), missing.size()})
        if (other != n) refuse("lists nodes_* of " + std::to_string(n) + " and " + std::to_string(other) + " nodes");
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> places;
    for (std::size_t i = 0; i < n; ++i)
        if (!places.emplace(std::pair{trees[i], ids[i]}, static_cast<std::int64_t>(i)).second)
            refuse("node " + std::to_string(ids[i]) + " of tree " + std::to_string(trees[i]) + " twice");
    const auto place = [&](std::int64_t tree, std::int64_t id) {
        const auto found = places.find({tree, id});
        if (found == places.end())
            refuse("node " + std::to_string(id) + ", which tree " + std::to_string(tree) + " does not have");
        return found->second;
    };
    forest f;
    f.nodes.resize(n);
    std::vector<bool> child(n);
    for (std::size_t i = 0; i < n; ++i) {
        forest::tree_node& node = f.nodes[i];
        node.yes = node.no = static_cast<std::int64_t>(i);
        if (modes[i] == "LEAF") continue;
        node.leaf = false;
        node.mode = branch_of(modes[i]);
        node.feature = features[i], node.split = splits[i], node.missing_is_true = missing[i] != 0;
        node.yes = place(trees[i], yes[i]), node.no = place(trees[i], no[i]);
        child[static_cast<std::size_t>(node.yes)] = child[static_cast<std::size_t>(node.no)] = true;
    }
    for (std::size_t i = 0; i < n; ++i)
        if (!child[i]) f.roots.push_back(static_cast<std::int64_t>(i));
    const std::vector<std::int64_t> of_trees = c.integers((votes + "_treeids").c_str()),
                                    of_nodes = c.integers((votes + "_nodeids").c_str()),
                                    targets = c.integers((votes + "_ids").c_str());
    const std::vector<double> weights = numbers_of(c, votes + "_weights", wide);
    for (const std::size_t other : {of_nodes.size(), targets.size(), weights.size()})
        if (other != of_trees.size())
            refuse("lists " + votes + "_* of " + std::to_string(of_trees.size()) + " and " + std::to_string(other) +
                   " votes");
    for (std::size_t i = 0; i < of_trees.size(); ++i) {
        forest::tree_node& leaf = f.nodes[static_cast<std::size_t>(place(of_trees[i], of_nodes[i]))];
        if (leaf.leaf) leaf.votes.emplace_back(targets[i], weights[i]); // nobody ends at another node
    }
    return f;
}

inline void tree_ensemble_regressor(call& c) {
    bool wide = false;
    forest f = forest_of_lists(c, "target", wide);
    f.targets = c.integer("n_targets", 1);
    const std::vector<double> base = numbers_of(c, "base_values", wide);
    f.type = type_of_trees(c, wide);
    const joined_votes how = joined_by(c.text("aggregate_function", "SUM"));
    const std::string transform = c.text("post_transform", "NONE");
    if (f.targets < 1) refuse("n_targets = " + std::to_string(f.targets));
    node y = votes_of(c, f, leaves_of(c, f, records_of(c, 0, f.type)), how);
    if (!base.empty() && base.size() != 1 && base.size() != static_cast<std::size_t>(f.targets))
        refuse("base_values of " + std::to_string(base.size()) + " targets, not " + std::to_string(f.targets));
    if (!base.empty()) y = eval(y + constant_of(c, base, {static_cast<std::int64_t>(base.size())}, f.type));
    give_scores(c, 0, y, transform);
}

/// Two classes, and votes for one of them alone: onnxruntime's way, which converters rely on. The score
/// says yes above 1/2 if no weight is negative, else above 0.
inline void give_one_of_two(call& c, const node& scores, std::int64_t voted, bool positive,
                            const std::vector<std::int64_t>& labels, const std::string& transform) {
    const node s = part(scores, 1, voted, 1);
    give_labels(c, labels, squeeze(eval(s > (positive ? 0.5 : 0.0)), axes_of({1})));
    if (voted == 1) return give_scores(c, 1, scores, transform);
    if (transform == "PROBIT") refuse("post_transform = 'PROBIT' of one score for two classes");
    const bool logistic = transform == "LOGISTIC";
    give_scores(c, 1, two_scores(s, positive && !logistic), logistic ? transform : "NONE");
}
inline void tree_ensemble_classifier(call& c) {
    bool wide = false;
    forest f = forest_of_lists(c, "class", wide);
    const std::vector<std::int64_t> labels = labels_of(c, "classlabels_int64s", "classlabels_strings");
    const std::vector<double> base = numbers_of(c, "base_values", wide);
    f.targets = static_cast<std::int64_t>(labels.size());
    f.type = type_of_trees(c, wide);
    const std::string transform = c.text("post_transform", "NONE");
    if (f.targets < 2) refuse("of " + std::to_string(f.targets) + " class labels");
    std::set<std::int64_t> classes;
    bool positive = true;
    for (const forest::tree_node& n : f.nodes)
        for (const auto& [target, weight] : n.votes) {
            classes.insert(target);
            positive = positive && weight >= 0;
        }
    const bool one_of_two = f.targets == 2 && classes.size() == 1;
    if (!base.empty() && base.size() != (one_of_two ? 1 : labels.size()))
        refuse("base_values of " + std::to_string(base.size()) + " classes, " + std::to_string(classes.size()) +
               " of " + std::to_string(labels.size()) + " with votes");
    node voted;
    bool some_without = false;
    node scores = votes_of(c, f, leaves_of(c, f, records_of(c, 0, f.type)), joined_votes::sum, &voted, &some_without);
    if (!base.empty()) scores = eval(scores + constant_of(c, base, {static_cast<std::int64_t>(base.size())}, f.type));
    if (one_of_two) return give_one_of_two(c, scores, *classes.begin(), positive, labels, transform);
    // The top class is one that has votes.
    const double lowest = -std::numeric_limits<double>::infinity();
    give_labels(c, labels,
                argmax(some_without && base.empty() ? node(eval(where(voted, scores, lowest))) : scores, -1));
    give_scores(c, 1, scores, transform);
}

/// Trees whose inner nodes and leaves are lists of their own.
inline void tree_ensemble(call& c) {
    const auto tensor = [&](const char* name, bool needed) -> const array* {
        const attribute* const a = c.find(name);
        if (needed && (a == nullptr || a->t == nullptr)) refuse(std::string("without a tensor ") + name);
        return a == nullptr ? nullptr : a->t.get();
    };
    const std::vector<std::int64_t> yes = c.integers("nodes_truenodeids"), no = c.integers("nodes_falsenodeids"),
                                    yes_leaf = c.integers("nodes_trueleafs"), no_leaf = c.integers("nodes_falseleafs"),
                                    features = c.integers("nodes_featureids"), targets = c.integers("leaf_targetids");
    std::vector<std::int64_t> missing = c.integers("nodes_missing_value_tracks_true");
    const array &modes = *tensor("nodes_modes", true), &splits = *tensor("nodes_splits", true),
                &weights = *tensor("leaf_weights", true);
    const array* const members = tensor("membership_values", false);
    tensor("nodes_hitrates", false);
    const std::size_t n = yes.size();
    if (missing.empty()) missing.resize(n);
    for (const std::size_t other : {no.size(), yes_leaf.size(), no_leaf.size(), features.size(), missing.size(),
                                    static_cast<std::size_t>(modes.size()), static_cast<std::size_t>(splits.size())})
        if (other != n) refuse("lists nodes_* of " + std::to_string(n) + " and " + std::to_string(other) + " nodes");
    if (static_cast<std::size_t>(weights.size()) != targets.size()) refuse("leaf_weights for other leaf_targetids");
    forest f;
    f.targets = c.integer("n_targets", 1);
    f.type = type_of_trees(c, splits.type() == dtype::f64);
    if (f.targets < 1) refuse("n_targets = " + std::to_string(f.targets));
    f.nodes.resize(n);
    // Each mention of a leaf is a leaf of its own: a tree of one leaf mentions it twice.
    const auto child = [&](std::int64_t at, bool leaf) {
        if (!leaf) {
            if (at < 0 || at >= static_cast<std::int64_t>(n))
                refuse("node " + std::to_string(at) + " of " + std::to_string(n));
            return at;
        }
        if (at < 0 || at >= weights.size())
            refuse("leaf " + std::to_string(at) + " of " + std::to_string(weights.size()));
        forest::tree_node end;
        end.yes = end.no = static_cast<std::int64_t>(f.nodes.size());
        end.votes.emplace_back(targets[static_cast<std::size_t>(at)], weights.number(at));
        f.nodes.push_back(end);
        return end.yes;
    };
    std::int64_t next_member = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t mode = modes.integer(static_cast<std::int64_t>(i));
        if (mode < 0 || mode > 6) refuse("nodes_modes of " + std::to_string(mode));
        std::vector<double> values{splits.number(static_cast<std::int64_t>(i))};
        if (mode == 6) { // a chain of nodes that ask for one member each
            values.clear();
            if (members == nullptr) refuse("without membership_values");
            for (; next_member < members->size() && !std::isnan(members->number(next_member)); ++next_member)
                values.push_back(members->number(next_member));
            ++next_member;
            if (values.empty()) refuse("a node with an empty set of membership_values");
        }
        const std::int64_t to_yes = child(yes[i], yes_leaf[i] != 0), to_no = child(no[i], no_leaf[i] != 0);
        std::size_t at = i;
        for (std::size_t k = 0; k < values.size(); ++k) {
            const bool last = k + 1 == values.size();
            const std::size_t next = f.nodes.size();
            if (!last) f.nodes.emplace_back();
            forest::tree_node& node = f.nodes[at];
            node.leaf = false;
            node.mode = mode == 6 ? branch::eq : static_cast<branch>(mode);
            node.feature = features[i], node.split = values[k], node.missing_is_true = missing[i] != 0;
            node.yes = to_yes, node.no = last ? to_no : static_cast<std::int64_t>(next);
            at = next;
        }
    }
    f.roots = c.integers("tree_roots");
    static constexpr joined_votes ways[4] = {joined_votes::mean, joined_votes::sum, joined_votes::smallest,
                                            joined_votes::largest};
    static constexpr const char* transforms[5] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    const std::int64_t how = c.integer("aggregate_function", 1), transform = c.integer("post_transform", 0);
    if (how < 0 || how > 3) refuse("aggregate_function = " + std::to_string(how));
    if (transform < 0 || transform > 4) refuse("post_transform = " + std::to_string(transform));
    const node y =
        transformed(votes_of(c, f, leaves_of(c, f, records_of(c, 0, f.type)), ways[how]), transforms[transform]);
    c.give(0, converted(y, y.type(), c.type(0)), c.type(0));
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
