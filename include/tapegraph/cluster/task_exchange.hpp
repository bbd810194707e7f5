#pragma once

#include <tapegraph/cluster/task_messages.hpp>
#include <tapegraph/cluster/task_values.hpp>
#include <tapegraph/model/task_group.hpp>

/// The tasks of a cluster as models see them.

namespace tapegraph::distributed {

/// A task_group over an exchange between the computing tasks of a cluster; `members`: the number of
/// each in the cluster. All of these must outlive it. Created by tg::server.
class task_exchange final : public task_group {
public:
    task_exchange(exchange& ranks, const cluster_spec& cluster, const std::vector<int>& members)
        : messages_(ranks, cluster, members) {}

    /// The number of this process among those that run parts.
    int rank() const override { return messages_.rank(); }
    int chief() const override { return messages_.chief(); }
    int rank_of(std::string_view task) const override { return messages_.rank_of(task); }
    std::string name_of(int rank) const override { return messages_.name_of(rank); }
    void barrier(const std::string& label) override { messages_.barrier(label); }
    void gather(variable_list& variables) override { tapegraph::detail::gather_variables(variables, messages_); }
    std::unique_ptr<tapegraph::detail::part_transfers> transfers() override {
        return std::make_unique<tapegraph::detail::task_values>(*this, messages_);
    }

private:
    task_messages messages_;
};

} // namespace tapegraph::distributed
