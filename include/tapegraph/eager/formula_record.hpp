#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/partial_array.hpp>
#include <tapegraph/eager/formula.hpp>
#include <tapegraph/eager/interpreter.hpp>
#include <tapegraph/eager/run_formula.hpp>
#include <tapegraph/eager/tape.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>

#include <cstring>
#include <new>

/// Records sealed formulas on the tape, and differentiates them in reverse and forward mode. Nothing
/// here depends on a formula's type, so it is compiled once.

namespace tapegraph::detail {

template <class T>
using sum_region = region<slots<dtype_of<T>, dtype_of<T>>, results<2>, instruction<add_op, dtype_of<T>, 0, 1>>;

/// Whether adjoints are added in the memory of one of them: not where the sum is recorded or looked at.
inline bool sums_in_place(dtype type) {
    return (type == dtype::f32 || type == dtype::f64) && runtime::current_runtime() == nullptr &&
           !tape_storage::instance().recording() && !numeric_check::active();
}

/// The tape record of a sealed formula, or of a reduction of one.
struct formula_record : tape_record {
    const formula_view* formula;
    shape domain;
    std::int64_t attributes[2]; // of the reduction
    int leaf_count;
    any_tensor* leaves; // in the tape's memory; without buffers where the adjoints do not read them
    double numbers[most_numbers];
    any_tensor output;

    formula_record() {} // not = default, which would make the tape fill `numbers` with zeros first

    static void destroy(tape_record& base);

    // A view of a reduction's result (or of its adjoint) in which the reduced axes have extent 1,
    // so that it broadcasts to the domain.
    buffer_view kept(const any_tensor& t) const;

    /// The call that computes adjoints of leaves, with its results still missing.
    struct adjoint_call {
        partial_array<buffer_view, most_leaves + most_numbers + 2> in;
        number_slot numbers[most_numbers];
        kernel_call call;

        adjoint_call(const formula_record& self, const buffer_view& adjoint) : in(self.formula->code->slots) {
            const formula_code& code = *self.formula->code;
            for (int s = 0; s < code.slots; ++s) {
                const int source = code.sources[s];
                if (source == from_adjoint) {
                    in[s] = adjoint;
                } else if (source == from_output) {
                    in[s] = self.kept(self.output);
                } else if (source < first_number) {
                    in[s] = self.leaves[source].view();
                } else {
                    const int k = source - first_number;
                    const double value = k < code.numbers ? self.numbers[k] : code.constant[k - code.numbers];
                    in[s].type = code.adjoint_region().slot_type(s);
                    numbers[k].set(value, in[s].type);
                    in[s].data = numbers[k].bytes;
                }
            }
            call.in = in.data();
            call.inputs = code.slots;
            call.domain = domain_view(self.domain, code.domain_type);
        }
        adjoint_call(const adjoint_call&) = delete; // the call points into it
        adjoint_call& operator=(const adjoint_call&) = delete;
    };

    static void backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint);

    // Forward mode. The formula's Jacobian by one leaf is a factor per element, which is the leaf's adjoint for an adjoint
    // of 1; a single tangent takes the adjoint's place. The graph's formula_tangent does the same.
    static bool jvp(tape_record& base, const jvp_pass& walk, any_tensor& tangent);
    static bool forward(tape_record& base, const jvp_pass& walk, any_tensor& tangent);

private:
    // The axes of the domain along which a leaf was broadcast: its adjoint is summed over them.
    std::int64_t axes_to(const any_tensor& leaf) const;
    // Result r of the adjoints' region, summed over the axes `over`.
    any_tensor reduced(const kernel_call& base, int r, std::int64_t over, dtype type, const shape& dims) const;
    template <class Run>
    void observed_sum(const kernel_call& call, const Run& run) const {
        observed_formula(runtime::call_part::summed_adjoints, *formula, call, {}, run);
    }

    void reduce_on_cpu(kernel_call& call, int r, dtype type) const;

    void reduce_on_device(kernel_call& sum, int r, dtype type) const;

    // Differentiates while another tape records: the derivative itself is recorded, operation by
    // operation.
    void replay(backward_pass& walk, const any_tensor& adjoint);
    bool replay_forward(const jvp_pass& walk, any_tensor& tangent);
};

void record_formula(const formula_view& f, const formula_values& values, const shape& domain,
                    const std::int64_t* attributes, any_tensor& result);

inline bool any_tracked(const formula_values& values) {
    const tape_storage& tape = tape_storage::instance();
    if (!tape.recording()) return false;
    for (int i = 0; i < values.leaf_count; ++i)
        if (tape.tracks(*values.leaves[i])) return true;
    return false;
}

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION void formula_record::destroy(tape_record& base) {
    auto& self = static_cast<formula_record&>(base);
    for (int i = 0; i < self.leaf_count; ++i) self.leaves[i].~any_tensor();
    self.~formula_record();
}

