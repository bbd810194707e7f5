#pragma once

#include <tapegraph/cluster/cluster_spec.hpp>
#include <tapegraph/cluster/ranks/agreement.hpp>
#include <tapegraph/cluster/ranks/rank_group.hpp>
#include <tapegraph/cluster/task_exchange.hpp>
#include <tapegraph/core/component.hpp>

#include <functional>
#include <memory>

/// A task of a cluster.

namespace tapegraph {

/// Joins the cluster on construction, on every rank: the ranks are the tasks in order, and all have
/// the same cluster.
///
///     tg::server server(ranks, spec);              // or server(ranks, spec, {"worker", 1}), checked against the rank
///     if (server.is_chief()) ...
class server {
public:
    /// Without a task this rank is the one of its number. Throws exchange_error, the same on every
    /// rank, if the numbers of ranks and tasks differ, or if a rank was given another task, or
    /// another cluster.
    server(distributed::exchange& ranks, cluster_spec spec, std::optional<task_name> task = std::nullopt);
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    /// The specification it was made from.
    const cluster_spec& cluster() const { return spec_; }
    /// The task of this rank.
    const task_name& task() const { return task_; }
    /// The exchange between all processes of the cluster.
    distributed::exchange& ranks() const { return *ranks_; }
    /// The task that writes checkpoints and events: the first one of job "chief" or "master",
    /// otherwise of "worker", else rank 0.
    task_name chief() const {
        for (const char* name : {"chief", "master", "worker"})
            for (const auto& each : spec_.jobs())
                if (each.first == name) return {name, 0};
        return spec_.task_of(0);
    }
    /// Whether this task writes files and logs.
    bool is_chief() const { return task_ == chief(); }

    /// Whether a task computes steps: all except parameter servers and evaluators.
    static bool computes(const task_name& of) { return of.job != "ps" && of.job != "evaluator"; }
    /// The computing tasks as ranks of their own, in their order; null on other tasks.
    distributed::exchange* workers() const { return workers_.get(); }
    /// The same for models whose parts scope.with_device assigns to tasks by name:
    /// `compile_options{.tasks = server.tasks()}`. It lives as long as the server; null on a task
    /// that does not compute.
    task_group* tasks() const { return tasks_.get(); }
    /// Ranks of the computing tasks, and of job "ps", which may be empty.
    const std::vector<int>& worker_ranks() const { return worker_ranks_; }
    /// The ranks of the parameter servers.
    const std::vector<int>& server_ranks() const { return server_ranks_; }

    /// Sets the work of join(); parameter_servers (cluster/parameter_servers.hpp) call it on
    /// construction.
    void serve(std::function<void()> service) { service_ = std::move(service); }
    /// On a parameter server: serves until all workers have ended. Throws argument_error on another
    /// task, and if there is nothing to serve.
    void join();

private:
    distributed::exchange* ranks_;
    cluster_spec spec_;
    task_name task_;
    std::vector<int> worker_ranks_, server_ranks_;
    std::shared_ptr<distributed::rank_group> workers_;
    std::unique_ptr<distributed::task_exchange> tasks_;
    std::function<void()> service_;
};

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION server::server(distributed::exchange& ranks, cluster_spec spec, std::optional<task_name> task)
    : ranks_(&ranks), spec_(std::move(spec)) {
    // A difference on one rank shall be an error on all: everything is compared before anything
    // is refused.
    const int rank = ranks.rank();
    const std::string expected = rank < spec_.size() ? spec_.task_of(rank).text() : "no task";
    const std::string actual = task ? task->text() : expected;
    distributed::agree(ranks, {distributed::agreed_value("cluster", spec_.text()),
                               distributed::agreed_value("tasks", actual == expected ? "in order of ranks" : actual)});
    if (spec_.size() != ranks.size())
        throw exchange_error("server: " + std::to_string(ranks.size()) + " ranks cannot be the " +
                             std::to_string(spec_.size()) + " tasks of the cluster");
    if (actual != expected)
        throw exchange_error("server: rank " + std::to_string(rank) + " is " + expected + ", not " + actual);
    task_ = spec_.task_of(rank);
    ranks.set_chief(spec_.rank_of(chief()));
    for (int r = 0; r < spec_.size(); ++r) {
        if (computes(spec_.task_of(r))) worker_ranks_.push_back(r);
        if (spec_.task_of(r).job == "ps") server_ranks_.push_back(r);
    }
    if (!computes(task_)) return;
    workers_ = std::make_shared<distributed::rank_group>(ranks, worker_ranks_);
    tasks_ = std::make_unique<distributed::task_exchange>(*workers_, spec_, worker_ranks_);
}

TG_DEFINITION void server::join() {
    if (task_.job != "ps")
        throw argument_error("server.join: " + task_.text() + " is not a parameter server; those of job 'ps' are");
    if (!service_)
        throw argument_error("server.join: " + task_.text() +
                             " has nothing to serve; make the model's tg::parameter_servers first, on every task");
    service_();
}

#endif

} // namespace tapegraph
