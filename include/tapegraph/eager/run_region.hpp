#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/formula.hpp>
#include <tapegraph/runtime/call_observer.hpp>
#include <tapegraph/runtime/perform.hpp>
#include <tapegraph/runtime/placement_log.hpp>

/// Runs the regions of sealed formulas on the thread's current device.

namespace tapegraph::detail {

/// The name of a formula in the placement log.
std::string formula_name(const formula_view& f);
void log_formula(const char* part, const formula_view& f, const buffer_view& domain);

/// Runs a region over the call's domain.
inline void run_region(cpu::tile_function evaluate, const runtime::kernel_functions& on_device,
                       const kernel_call& call) {
    if constexpr (runtime::has_backend) {
        if (runtime::device_runtime* const d = runtime::current_runtime(); d != nullptr) {
            const runtime::device_turn turn(d);
            const runtime::call_on_device there(*d, call);
            return on_device.run(there.call);
        }
    }
    cpu::run_map(evaluate, call);
}

/// Calls run(), which computes a part of a formula, and reports it to an observer.
template <class Run>
void observed_formula(runtime::call_part part, const formula_view& f, const kernel_call& call,
                      const std::source_location& where, const Run& run) {
    runtime::observed([&] { return runtime::observed_call{part, &call, &f, 0, {{}, nullptr, nullptr, where}}; }, run);
}

/// Computes a formula's value, or the adjoints of its leaves.
inline void run_forward(const formula_view& f, const kernel_call& call, const std::source_location& where = {}) {
    if (runtime::placement_is_logged()) log_formula("", f, call.domain);
    observed_formula(runtime::call_part::value, f, call, where,
                     [&] { run_region(f.forward, f.forward_on_device, call); });
}
inline void run_backward(const formula_view& f, const kernel_call& call) {
    if (runtime::placement_is_logged()) log_formula("gradient of ", f, call.domain);
    observed_formula(runtime::call_part::adjoints, f, call, {},
                     [&] { run_region(f.backward, f.backward_on_device, call); });
}
/// Computes adjoints of leaves on the CPU and adds those that have a sum to what is in their memory.
inline void run_backward_adding(const formula_view& f, const kernel_call& call, const cpu::tile_function* sums) {
    if (runtime::placement_is_logged()) log_formula("gradient of ", f, call.domain);
    observed_formula(runtime::call_part::adjoints, f, call, {}, [&] { cpu::run_map_adding(f.backward, call, sums); });
}

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION std::string formula_name(const formula_view& f) {
    const std::string names = ir::operation_names(f.code->value_region(), f.code->ops);
    return f.reduction == nullptr ? names : std::string(f.reduction->name) + " of " + names;
}

TG_DEFINITION void log_formula(const char* part, const formula_view& f, const buffer_view& domain) {
    runtime::write_placement(part + formula_name(f), domain, runtime::current_runtime(), true);
}

#endif

} // namespace tapegraph::detail
