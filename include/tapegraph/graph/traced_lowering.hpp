#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/region_assembler.hpp>
#include <tapegraph/graph/region_key.hpp>
#include <tapegraph/graph/scan_cells.hpp>
#include <tapegraph/graph/traced_program_declaration.hpp>
#include <tapegraph/graph/traced_scan.hpp>
#include <tapegraph/ir/text.hpp>

/// Defines what graph/traced_program_declaration.hpp declares. Programs that link the component do
/// not include it: the passes run there.

namespace tapegraph::ir {

namespace detail {

TG_DEFINITION std::string error_line(const trace& t) {
    const auto fact = [&](int k) { return std::string(error_fact(t, k).view()); };
    std::string text = fact(0);
    if (t.error.operands > 0) {
        text += ": " + fact(2);
        if (t.error.operands > 1) text += " and " + fact(3);
    }
    if (const std::string scope = fact(4); !scope.empty()) text += ", in scope '" + scope + "'";
    if (t.error.line > 0) text += ", at " + fact(1);
    return text;
}

} // namespace detail

TG_DEFINITION void trace_alone(model_trace& t, detail::trace_builder build) {
    scan_cells cells;
    const scan_cells_now recorded(cells, t);
    build(t);
}

struct traced_program::scan_step {
    traced_program program;
    traced_scan scan;
};

TG_DEFINITION traced_program::traced_program() = default;
TG_DEFINITION traced_program::~traced_program() = default;

TG_DEFINITION std::unique_ptr<traced_program> traced_program::make(std::span<const trace_builder> stages, bool lowers) {
    auto p = std::make_unique<traced_program>();
    p->cells_ = std::make_shared<scan_cells>();
    const scan_cells_now cells(*p->cells_, p->trace_);
    bool first = true;
    for (const trace_builder build : stages) {
        if (!first) begin_stage(p->trace_);
        first = false;
        if (p->trace_.error.what == nullptr) build(p->trace_);
        note_pass(p->trace_, "trace");
    }
    p->finish(lowers);
    return p;
}

TG_DEFINITION std::unique_ptr<traced_program> traced_program::make_by(void (*build)(const void*, model_trace&),
                                                                      const void* callable, bool lowers,
                                                                      std::shared_ptr<scan_cells> shared) {
    auto p = std::make_unique<traced_program>();
    p->cells_ = shared ? std::move(shared) : std::make_shared<scan_cells>();
    const scan_cells_now cells(*p->cells_, p->trace_);
    build(callable, p->trace_);
    p->finish(lowers);
    return p;
}

TG_DEFINITION void traced_program::finish(bool lowers) {
    if (!cells_->all.empty()) refuse_values_of_cells(trace_);
    throw_if_ill_formed();
    if (lowers) {
        const scan_cells_now cells(*cells_, trace_); // kernels of scans trace their cells
        lower();
    }
    look();
}

TG_DEFINITION void traced_program::throw_if_ill_formed() const {
    if (trace_.error.what != nullptr) throw shape_error(detail::error_line(trace_));
}

// Clears what the compiler, too, drops between the stages of a builder when it freezes them
// (graph/freeze.hpp).
TG_DEFINITION void traced_program::begin_stage(model_trace& t) {
    t.history.clear();
    t.named.clear();
    t.results.clear();
    t.unique_scopes.clear();
    t.added_losses.clear();
    t.flows = {-1, -1, {}};
    t.many_flows = {};
    t.scope = t.line = t.place = t.computing_task = 0;
    t.task = {};
}

// Runs the passes of compile_program (graph/compile.hpp), in its order.
TG_DEFINITION void traced_program::lower() {
    trace_.layers.clear(); // the layer table describes the model as it was written
    simplify(trace_);
    fold_numbers(trace_);
    eliminate_common_subexpressions(trace_);
    eliminate_dead_nodes(trace_);
    fuse_epilogues(trace_);
    fuse_messages(trace_);
    join_pads(trace_);
    eliminate_dead_nodes(trace_);
    view_slices(trace_);
    snapshot_variables(trace_);
    schedule_ = make_schedule(trace_);
    trace_.history.push_back({"kernel calls", schedule_.steps.size()});
    throw_if_ill_formed();
    look();
    for (const kernel_entry& k : schedule_.kernels) {
        interpreted_.push_back(nullptr);
        functions_.push_back(function_of(k));
    }
}

TG_DEFINITION runtime::kernel_pair traced_program::function_of(const kernel_entry& k) {
    const auto type = static_cast<dtype>(k.type);
    const auto kind = static_cast<kernel_kind>(k.kind);
    const operation* const op = k.op >= 0 ? schedule_.ops[k.op] : nullptr;
    if (kind == kernel_kind::operation && op->per_node_kernel)
        return function_of_node(*op, schedule_.kernel_words[k.first_word]);
    if (kind == kernel_kind::operation) return registered(*op, type).kernel;
    const region_view code{schedule_.kernel_words.begin() + k.first_word};
    if (kind == kernel_kind::reduction) {
        if (code.instructions() == 0) return registered(*op, type).kernel; // an operand in memory
        assemble(code, {code.result(0)});
        return {registered(*op, type).fused, {}};
    }
    std::vector<int> wanted;
    for (int r = 0; r < code.results(); ++r) wanted.push_back(code.result(r));
    if (kind == kernel_kind::region) {
        assemble(code, wanted);
        return {{&runtime::run_interpreted_map, &runtime::no_workspace}, {}};
    }
    const runtime::several_results plan = runtime::plan_of_several(
        reductions_of(k, schedule_.kernel_words.begin()), code.slots(), wanted.data(), static_cast<int>(wanted.size()));
    std::vector<int> evaluated;
    for (int r = 0; r < plan.evaluated; ++r) evaluated.push_back(wanted[static_cast<std::size_t>(plan.place[r])]);
    assemble(code, evaluated).sums = plan;
    using of_float = runtime::interpreted_sums<float>;
    using of_double = runtime::interpreted_sums<double>;
    if (type == dtype::f64) return {{&of_double::run, &of_double::workspace}, {}};
    return {{&of_float::run, &of_float::workspace}, {}};
}

// A scan's step is a program of its own.
TG_DEFINITION runtime::kernel_pair traced_program::function_of_node(const operation& op, int number) {
    const registered_kernel& known = registered(op, detail::type_of_all);
    if (known.trace_step == nullptr) return known.kernel;
    auto& made = *scans_.emplace_back(std::make_unique<scan_step>());
    known.trace_step(view_, number, made.program.trace_, made.scan.table);
    made.program.throw_if_ill_formed();
    made.program.lower();
    made.program.look();
    made.scan.step = &made.program.view();
    interpreted_.back() = &made.scan;
    return {{&run_traced_scan, &traced_scan_workspace}, {}};
}

TG_DEFINITION const registered_kernel& traced_program::registered(const operation& op, dtype type) const {
    const registered_kernel* const found = kernel_registry::instance().find(&op, type);
    if (found == nullptr)
        throw dtype_error(std::string(op.name) + " of " + name_of(type) +
                          ": register_kernels makes it known to graphs that are made when the program runs");
    return *found;
}

TG_DEFINITION runtime::interpreted_kernel& traced_program::assemble(const region_view& code,
                                                                    const std::vector<int>& wanted) {
    runtime::interpreted_kernel& k = *regions_.emplace_back(std::make_unique<runtime::interpreted_kernel>());
    k.whole = kernel_registry::instance().find(region_key(code, schedule_.ops.begin(), wanted));
    if (k.whole == nullptr) detail::region_assembler(code, schedule_.ops.begin(), k).assemble(wanted);
    interpreted_.back() = &k;
    return k;
}

TG_DEFINITION void traced_program::look() {
    const model_trace& t = trace_;
    const schedule& s = schedule_;
#define TG_MEMBER(type, list, name, most) view_.name = {list.begin(), list.size()};
    TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
    view_.functions = {functions_.data(), static_cast<int>(functions_.size())};
    view_.interpreted = {interpreted_.data(), static_cast<int>(interpreted_.size())};
}

} // namespace tapegraph::ir
