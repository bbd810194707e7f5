#pragma once

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/ops/records/operations.hpp>
#include <tapegraph/runtime/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

/// The walk of records through decision trees as one operation. A step of a walk waits for the node before
/// it, so several walks go on side by side: of one record through several trees, or of several records
/// through one tree, which then stays in the cache.

namespace tapegraph::detail {

template <all_branches Modes, class T>
bool says_yes(T v, const walked_node<T>& n) {
    if constexpr (Modes == all_branches::leq) return v <= n.split;
    if constexpr (Modes == all_branches::lt) return v < n.split;
    switch (static_cast<branch>((n.feature >> 28) & 7)) {
    case branch::leq: return v <= n.split;
    case branch::lt: return v < n.split;
    case branch::gte: return v >= n.split;
    case branch::gt: return v > n.split;
    case branch::eq: return v == n.split;
    default: return v != n.split;
    }
}

/// Walks of `Lanes` pairs of a record and a tree. `at` are roots before, and leaves after it.
template <int Lanes, all_branches Modes, bool Missing, class T>
void walk(const walked_node<T>* nodes, const T* const* x, std::int32_t* at) {
    for (;;) {
        std::int32_t ended = -1;
        for (int k = 0; k < Lanes; ++k) {
            const walked_node<T>& n = nodes[std::max(at[k], 0)];
            const T v = x[k][n.feature % walked_node<T>::features];
            bool yes = says_yes<Modes>(v, n);
            if constexpr (Missing) yes = yes || (std::isnan(v) && (n.feature & walked_node<T>::missing) != 0);
            const std::int32_t next = n.child[yes];
            at[k] = at[k] < 0 ? at[k] : next;
            ended &= at[k];
        }
        if (ended < 0) break;
    }
    for (int k = 0; k < Lanes; ++k) at[k] = ~at[k];
}

/// Leaves of records [first, last) in trees [begin, end).
template <all_branches Modes, bool Missing, class T>
void walk_block(const walked_node<T>* nodes, const std::int32_t* roots, const T* x, std::int64_t width,
                std::int64_t trees, std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end,
                std::int32_t* leaves) {
    constexpr int lanes = 8;
    const T* rows[lanes];
    std::int32_t at[lanes];
    const auto one = [&](std::int64_t record, std::int64_t tree) {
        at[0] = roots[tree], rows[0] = x + record * width;
        walk<1, Modes, Missing>(nodes, rows, at);
        leaves[record * trees + tree] = at[0];
    };
    const std::int64_t grouped = first + (last - first) / lanes * lanes;
    for (std::int64_t t = begin; t < end; ++t)
        for (std::int64_t r = first; r < grouped; r += lanes) {
            for (int k = 0; k < lanes; ++k) at[k] = roots[t], rows[k] = x + (r + k) * width;
            walk<lanes, Modes, Missing>(nodes, rows, at);
            for (int k = 0; k < lanes; ++k) leaves[(r + k) * trees + t] = at[k];
        }
    for (std::int64_t r = grouped; r < last; ++r) {
        std::int64_t t = begin;
        for (; t + lanes <= end; t += lanes) {
            for (int k = 0; k < lanes; ++k) at[k] = roots[t + k], rows[k] = x + r * width;
            walk<lanes, Modes, Missing>(nodes, rows, at);
            for (int k = 0; k < lanes; ++k) leaves[r * trees + t + k] = at[k];
        }
        for (; t < end; ++t) one(r, t);
    }
}

} // namespace tapegraph::detail

template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
struct tapegraph::runtime::kernel<tapegraph::walk_trees_op, T> {
    static void run(const kernel_call& c) {
        using tapegraph::detail::all_branches;
        const auto a = attributes_of<tapegraph::walk_trees_op>(c);
        switch (static_cast<all_branches>(a.modes)) {
        case all_branches::leq: return a.missing ? run<all_branches::leq, true>(c) : run<all_branches::leq, false>(c);
        case all_branches::lt: return a.missing ? run<all_branches::lt, true>(c) : run<all_branches::lt, false>(c);
        default: return a.missing ? run<all_branches::mixed, true>(c) : run<all_branches::mixed, false>(c);
        }
    }

private:
    template <tapegraph::detail::all_branches Modes, bool Missing>
    static void run(const kernel_call& c) {
        constexpr std::int64_t records_of_task = 256, trees_of_task = 16;
        constexpr double worth = 200'000; // steps
        const std::int64_t records = c.in[0].extents[0], width = c.in[0].extents[1], trees = c.in[2].extents[0];
        const std::int64_t blocks = (trees + trees_of_task - 1) / trees_of_task;
        const std::int64_t tasks = (records + records_of_task - 1) / records_of_task * blocks;
        const double steps = static_cast<double>(records) * static_cast<double>(trees) *
                             static_cast<double>(attributes_of<tapegraph::walk_trees_op>(c).depth);
        cpu::parallel_for(tasks, steps > worth, [&](std::int64_t task) {
            const std::int64_t first = task / blocks * records_of_task, begin = task % blocks * trees_of_task;
            tapegraph::detail::walk_block<Modes, Missing>(
                static_cast<const tapegraph::walked_node<T>*>(c.in[1].data), c.in[2].as<const std::int32_t>(),
                c.in[0].as<const T>(), width, trees, first, std::min(records, first + records_of_task), begin,
                std::min(trees, begin + trees_of_task), c.out[0].as<std::int32_t>());
        });
    }
};