TG_DEFINITION buffer_view formula_record::kept(const any_tensor& t) const {
    buffer_view v = t.view();
    if (formula->reduction == nullptr) return v;
    v.rank = domain.rank();
    for (int i = 0; i < v.rank; ++i) v.extents[i] = (attributes[0] >> i & 1) != 0 ? 1 : domain[i].value;
    return v;
}

TG_DEFINITION void formula_record::backward(tape_record& base, backward_pass& walk, const any_tensor& adjoint) {
    auto& self = static_cast<formula_record&>(base);
    const formula_code& code = *self.formula->code;
    if (code.results == 0) return;
    if (tape_storage::instance().recording()) return self.replay(walk, adjoint);

    adjoint_call operands(self, self.kept(adjoint));
    kernel_call& call = operands.call;

    // One pass for all leaves of full shape, which adds to what has arrived for them, and one fused
    // reduction for each leaf that was broadcast.
    partial_array<any_tensor, most_leaves> flows(code.results);
    partial_array<buffer_view, most_leaves> out(code.results);
    cpu::tile_function sums[most_leaves]{};
    bool any_full = false, any_sum = false;
    for (int r = 0; r < code.results; ++r) {
        const any_tensor& leaf = self.leaves[code.result_leaf[r]];
        if (!walk.wants(leaf) || !(leaf.shape() == self.domain)) continue;
        any_full = true;
        if (any_tensor* const before = sums_in_place(leaf.type()) ? walk.own_adjoint(leaf) : nullptr) {
            out[r] = before->write_on(nullptr);
            sums[r] = leaf.type() == dtype::f64 ? &cpu::evaluate_tile<sum_region<double>>
                                                : &cpu::evaluate_tile<sum_region<float>>;
            any_sum = true;
        } else {
            flows[r] = any_tensor(leaf.type(), leaf.shape());
            out[r] = flows[r].view();
        }
    }
    for (int r = 0; r < code.results; ++r) {
        const dtype type = self.leaves[code.result_leaf[r]].type();
        out[r].type = type;
    }
    call.out = out.data();
    call.outputs = code.results;
    if (any_sum)
        run_backward_adding(*self.formula, call, sums);
    else if (any_full)
        run_backward(*self.formula, call);
    for (int r = 0; r < code.results; ++r) {
        const any_tensor& leaf = self.leaves[code.result_leaf[r]];
        if (!walk.wants(leaf) || sums[r] != nullptr) continue;
        if (!(leaf.shape() == self.domain))
            flows[r] = self.reduced(call, r, self.axes_to(leaf), leaf.type(), leaf.shape());
        walk.add(leaf, std::move(flows[r]));
    }
}

TG_DEFINITION bool formula_record::jvp(tape_record& base, const jvp_pass& walk, any_tensor& tangent) {
    return walk.kernels.formula(base, walk, tangent);
}

TG_DEFINITION bool formula_record::forward(tape_record& base, const jvp_pass& walk, any_tensor& tangent) {
    auto& self = static_cast<formula_record&>(base);
    const formula_code& code = *self.formula->code;
    int active[most_leaves], count = 0;
    for (int r = 0; r < code.results; ++r)
        if (walk.find(self.leaves[code.result_leaf[r]]) != nullptr) active[count++] = r;
    if (count == 0) return false;
    if (tape_storage::instance().recording()) return self.replay_forward(walk, tangent);

    const auto tangent_of = [&](int r) {
        return walk.kernels.converted(*walk.find(self.leaves[code.result_leaf[r]]), code.type);
    };
    any_tensor above(code.type, shape{});
    if (count == 1) {
        above = tangent_of(active[0]);
    } else {
        number_slot one;
        one.set(1, code.type);
        std::memcpy(above.write(), one.bytes, size_of(code.type));
    }
    adjoint_call operands(self, above.view());
    kernel_call& call = operands.call;
    const bool reduction = self.formula->reduction != nullptr;
    partial_array<any_tensor, most_leaves> flows(code.results);
    partial_array<buffer_view, most_leaves> out(code.results);
    for (int r = 0; r < code.results; ++r) out[r].type = self.leaves[code.result_leaf[r]].type();
    call.out = out.data();
    call.outputs = code.results;
    if (count == 1 && reduction) {
        tangent = self.reduced(call, active[0], self.attributes[0], out[active[0]].type, self.output.shape());
        tangent = walk.kernels.converted(tangent, code.type);
        return true;
    }
    for (int k = 0; k < count; ++k) {
        any_tensor& flow = flows[active[k]] = any_tensor(out[active[k]].type, self.domain);
        out[active[k]] = flow.view();
    }
    run_backward(*self.formula, call);
    tangent = walk.kernels.converted(flows[active[0]], code.type);
    if (count == 1) return true;
    tangent = walk.kernels.multiply_add(nullptr, tangent, tangent_of(active[0]));
    for (int k = 1; k < count; ++k)
        tangent = walk.kernels.multiply_add(&tangent, walk.kernels.converted(flows[active[k]], code.type),
                                            tangent_of(active[k]));
    if (reduction) tangent = interpreting::sum_over(tangent, self.attributes[0], self.output.shape());
    return true;
}

