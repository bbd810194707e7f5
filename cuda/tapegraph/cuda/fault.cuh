#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cuda/kernels/fault.cuh>
#include <tapegraph/ops/effect/kernel.hpp>

#include <bit>
#include <string>

/// The host's side of kernels/fault.cuh. kernel_call::fault is the address of the device_fault; a
/// runtime that waits for the device copies it over, zeroes it and calls `throw_fault`.

namespace tapegraph::cuda {

/// How a call's kernels report indices outside their axes. `depth` is the number of indices in a
/// tuple.
inline kernels::fault_report report_indices(const kernel_call& call, const char* operation, std::int64_t depth = 0) {
    kernels::fault_report report;
    report.at = static_cast<device_fault*>(call.fault);
    report.site.kind = fault_kind::index;
    report.site.label = operation;
    report.site.call = reinterpret_cast<unsigned long long>(call.out[0].data);
    report.site.depth = depth;
    return report;
}

/// How the kernels of a check report elements of call.in[0].
inline kernels::fault_report report_elements(const kernel_call& call, fault_kind kind, const char* label) {
    kernels::fault_report report = report_indices(call, label);
    report.site.kind = kind;
    report.site.type = call.in[0].type;
    report.site.rank = call.in[0].rank;
    for (int i = 0; i < call.in[0].rank; ++i) report.site.extents[i] = call.in[0].extents[i];
    return report;
}

/// Throws the error that the CPU's kernel would have thrown: range_error, numeric_error or
/// check_error. Does nothing without a fault.
inline void throw_fault(const device_fault& f) {
    const fault_site& s = f.site;
    const auto position = static_cast<std::int64_t>(f.position);
    buffer_view checked_value;
    checked_value.type = s.type;
    checked_value.rank = s.rank;
    for (int i = 0; i < s.rank; ++i) checked_value.extents[i] = s.extents[i];
    switch (static_cast<fault_kind>(f.kind)) {
    case fault_kind::none: return;
    case fault_kind::index: {
        std::string place = std::to_string(position);
        if (s.depth > 0)
            place = "[" + std::to_string(position / s.depth) + ", " + std::to_string(position % s.depth) + "]";
        throw range_error(index_outside(s.label, f.index, place, f.extent));
    }
    case fault_kind::not_finite:
        runtime::detail::throw_not_finite(s.label, checked_value, position,
                                          s.type == dtype::f64
                                              ? std::bit_cast<double>(f.bits)
                                              : std::bit_cast<float>(static_cast<std::uint32_t>(f.bits)));
    case fault_kind::not_true: runtime::detail::throw_not_true(s.label, checked_value, position);
    }
}

} // namespace tapegraph::cuda
