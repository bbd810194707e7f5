#pragma once

#include <tapegraph/graph/lower.hpp>
#include <tapegraph/ir/text.hpp>
#include <tapegraph/runtime/placement_log.hpp>

#include <string>

/// What runtime/placement_log.hpp says of fused regions and of programs.

namespace tapegraph::ir::detail {

/// One line per kernel call of a bound program.
template <class Program>
void log_placement_of(const Program& p) {
    const program_view& view = p.view();
    for (int s = 0; s < view.steps.size(); ++s) {
        const step_entry& step = view.steps[s];
        const kernel_entry& kernel = view.kernels[step.kernel];
        const entry& e = view.nodes[step.node];
        const bool region = kernel.kind != static_cast<int>(kernel_kind::operation);
        std::string what = region ? operation_names(view.region_of(kernel), view.ops) : "";
        if (kernel.kind != static_cast<int>(kernel_kind::region)) {
            const bool fused = region && view.region_of(kernel).instructions() > 0;
            what = std::string(view.ops[kernel.op]->name) + (fused ? " of " + what : "");
        }
        text_builder where;
        scope_path(where, view.scopes, e.scope);
        if (view.lines[e.line].line > 0) {
            if (where.size > 0) where.put(", ");
            where.put(line_text(view.lines[e.line]).view());
        }
        std::string head = "call " + std::to_string(s) + " of " + std::to_string(view.steps.size());
        if (where.size > 0) head.append(" (").append(where.view()).append(")");
        runtime::write_placement(head + ": " + what, p.value_of(step.node), p.device(),
                                 p.device() == nullptr || view.functions[step.kernel].on_device.run != nullptr);
    }
}

} // namespace tapegraph::ir::detail
