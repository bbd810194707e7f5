#pragma once

#include <tapegraph/cluster/ranks/agreement.hpp>
#include <tapegraph/cluster/server.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/model/path_matches.hpp>
#include <tapegraph/model/variables.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

/// Assigns variables to parameter servers.

namespace tapegraph {

/// Options of parameter servers.
struct parameter_options {
    /// Common steps of all workers: gradients are added by the tree of the model's shards, with one
    /// update each, to the same bits as ranks without servers. false: every worker has batches and
    /// steps of its own, and updates are applied in the order in which they arrive; the result
    /// depends on timing and is not reproducible.
    bool synchronous = true;
    /// Without synchronous steps: how many steps a worker may be ahead of the slowest; negative:
    /// any number. (Q. Ho et al.: More Effective Distributed ML via a Stale Synchronous Parallel
    /// Parameter Server, 2013.)
    std::int64_t max_staleness = -1;
    /// Variables by path or scope ("words", "*/bias"), and the task that holds them: {{"words",
    /// "/job:ps/task:0"}}. The first match applies, then scope.with_device; the others are
    /// distributed by size, the largest first, each to the server that holds least.
    std::vector<std::pair<std::string, std::string>> placed{};
};

namespace detail {

/// A variable's position among the bytes exchanged between a worker and its server.
struct held_variable {
    int variable;              ///< its number in the model's list
    std::size_t offset, bytes; ///< in the block of its server
    bool assigned = false;     ///< assigned by steps, like moving averages: pushed as a value instead of a gradient
};

/// The variables of each server, in the order of the model's variables.
struct parameter_plan {
    struct block {
        std::vector<held_variable> held;
        std::size_t bytes = 0;
        void add(int variable, std::size_t size, bool assigned = false) {
            held.push_back({variable, bytes, size, assigned});
            bytes += (size + 7) / 8 * 8;
        }
    };
    std::vector<block> variables; ///< by server
    std::vector<block> states;    ///< state of its optimizer, as in the model
    std::string text;             ///< "hidden/kernel=0;..."
};

/// The number of the server that shall hold a variable. Throws argument_error, which names the
/// task, for a task that is invalid or that the cluster does not have.
int task_of_variable(const std::string& path, const std::string& named, const cluster_spec& cluster);

/// Throws argument_error for a task that holds no variables, and for a pattern that nothing matches.
parameter_plan plan_parameters(const variable_list& variables, const server& where, const parameter_options& options);

} // namespace detail
} // namespace tapegraph

namespace tapegraph::detail {

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION int task_of_variable(const std::string& path, const std::string& named, const cluster_spec& cluster) {
    const auto refuse = [&](const std::string& why) {
        throw argument_error("parameter_servers: '" + path + "' is placed on " + named + "; " + why);
    };
    task_name task;
    try {
        task = parse_task_name(named);
        static_cast<void>(cluster.rank_of(task));
    } catch (const error& e) {
        refuse(e.what());
    }
    if (task.job != "ps") refuse("tasks of job 'ps' hold variables");
    return task.task;
}

TG_DEFINITION parameter_plan plan_parameters(const variable_list& variables, const server& where,
                                             const parameter_options& options) {
    const auto servers = where.server_ranks().size();
    if (servers == 0) throw argument_error("parameter_servers: the cluster has no job 'ps'");
    std::vector<std::size_t> load(servers), order;
    std::vector<int> place(static_cast<std::size_t>(variables.size()), -1);
    std::vector<bool> used(options.placed.size());
    const auto bytes_of = [&](std::size_t i) {
        return variables.at(static_cast<int>(i)).data().outline_view().bytes();
    };
    for (std::size_t i = 0; i < place.size(); ++i) {
        const variable& v = variables.at(static_cast<int>(i));
        if (v.optimizer_state() || v.metric_state() || v.frozen()) continue;
        std::string named = v.task();
        for (std::size_t k = 0; k < options.placed.size(); ++k) {
            if (!path_matches(options.placed[k].first, v.path())) continue;
            used[k] = true;
            named = options.placed[k].second;
            break;
        }
        if (named.empty()) {
            order.push_back(i);
            continue;
        }
        place[i] = task_of_variable(v.path(), named, where.cluster());
        load[static_cast<std::size_t>(place[i])] += bytes_of(i);
    }
    for (std::size_t k = 0; k < used.size(); ++k)
        if (!used[k]) throw argument_error("parameter_servers: no variable matches '" + options.placed[k].first + "'");
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return bytes_of(a) > bytes_of(b); });
    for (const std::size_t i : order) {
        const auto least = std::min_element(load.begin(), load.end());
        place[i] = static_cast<int>(least - load.begin());
        *least += bytes_of(i);
    }
    parameter_plan plan{std::vector<parameter_plan::block>(servers), std::vector<parameter_plan::block>(servers), {}};
    for (std::size_t i = 0; i < place.size(); ++i) {
        if (place[i] < 0) continue;
        const variable& v = variables.at(static_cast<int>(i));
        plan.variables[static_cast<std::size_t>(place[i])].add(static_cast<int>(i), bytes_of(i), !v.trainable());
        plan.text += v.path() + "=" + std::to_string(place[i]) + ";";
    }
    for (std::size_t i = 0; i < place.size();
         ++i) { // state is stored with its variable; common state, on a single server
        const variable& v = variables.at(static_cast<int>(i));
        if (!v.optimizer_state()) continue;
        int at = servers == 1 ? 0 : -1;
        for (std::size_t k = 0; k < place.size(); ++k)
            if (place[k] >= 0 && v.path().substr(0, v.path().rfind('/')) == variables.at(static_cast<int>(k)).path())
                at = place[k];
        if (at >= 0) plan.states[static_cast<std::size_t>(at)].add(static_cast<int>(i), bytes_of(i));
    }
    return plan;
}

#endif

} // namespace tapegraph::detail
