#pragma once

#include <tapegraph/core/config.hpp>

#include <memory>
#include <string>
#include <string_view>

/// The interface of the tasks of a cluster that compute parts of a model. A cluster implements it
/// (cluster/task_exchange.hpp), so a model includes no code of clusters.

namespace tapegraph {

class variable_list;
namespace detail {
class part_transfers;
}

/// The tasks of a cluster, seen from one of them. `tg::server` makes one: `compile_options{.tasks =
/// server.tasks()}`. All tasks run the same program; a task's rank is its number.
class task_group {
public:
    virtual ~task_group() = default;

    /// The number of this process, from 0.
    virtual int rank() const = 0;
    /// The rank that computes everything that no device name places, and that writes files.
    virtual int chief() const = 0;
    /// The rank of "/job:worker/replica:0/task:1". Throws range_error or argument_error where the
    /// cluster has no such task.
    virtual int rank_of(std::string_view task) const = 0;
    /// "/job:worker/task:1"
    virtual std::string name_of(int rank) const = 0;
    /// Returns when every rank has called it.
    virtual void barrier(const std::string& label) = 0;
    /// Sends all variables to every task, until the next run; every task calls it.
    virtual void gather(variable_list& variables) = 0;
    /// The transfers between the parts of one program (compile/placed/part_transfers.hpp). Throws
    /// argument_error where there are more tasks than a variable can count.
    virtual std::unique_ptr<detail::part_transfers> transfers() = 0;
};

} // namespace tapegraph
