#pragma once

#include <tapegraph/distributed/agreement.hpp>
#include <tapegraph/distributed/cluster_spec.hpp>

/// A task among the others of its cluster.

namespace tapegraph {

/// Joins the cluster when it is made, on every rank: the ranks are the tasks in order, and all have the same cluster.
///
///     tg::server server(ranks, spec);              // or server(ranks, spec, {"worker", 1}), checked against the rank
///     if (server.is_chief()) ...
template <class = void>
class basic_server {
public:
    /// Without a task this rank is the one that its number says. Throws exchange_error, the same on every rank, where the
    /// numbers of ranks and tasks differ, where a rank was told to be another task, or another cluster.
    basic_server(distributed::exchange& ranks, cluster_spec spec, std::optional<task_name> task = std::nullopt)
        : ranks_(&ranks), spec_(std::move(spec)) {
        // What differs on one rank is to be an error on all: everything is compared before anything is refused.
        const int rank = ranks.rank();
        const std::string expected = rank < spec_.size() ? spec_.task_of(rank).text() : "no task";
        const std::string told = task ? task->text() : expected;
        distributed::agree(ranks, {distributed::agreed_value("cluster", spec_.text()),
                                   distributed::agreed_value("tasks", told == expected ? "in order of ranks" : told)});
        if (spec_.size() != ranks.size())
            throw exchange_error("server: " + std::to_string(ranks.size()) + " ranks cannot be the " +
                                 std::to_string(spec_.size()) + " tasks of the cluster");
        if (told != expected)
            throw exchange_error("server: rank " + std::to_string(rank) + " is " + expected + ", not " + told);
        task_ = spec_.task_of(rank);
        ranks.set_chief(spec_.rank_of(chief()));
    }

    const cluster_spec& cluster() const { return spec_; }
    /// Which task this rank is.
    const task_name& task() const { return task_; }
    distributed::exchange& ranks() const { return *ranks_; }
    /// The one that writes checkpoints and events: the first task of job "chief" or "master", without one of "worker", else rank 0.
    task_name chief() const {
        for (const char* name : {"chief", "master", "worker"})
            for (const auto& each : spec_.jobs())
                if (each.first == name) return {name, 0};
        return spec_.task_of(0);
    }
    bool is_chief() const { return task_ == chief(); }

private:
    distributed::exchange* ranks_;
    cluster_spec spec_;
    task_name task_;
};
using server = basic_server<>;

} // namespace tapegraph
