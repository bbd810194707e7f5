#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/graph/lower.hpp>
#include <tapegraph/ir/text.hpp>
#include <tapegraph/runtime/placement_log.hpp>

#include <string>

/// Descriptions of fused regions and programs for runtime/placement_log.hpp.

namespace tapegraph::ir::detail {

/// The computation of a kernel: "matmul", "add, relu", "sum of multiply, exp", "sums of multiply,
/// exp", "add, relu and sum".
template <class View> // program_view; a template, so that programs without a log do not compile it
std::string kernel_operations(const View& view, int k) {
    const kernel_entry& kernel = view.kernels[k];
    if (kernel.kind == static_cast<int>(kernel_kind::operation)) return std::string(view.ops[kernel.op]->name);
    const region_view region = view.region_of(kernel);
    if (kernel.kind == static_cast<int>(kernel_kind::region)) return operation_names(region, view.ops);
    const std::string name(view.ops[kernel.op]->name);
    if (kernel.kind == static_cast<int>(kernel_kind::sums) && region.results() > 1)
        return reductions_of(kernel, view.kernel_words.begin()) < region.results()
                   ? operation_names(region, view.ops) + " and " + name
                   : name + "s of " + operation_names(region, view.ops);
    return name + (region.instructions() > 0 ? " of " + operation_names(region, view.ops) : "");
}

std::string by_method(std::string_view method);
/// " by winograd" or, on a GPU, " by tf32" where a call of a bound program names its algorithm;
/// empty otherwise.
template <class Program>
std::string method_of_step(const Program& p, int s) {
    const program_view& view = p.view();
    const kernel_entry& kernel = view.kernels[view.steps[s].kernel];
    if (kernel.kind != static_cast<int>(kernel_kind::operation)) return {};
    const auto method = view.ops[kernel.op]->method;
    const math_mode_scope in(p.math_mode());
    return method == nullptr ? std::string() : by_method(method(p.call_of(s)));
}

/// Logs one line per kernel call of a bound program.
template <class Program>
void log_placement_of(const Program& p) {
    const program_view& view = p.view();
    for (int s = 0; s < view.steps.size(); ++s) {
        const step_entry& step = view.steps[s];
        const entry& e = view.nodes[step.node];
        text_builder where;
        scope_path(where, view.scopes, e.scope);
        if (view.lines[e.line].line > 0) {
            if (where.size > 0) where.put(", ");
            where.put(line_text(view.lines[e.line]).view());
        }
        std::string head = "call " + std::to_string(s) + " of " + std::to_string(view.steps.size());
        if (where.size > 0) head.append(" (").append(where.view()).append(")");
        runtime::write_placement(head + ": " + kernel_operations(view, step.kernel), p.value_of(step.node), p.device(),
                                 p.device() == nullptr || view.functions[step.kernel].on_device.run != nullptr);
    }
}

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION std::string by_method(std::string_view method) {
    return method.empty() ? "" : " by " + std::string(method);
}

#endif

} // namespace tapegraph::ir::detail