TG_DEFINITION std::int64_t formula_record::axes_to(const any_tensor& leaf) const {
    const int extra = domain.rank() - leaf.rank();
    std::int64_t axes = 0;
    for (int i = 0; i < domain.rank(); ++i)
        if (i < extra || (leaf.shape()[i - extra].value == 1 && domain[i].value != 1)) axes |= std::int64_t{1} << i;
    return axes;
}

TG_DEFINITION any_tensor formula_record::reduced(const kernel_call& base, int r, std::int64_t over, dtype type,
                                                 const shape& dims) const {
    const std::int64_t axes[2]{over, 0};
    any_tensor result(type, dims);
    const buffer_view out = result.view();
    kernel_call call = base;
    call.out = &out;
    call.outputs = 1;
    call.attributes = axes;
    if constexpr (runtime::has_backend) {
        if (runtime::current_runtime() != nullptr) {
            observed_sum(call, [&] { reduce_on_device(call, r, type); });
            return result;
        }
    }
    if (runtime::placement_is_logged()) log_formula("gradient, summed, of ", *formula, call.domain);
    observed_sum(call, [&] { reduce_on_cpu(call, r, type); });
    return result;
}

TG_DEFINITION void formula_record::reduce_on_cpu(kernel_call& call, int r, dtype type) const {
    const auto mask = static_cast<std::uint32_t>(call.attributes[0]);
    const int results = formula->code->results;
    if (type == dtype::f64) {
        call.workspace =
            runtime::thread_scratch(cpu::reduce_workspace_bytes<double>(domain.rank(), domain.data(), mask));
        runtime::run_reduction<double>(call, formula->backward, r, results,
                                       &cpu::reduce_axes<cpu::reduction::sum, double>);
    } else if (is_storage_type(type)) {
        call.workspace = runtime::thread_scratch(runtime::widened_reduction_bytes(call));
        runtime::run_widened_reduction(call, formula->backward, r, results,
                                       &cpu::reduce_axes<cpu::reduction::sum, float>, cpu::widen_of(type));
    } else {
        call.workspace =
            runtime::thread_scratch(cpu::reduce_workspace_bytes<float>(domain.rank(), domain.data(), mask));
        runtime::run_reduction<float>(call, formula->backward, r, results,
                                      &cpu::reduce_axes<cpu::reduction::sum, float>);
    }
}

TG_DEFINITION void formula_record::reduce_on_device(kernel_call& sum, int r, dtype type) const {
    const std::int64_t words[2]{sum.attributes[0], formula->sums_tensor ? 0 : r};
    sum.attributes = words;
    if (!formula->sums_tensor) {
        if (runtime::placement_is_logged()) log_formula("gradient, summed, of ", *formula, sum.domain);
        return runtime::perform({{}, formula->sum_on_device}, sum);
    }
    const any_tensor values(type, domain);
    const buffer_view written = values.view();
    kernel_call map = sum;
    map.out = &written;
    run_backward(*formula, map);
    sum.in = &written;
    sum.inputs = 1;
    runtime::perform({{}, formula->sum_on_device}, sum);
}

TG_DEFINITION void record_formula(const formula_view& f, const formula_values& values, const shape& domain,
                                  const std::int64_t* attributes, any_tensor& result) {
    tape_storage& tape = tape_storage::instance();
    const formula_code& code = *f.code;
    auto* const leaves =
        static_cast<any_tensor*>(tape.take(sizeof(any_tensor) * static_cast<std::size_t>(values.leaf_count)));
    bool reads[most_leaves]{}, reads_output = false;
    for (int s = 0; s < code.slots; ++s) {
        if (code.sources[s] < first_number) reads[code.sources[s]] = true;
        reads_output = reads_output || code.sources[s] == from_output;
    }
    const bool keep_all = tape.keeps_everything();
    for (int i = 0; i < values.leaf_count; ++i) {
        if (reads[i] || keep_all)
            new (&leaves[i]) any_tensor(*values.leaves[i]);
        else
            new (&leaves[i]) any_tensor(values.leaves[i]->outline());
    }
    tape_index at;
    formula_record& r = tape.append<formula_record>(at);
    r.formula = &f;
    r.domain = domain;
    if (attributes != nullptr) r.attributes[0] = attributes[0], r.attributes[1] = attributes[1];
    r.leaf_count = values.leaf_count;
    r.leaves = leaves;
    for (int i = 0; i < values.number_count; ++i) r.numbers[i] = values.numbers[i];
    result.set_tape_index(at);
    r.output = reads_output || keep_all ? result : result.outline();
}

#endif

} // namespace tapegraph::detail
