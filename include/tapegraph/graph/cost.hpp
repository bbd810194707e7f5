#pragma once

#include <tapegraph/graph/program.hpp>

/// Cost of a program's steps.

namespace tapegraph::ir {

/// Floating-point operations and bytes of one kernel call.
struct cost {
    double flops = 0;
    double bytes = 0; ///< of operands and results, each once
};

/// Cost of step `s` of a bound program: 1 per elementwise instruction and element, n for a
/// reduction of n elements. Other operations define their cost (`flops`, and `bytes` where not all
/// of the operands is read), or count only bytes.
inline cost cost_of(const program& p, int s) {
    const program_view& view = p.view();
    const kernel_call& call = p.call_of(s);
    const kernel_entry& kernel = view.kernels[view.steps[s].kernel];
    cost c;
    for (int k = 0; k < call.inputs; ++k) c.bytes += static_cast<double>(call.in[k].bytes());
    for (int k = 0; k < call.outputs; ++k) c.bytes += static_cast<double>(call.out[k].bytes());
    if (kernel.kind == static_cast<int>(kernel_kind::operation)) {
        const operation& op = *view.ops[kernel.op];
        if (op.flops != nullptr) c.flops = op.flops(call);
        if (op.bytes != nullptr) c.bytes = op.bytes(call);
    } else {
        const double each = view.region_of(kernel).instructions() + reductions_of(kernel, view.kernel_words.begin());
        c.flops = each * static_cast<double>(call.domain.elements());
    }
    return c;
}

/// Bytes read and written by the copies that apply updates after the last call.
inline double cost_of_copies(const program& p) {
    double bytes = 0;
    for (const assignment_entry& update : p.view().assignments)
        if (p.arena_slot_of(p.view().alias[update.node]).variable != update.variable)
            bytes += 2 * static_cast<double>(p.value_of(update.node).bytes());
    return bytes;
}

/// Cost of the whole step, copies of updates included.
inline cost cost_of(const program& p) {
    cost total;
    for (int s = 0; s < p.view().steps.size(); ++s) {
        const cost c = cost_of(p, s);
        total.flops += c.flops;
        total.bytes += c.bytes;
    }
    total.bytes += cost_of_copies(p);
    return total;
}

} // namespace tapegraph::ir
