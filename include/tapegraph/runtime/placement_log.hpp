#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/environment.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/runtime/device_runtime.hpp>

#include <atomic>
#include <cstdio>
#include <string>

/// Logs on stderr where kernels run.

namespace tapegraph {

namespace runtime {

namespace detail {
inline std::atomic<bool>& placement_log_setting() {
    static std::atomic<bool> on{tapegraph::detail::environment_flag("TAPEGRAPH_LOG_PLACEMENT", false)};
    return on;
}
} // namespace detail

inline bool placement_is_logged() { return detail::placement_log_setting().load(std::memory_order_relaxed); }

/// Writes one line to stderr: `what` runs on `d` (null: the CPU), or on the CPU where that device
/// has no kernel.
void write_placement(const std::string& what, const buffer_view& result, const device_runtime* d, bool has_kernel);

#if TG_DEFINES(runtime)

TG_DEFINITION void write_placement(const std::string& what, const buffer_view& result, const device_runtime* d,
                                   bool has_kernel) {
    const std::string shape_text = name_of(result.type) + to_string(shape(result.rank, result.extents));
    const std::string name = d == nullptr ? "cpu" : d->id().name();
    std::fprintf(stderr, "tapegraph: %s %s on %s\n", what.c_str(), shape_text.c_str(),
                 has_kernel ? name.c_str() : ("cpu, " + name + " has no kernel for it").c_str());
}

#endif

} // namespace runtime

/// With true, every kernel call of the process is logged to stderr with its device: each call of a
/// compiled program when the program first runs, eager operations whenever they run.
/// TAPEGRAPH_LOG_PLACEMENT=1 in the environment enables it from the start.
inline void log_placement(bool on) { runtime::detail::placement_log_setting().store(on, std::memory_order_relaxed); }

} // namespace tapegraph
