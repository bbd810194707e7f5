#pragma once

#include <tapegraph/graph/program.hpp>

#include <algorithm>
#include <string_view>

/// What a step of a program costs.

namespace tapegraph::ir {

/// Floating-point operations and bytes of one kernel call.
struct cost {
    double flops = 0;
    double bytes = 0; ///< of operands and results, each once
};

namespace detail {

inline double elements_of(const buffer_view& v) { return static_cast<double>(v.elements()); }

// 2 per multiply-add: an output element of a convolution sums over a filter without its last axis.
inline double convolution_flops(std::string_view name, const kernel_call& c) {
    const bool to_filter = name == "convolution_filter_gradient";
    const buffer_view& filter = to_filter ? c.out[0] : c.in[1];
    const buffer_view& image = to_filter ? c.in[1] : name == "convolution_input_gradient" ? c.in[0] : c.out[0];
    const auto last = static_cast<double>(filter.extents[filter.rank - 1]);
    const double pixels = name.ends_with("_pool") ? 4 : 1; // for each element of the result
    return last == 0 ? 0 : 2 * pixels * elements_of(image) * elements_of(filter) / last;
}

// The products of the steps with the recurrent kernel [units, gates units]; x W is an ordinary product. Operations are named
// after their layer: "lstm", "lstm_states", "lstm_second".
inline double recurrence_flops(std::string_view name, const kernel_call& c) {
    if (name == "scan" || name.ends_with("_result")) return 0; // a scan's cell is not looked into
    const bool second = name.ends_with("_second"), tangents = second || name.ends_with("_tangent");
    const bool forward = !tangents && !name.ends_with("_gradient");
    const buffer_view& kernel = c.in[forward ? 1 : second ? 4 : 3];
    // [batch, time, gates units] or states [planes, batch, time, units]; what carries tangents takes each product twice.
    const buffer_view& steps = c.in[forward ? 0 : second ? 2 : 1];
    const double products = second ? 3 : 1;
    return 2 * products * static_cast<double>(steps.extents[steps.rank - 3] * steps.extents[steps.rank - 2]) *
           elements_of(kernel);
}

inline double operation_flops(const operation& op, const kernel_call& c) {
    switch (op.kind) {
    case operation_kind::contract: {
        // [..., m, k] or, read transposed, [..., k, m]
        const buffer_view& a = c.in[0];
        const bool transposed = op.words > 0 && c.attributes[0] != 0;
        return 2 * elements_of(c.out[0]) * static_cast<double>(a.extents[transposed ? a.rank - 2 : a.rank - 1]);
    }
    case operation_kind::recur: return recurrence_flops(op.name, c);
    case operation_kind::convolve: return convolution_flops(op.name, c);
    case operation_kind::pool: {
        // The pooled image is the smallest of those involved; every element of it looks at one window.
        double pooled = elements_of(c.out[0]);
        for (int k = 0; k < c.inputs; ++k) pooled = std::min(pooled, elements_of(c.in[k]));
        const std::int64_t* const window = c.attributes + op.words - 2; // the last member of window_attributes
        return pooled * static_cast<double>(window[0] * window[1]);
    }
    case operation_kind::scan:
    case operation_kind::random: return elements_of(c.out[0]);
    default: return 0; // operations that move elements
    }
}

// The bytes that a call reads and writes. Each operand and result counts once; of a table whose rows are gathered, only those rows.
inline double operation_bytes(std::string_view name, const kernel_call& c, double all) {
    const auto bytes = [](const buffer_view& v) { return static_cast<double>(v.bytes()); };
    if (name == "gather" || name == "gather_nd" || name == "take_along")
        return all - bytes(c.in[0]) + std::min(bytes(c.in[0]), bytes(c.out[0]));
    if (name == "assign_rows" && c.in[0].data == c.out[0].data) return bytes(c.in[1]) + 2 * bytes(c.in[2]);
    return all;
}

} // namespace detail

/// Cost of step `s` of a bound program: 1 per elementwise instruction and element, n for a reduction of n elements, 2 m n k
/// for a matrix product, 2 per multiply-add of a convolution, a window per pooled element; moving elements costs bytes.
inline cost cost_of(const program& p, int s) {
    const program_view& view = p.view();
    const kernel_call& call = p.call_of(s);
    const kernel_entry& kernel = view.kernels[view.steps[s].kernel];
    cost c;
    for (int k = 0; k < call.inputs; ++k) c.bytes += static_cast<double>(call.in[k].bytes());
    for (int k = 0; k < call.outputs; ++k) c.bytes += static_cast<double>(call.out[k].bytes());
    if (kernel.kind == static_cast<int>(kernel_kind::operation)) {
        c.flops = detail::operation_flops(*view.ops[kernel.op], call);
        c.bytes = detail::operation_bytes(view.ops[kernel.op]->name, call, c.bytes);
    } else {
        double each = view.kernel_words[kernel.first_word + 1];
        if (kernel.kind == static_cast<int>(kernel_kind::reduction)) each += 1;
        c.flops = each * detail::elements_of(call.domain);
    }
    return c;
}

/// The whole step, copies of updates included.
inline cost cost_of(const program& p) {
    cost total;
    for (int s = 0; s < p.view().steps.size(); ++s) {
        const cost c = cost_of(p, s);
        total.flops += c.flops;
        total.bytes += c.bytes;
    }
    for (const assignment_entry& update : p.view().assignments)
        if (p.arena_slot_of(p.view().alias[update.node]).variable != update.variable)
            total.bytes += 2 * static_cast<double>(p.value_of(update.node).bytes());
    return total;
}

} // namespace tapegraph::ir
