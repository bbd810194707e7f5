#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/element_types.hpp>
#include <tapegraph/eager/formula_record.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>

#include <algorithm>

/// Differentiates recorded formulas with the interpreter, for derivatives that are themselves
/// recorded; also provides the sums and ones that adjoints are made of.

namespace tapegraph::detail {

/// Rebuilds the trace of a formula from its code, with shaped tensors as leaves.
int rebuild(node_interpreter& run, const formula_code& code, const int* leaf_nodes, const double* numbers);

/// A record of a formula, rebuilt as a trace that the interpreter can run.
struct replayed_formula {
    node_interpreter run;
    int nodes[most_leaves]{};
    const any_tensor* leaves[most_leaves]{};
    int output, last;

    explicit replayed_formula(const formula_record& r);
};

/// out = a + b for tensors of T, not recorded. A formula would also bring its derivatives into programs
/// that have no tensors of T.
template <class T>
void unrecorded_sum(const buffer_view& a, const buffer_view& b, const buffer_view& out) {
    using sum = sum_region<T>;
    const buffer_view in[]{a, b};
    kernel_call call;
    call.in = in, call.inputs = 2;
    call.out = &out, call.outputs = 1;
    call.domain = out;
    runtime::observed(
        [&] {
            return runtime::observed_call{runtime::call_part::operation, &call, nullptr, 0, {"add"}};
        },
        [&] { run_region(&cpu::evaluate_tile<sum>, runtime::map_on_device<sum>(), call); });
}

template <class Tensor>
Tensor add_adjoints(const Tensor& a, const Tensor& b) {
    const tape_storage& tape = tape_storage::instance();
    const bool recorded = tape.tracks(a) || tape.tracks(b);
    if (is_storage_type(a.type()) || (a.type() == dtype::f64 && recorded)) return interpreted_sum(a, b);
    if (a.type() == dtype::f64) {
        Tensor result(dtype::f64, a.shape());
        unrecorded_sum<double>(a.view(), b.view(), result.view());
        check_finite("add", result, {});
        return result;
    }
    const tensor<float> x(a), y(b);
    return tensor<float>(x + y);
}

template <class Tensor>
bool added_in_place(Tensor& a, Tensor& b) {
    Tensor& to = may_change(a) ? a : b;
    if (!may_change(to) || !a.has_storage() || !sums_in_place(a.type())) return false;
    const buffer_view first = a.view(), second = b.view(), out = to.write_on(runtime::current_runtime());
    if (a.type() == dtype::f64)
        unrecorded_sum<double>(first, second, out);
    else
        unrecorded_sum<float>(first, second, out);
    if (&to == &b) a = std::move(b);
    return true;
}

template <class Tensor>
Tensor ones_like(const Tensor& like) {
    Tensor result(like.type(), like.shape());
    floating_types::visit(like.type(), [&]<class T>(std::type_identity<T>) {
        std::fill_n(static_cast<T*>(result.write()), result.size(), static_cast<T>(1));
    });
    return result;
}

TG_COMPILED(eager, void unrecorded_sum<float>(const buffer_view&, const buffer_view&, const buffer_view&))
TG_COMPILED(eager, void unrecorded_sum<double>(const buffer_view&, const buffer_view&, const buffer_view&))
TG_COMPILED(eager, any_tensor add_adjoints<any_tensor>(const any_tensor&, const any_tensor&))
TG_COMPILED(eager, bool added_in_place<any_tensor>(any_tensor&, any_tensor&))
TG_COMPILED(eager, any_tensor ones_like<any_tensor>(const any_tensor&))

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION int rebuild(node_interpreter& run, const formula_code& code, const int* leaf_nodes,
                          const double* numbers) {
    const ir::region_view region = code.value_region();
    int registers[160];
    for (int s = 0; s < region.slots(); ++s) {
        const int source = code.forward_sources[s];
        registers[s] = source < first_number ? leaf_nodes[source]
                                             : run.t.constant(numbers[source - first_number], region.slot_type(s));
    }
    const int first = run.t.nodes.size();
    for (int i = 0; i < region.instructions(); ++i) {
        const ir::region_instruction step = region.instruction(i);
        int args[4]{};
        for (int k = 0; k < step.operands(); ++k) args[k] = registers[step.operand[k]];
        registers[region.slots() + i] = run.t.map(*code.ops[step.op], args, step.operands());
    }
    const int group = run.t.groups++;
    for (int i = first; i < run.t.nodes.size(); ++i) run.t.nodes[i].group = group;
    return registers[region.result(0)];
}

TG_DEFINITION replayed_formula::replayed_formula(const formula_record& r) {
    for (int i = 0; i < r.leaf_count; ++i) {
        nodes[i] = run.input(r.leaves[i]);
        leaves[i] = &r.leaves[i];
    }
    output = run.input(r.output);
    last = rebuild(run, *r.formula->code, nodes, r.numbers);
    if (!(run.t.dims(last) == r.domain)) { // only broadcast_to, whose shape the formula does not contain
        run.t.nodes[last].rank = r.domain.rank();
        run.t.nodes[last].dims = run.t.store(r.domain);
    }
    if (r.formula->reduction == nullptr) return;
    const int group = run.t.nodes[last].op->kind == operation_kind::leaf ? run.t.groups++ : run.t.nodes[last].group;
    last = run.t.invoke(*r.formula->reduction, r.attributes, nullptr, &last, 1);
    run.t.nodes[last].group = group;
}

TG_DEFINITION void formula_record::replay(backward_pass& walk, const any_tensor& adjoint) {
    replayed_formula f(*this);
    const int above = f.run.input(adjoint);
    interpret_adjoints(f.run, f.last, f.output, above, f.leaves, f.nodes, leaf_count, walk);
}

TG_DEFINITION bool formula_record::replay_forward(const jvp_pass& walk, any_tensor& tangent) {
    replayed_formula f(*this);
    return interpret_tangent(f.run, f.last, f.output, f.leaves, f.nodes, leaf_count, walk, tangent);
}

#endif

} // namespace tapegraph::detail
