#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/lower.hpp>
#include <tapegraph/runtime/content_mark.hpp>
#include <tapegraph/runtime/kept_blocks.hpp>
#include <tapegraph/runtime/kept_memory.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace tapegraph::ir {

/// What a program on the CPU knows of its variables' elements: whose marks it changes by updating
/// them, and which of the others its steps may derive data from and keep it
/// (runtime/kept_memory.hpp).
class kept_variables {
public:
    explicit kept_variables(int variables)
        : marks_(static_cast<std::size_t>(variables), nullptr), marks_of_kept_(marks_) {}

    /// The mark of a variable's elements; null: nobody tells whether they have changed.
    void set_mark(int variable, runtime::content_mark* mark) {
        moved_ = moved_ || marks_[variable] != mark;
        marks_[variable] = mark;
    }
    /// The memory of a step, or null where it reads no variable that stays as it is. `values`: the
    /// program's nodes, which outlive this.
    runtime::kept_memory* of_step(const program_view& view, int step, const numbered<buffer_view>& values);
    /// Says that variables which the program updates have changed.
    void mark_updates(const program_view& view);

private:
    std::vector<std::unique_ptr<runtime::kept_memory>> steps_;
    // Per variable; the second ones without those of memory that the program writes, maybe as another variable
    numbered<runtime::content_mark*> marks_, marks_of_kept_;
    bool moved_ = false;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION runtime::kept_memory* kept_variables::of_step(const program_view& view, int step,
                                                            const numbered<buffer_view>& values) {
    if (!runtime::kept_blocks::instance().keeps.load()) return nullptr;
    const auto at = static_cast<std::size_t>(step);
    if (at < steps_.size() && steps_[at] != nullptr) return steps_[at].get();
    const step_entry& entry = view.steps[step];
    const auto updates = [&](int variable) {
        for (const assignment_entry& update : view.assignments)
            if (update.variable == variable) return true;
        return false;
    };
    for (int k = 0; k < entry.inputs; ++k) {
        const int id = view.alias[view.values[entry.first_value + k]];
        if (!view.nodes[id].is(descriptor_of<variable_op>)) continue;
        int v = 0;
        while (view.variables[v].node != id) ++v;
        if (updates(v)) continue;
        steps_.resize(static_cast<std::size_t>(view.steps.size()));
        if (!steps_[at]) steps_[at] = std::make_unique<runtime::kept_memory>();
        steps_[at]->watch(k, &values[id], &marks_of_kept_[v]);
    }
    return at < steps_.size() ? steps_[at].get() : nullptr;
}

TG_DEFINITION void kept_variables::mark_updates(const program_view& view) {
    if (moved_) marks_of_kept_ = marks_;
    for (const assignment_entry& update : view.assignments) {
        runtime::content_mark* const mark = marks_[update.variable];
        if (mark == nullptr) continue;
        mark->change();
        for (int v = 0; moved_ && v < view.variables.size(); ++v)
            if (marks_[v] == mark) marks_of_kept_[v] = nullptr;
    }
    moved_ = false;
}

#endif

} // namespace tapegraph::ir
