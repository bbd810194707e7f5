#pragma once

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif
#include <tapegraph/cuda/kernels/platform.cuh>
#include <tapegraph/runtime/kernel.hpp>

/// The device's side of runtime/kernel.hpp: the same calls, with every address in the device's
/// memory, run in order on `call.stream`. Kernels here neither wait for the device nor allocate;
/// scratch memory is `call.workspace`.

namespace tapegraph::cuda {

/// A device kernel, specialised per operation: `run(call)`, and `workspace(call)` where scratch
/// memory is needed. An operation without a specialisation (a user's) runs on the CPU, with its
/// operands copied to the host.
template <class Op, class T>
struct kernel;
template <class Op, class T>
inline constexpr bool has_kernel = requires { sizeof(kernel<Op, T>); };

/// The kernel of a fused region, defined in cuda/region.cuh.
template <class Region>
struct region_kernel;
/// A reduction with its producer fused in, defined in cuda/reduction.cuh.
template <class Op, class Region, class T>
struct reduction_kernel;
/// An operation on 16-bit elements, computed by its float kernel between conversions; defined in
/// cuda/widened.cuh.
template <class Op>
struct widened_kernel;

/// An operation's functions, instantiated from their definitions.
template <class Op, class T>
constexpr runtime::kernel_functions defined_kernel() {
    if constexpr (storage_type<T> && !runtime::takes_storage_types<Op>)
        return {&widened_kernel<Op>::run, &widened_kernel<Op>::workspace};
    else if constexpr (requires { &kernel<Op, T>::workspace; })
        return {&kernel<Op, T>::run, &kernel<Op, T>::workspace};
    else
        return {&kernel<Op, T>::run, &runtime::no_workspace};
}

/// The element types for which the component (cuda/component.cuh) holds an operation's functions;
/// none without it.
template <class Op>
inline constexpr element_types<> compiled_types;

/// An operation's functions, compiled in the component.
template <class Op, class T>
struct compiled_kernel {
    static void run(const kernel_call& call);
    static std::size_t workspace(const kernel_call& call);
};
/// As compiled_types and compiled_kernel, for reductions of tensors in memory with the domain of
/// the call.
template <class Op>
inline constexpr element_types<> compiled_reductions;
template <class Op, class T>
struct compiled_reduction {
    static void run(const kernel_call& call);
    static std::size_t workspace(const kernel_call& call);
};

template <class Op, class T>
constexpr runtime::kernel_functions kernel_for() {
    if constexpr (runtime::is_one_of<T>(compiled_types<Op>))
        return {&compiled_kernel<Op, T>::run, &compiled_kernel<Op, T>::workspace};
    else
        return defined_kernel<Op, T>();
}

namespace detail {
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// Makes the device of a call current for this thread. A program is bound before that happens, so
/// code that queries the device calls this first.
inline void use_device_of(const kernel_call& c) {
    if (c.out[0].memory > 0) driver::use(c.out[0].memory - 1);
}
} // namespace detail

/// Launches a kernel on the call's stream.
template <class... P, class... A>
void launch(const kernel_call& call, const char* operation, const driver::launch_shape& shape, void (*kernel)(P...),
            A&&... arguments) {
    driver::launch(static_cast<driver::stream>(call.stream), operation, shape, kernel, std::forward<A>(arguments)...);
}

} // namespace tapegraph::cuda
