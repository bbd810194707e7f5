#pragma once

#include <tapegraph/cluster/sharded/traces.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/lower.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

/// Reorders a schedule's calls when the program is created: any order in which operands come before
/// results gives the same bits, because random numbers depend on their node and not on the order.

namespace tapegraph::detail {

/// A program's view with its steps in another order.
class reordered_view {
public:
    reordered_view(const ir::program_view& view, const std::vector<int>& order) : view_(view) {
        steps_.reserve(order.size());
        for (const int s : order) steps_.push_back(view.steps[s]);
        view_.steps = {steps_.data(), view.steps.size()};
    }
    reordered_view(const reordered_view&) = delete;
    reordered_view& operator=(const reordered_view&) = delete;
    const ir::program_view& view() const { return view_; }

private:
    std::vector<ir::step_entry> steps_;
    ir::program_view view_;
};

/// The step that computes the buffer of a node, or -1.
std::vector<int> makers_of(const ir::program_view& view);

/// Orders the steps so that those that lead to a shard's gradient come as soon as their operands
/// exist: a filter's gradient before the input's, so that it is sent while earlier layers are
/// computed. Chains of values with the gradient's shape are included.
std::vector<int> gradients_first(const ir::program_view& view);

/// Sorts the steps by keys: the maximum of each step's own key and those of its operands.
std::vector<int> ordered_by(const ir::program_view& view, std::vector<int> key);

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION std::vector<int> makers_of(const ir::program_view& view) {
    std::vector<int> maker(static_cast<std::size_t>(view.nodes.size()), -1);
    for (int s = 0; s < view.steps.size(); ++s) {
        const ir::step_entry& step = view.steps[s];
        for (int k = step.inputs; k < step.inputs + step.outputs; ++k)
            maker[static_cast<std::size_t>(view.alias[view.values[step.first_value + k]])] = s;
    }
    return maker;
}

TG_DEFINITION std::vector<int> gradients_first(const ir::program_view& view) {
    const std::vector<int> maker = makers_of(view);
    const int count = view.steps.size();
    const auto root = [&](int node) { return static_cast<std::size_t>(view.alias[node]); };
    std::vector<int> wanted(static_cast<std::size_t>(view.nodes.size()), -1); // a variable of this shape
    for (const ir::assignment_entry& a : view.assignments)
        if (view.variables[a.variable].name == ir::folded::gradient)
            wanted[root(a.node)] = view.variables[a.variable].node;
    const auto alike = [&](int a, int b) {
        const ir::entry &x = view.nodes[a], &y = view.nodes[b];
        return x.rank == y.rank &&
               std::equal(view.pool.begin() + x.dims, view.pool.begin() + x.dims + x.rank, view.pool.begin() + y.dims);
    };
    std::vector<char> early(static_cast<std::size_t>(count));
    for (int s = count - 1; s >= 0; --s) { // what follows is known
        const ir::step_entry& step = view.steps[s];
        int of = -1;
        for (int k = step.inputs; k < step.inputs + step.outputs; ++k)
            of = std::max(of, wanted[root(view.values[step.first_value + k])]);
        if (of < 0) continue;
        early[static_cast<std::size_t>(s)] = 1;
        for (int k = 0; k < step.inputs; ++k) {
            const int node = view.values[step.first_value + k];
            if (maker[root(node)] >= 0 && alike(node, of)) wanted[root(node)] = of;
        }
    }
    std::vector<int> order;
    std::vector<char> done(static_cast<std::size_t>(count));
    const auto ready = [&](int s) {
        const ir::step_entry& step = view.steps[s];
        for (int k = 0; k < step.inputs; ++k)
            if (const int from = maker[root(view.values[step.first_value + k])];
                from >= 0 && !done[static_cast<std::size_t>(from)])
                return false;
        return true;
    };
    const auto take = [&](int s) {
        order.push_back(s);
        done[static_cast<std::size_t>(s)] = 1;
    };
    std::vector<int> waiting; // those that come early, in their order
    for (int s = 0; s < count; ++s)
        if (early[static_cast<std::size_t>(s)]) waiting.push_back(s);
    const auto take_early = [&] {
        for (bool any = true; any;) {
            any = false;
            for (const int s : waiting)
                if (!done[static_cast<std::size_t>(s)] && ready(s)) take(s), any = true;
        }
    };
    for (int s = 0; s < count; ++s) {
        take_early();
        if (!done[static_cast<std::size_t>(s)]) take(s);
    }
    return order;
}

TG_DEFINITION std::vector<int> ordered_by(const ir::program_view& view, std::vector<int> key) {
    const std::vector<int> maker = makers_of(view);
    std::vector<int> order;
    for (int s = 0; s < view.steps.size(); ++s) {
        const ir::step_entry& step = view.steps[s];
        int& mine = key[static_cast<std::size_t>(s)];
        for (int k = 0; k < step.inputs; ++k)
            if (const int from = maker[static_cast<std::size_t>(view.alias[view.values[step.first_value + k]])];
                from >= 0)
                mine = std::max(mine, key[static_cast<std::size_t>(from)]);
        order.push_back(s);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return key[static_cast<std::size_t>(a)] < key[static_cast<std::size_t>(b)]; });
    return order;
}

#endif

} // namespace tapegraph::detail
