#pragma once

#include <tapegraph/core/kept_text.hpp>
#include <tapegraph/graph/model_trace.hpp>
#include <tapegraph/model/place.hpp>

#include <string_view>

namespace tapegraph {

/// The result of graph_scope::with_device: while it lives, the trace places nodes on that device or
/// task.
class graph_placement {
public:
    constexpr graph_placement(ir::model_trace* owner, const detail::place_name& name)
        : t_(owner), before_(owner->place), computing_before_(owner->computing_task), task_before_(owner->task) {
        if (name.computes) t_->place = detail::place::anywhere; // any device of that task
        if (name.place >= 0) t_->place = name.place;
        if (!name.task.empty()) t_->task = kept_text(name.task);
        if (name.computes) t_->computing_task = t_->number_of_task(t_->task);
    }
    graph_placement(const graph_placement&) = delete;
    graph_placement& operator=(const graph_placement&) = delete;
    constexpr ~graph_placement() {
        t_->place = before_;
        t_->computing_task = computing_before_;
        t_->task = task_before_;
    }

private:
    ir::model_trace* t_;
    int before_, computing_before_;
    std::string_view task_before_;
};

} // namespace tapegraph
