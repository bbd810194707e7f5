#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/ops/operation_list.hpp>

/// The device's half of the compiled component, `tapegraph::cuda_kernels` in CMake: kernels that do not
/// depend on a model, compiled by nvcc once per build. A program that links it also links the host's
/// half, which core/component.hpp describes.
///
/// TG_CUDA_COMPONENT selects the variant: not defined, everything is compiled where it is used; 1, the
/// program links the component; 2, the component itself is being compiled, and TG_CUDA_PART names the
/// part. Whatever no list here names, the program compiles: fused regions, reductions of them, and the
/// user's operations.

#ifdef TG_CUDA_COMPONENT
#ifndef TG_COMPONENT
#error "TG_CUDA_COMPONENT goes with TG_COMPONENT: link tapegraph::cuda_kernels, which defines both"
#endif
#if TG_CUDA_COMPONENT == 1
#undef TG_CUDA_PART
#define TG_CUDA_PART none
#elif !defined(TG_CUDA_PART)
#error "TG_CUDA_COMPONENT is 2 for the sources of tapegraph::cuda_kernels alone; programs that link it define it as 1"
#endif
#endif

namespace tapegraph::cuda {

#if TG_CUDA_COMPONENT == 2
template <class Op, class T>
void compiled_kernel<Op, T>::run(const kernel_call& call) {
    constexpr runtime::kernel_functions functions = defined_kernel<Op, T>();
    functions.run(call);
}
template <class Op, class T>
std::size_t compiled_kernel<Op, T>::workspace(const kernel_call& call) {
    constexpr runtime::kernel_functions functions = defined_kernel<Op, T>();
    return functions.workspace(call);
}
template <class Op, class T>
void compiled_reduction<Op, T>::run(const kernel_call& call) {
    reduction_kernel<Op, region<slots<dtype_of<T>>, results<0>>, T>::run(call);
}
template <class Op, class T>
std::size_t compiled_reduction<Op, T>::workspace(const kernel_call& call) {
    return reduction_kernel<Op, region<slots<dtype_of<T>>, results<0>>, T>::workspace(call);
}
#endif

// The contents of the component's parts, from ops/operation_list.hpp: TG_ON_DEVICE(part, types,
// operation) for each operation.
#define TG_OPERATION_ON_DEVICE(part, types, device_part, device_types, tensors, ...)                                   \
    TG_ON_DEVICE(device_part, device_types, __VA_ARGS__)
#define TG_SEALED_ON_DEVICE(types, device_types, sealed_types, tensors, ...)                                           \
    TG_ON_DEVICE(reduction, sealed_types, __VA_ARGS__)
#define TG_FORMULA_ON_DEVICE(types, device_types, ...) TG_ON_DEVICE(reduction, device_types, __VA_ARGS__)
#define TG_WHOLE_ON_DEVICE(types, device_types, sealed_types, tensors, ...)                                            \
    TG_ON_DEVICE(reduction, device_types, __VA_ARGS__)
#define TG_KERNELS_ON_DEVICE TG_OPERATIONS(TG_OPERATION_ON_DEVICE) TG_WHOLE_REDUCTIONS(TG_SEALED_ON_DEVICE)
#define TG_REDUCTIONS_ON_DEVICE TG_FORMULA_REDUCTIONS(TG_FORMULA_ON_DEVICE) TG_WHOLE_REDUCTIONS(TG_WHOLE_ON_DEVICE)

#ifdef TG_CUDA_COMPONENT
#define TG_ON_DEVICE(part, types, ...)                                                                                 \
    template <>                                                                                                        \
    inline constexpr types compiled_types<__VA_ARGS__>;
TG_KERNELS_ON_DEVICE
#undef TG_ON_DEVICE
#define TG_ON_DEVICE(part, types, ...)                                                                                 \
    template <>                                                                                                        \
    inline constexpr types compiled_reductions<__VA_ARGS__>;
TG_REDUCTIONS_ON_DEVICE
#undef TG_ON_DEVICE
#endif

#if TG_CUDA_COMPONENT == 2
/// nvcc compiles a kernel only if code that is not a template launches it; an explicit instantiation on
/// the host is not enough.
template <template <class, class> class Functions, class Op, class... T>
void hold(element_types<T...>, void (*take)(runtime::kernel_functions)) {
    (take({&Functions<Op, T>::run, &Functions<Op, T>::workspace}), ...);
}
[[gnu::used]] static void hold_kernels(void (*take)(runtime::kernel_functions)) {
#define TG_HELD_HERE(part, types) TG_IF(TG_IS_PART(TG_CUDA_PART, part), types, element_types<>)()
#define TG_ON_DEVICE(part, types, ...) hold<compiled_kernel, __VA_ARGS__>(TG_HELD_HERE(part, types), take);
    TG_KERNELS_ON_DEVICE
#undef TG_ON_DEVICE
#define TG_ON_DEVICE(part, types, ...) hold<compiled_reduction, __VA_ARGS__>(TG_HELD_HERE(part, types), take);
    TG_REDUCTIONS_ON_DEVICE
#undef TG_ON_DEVICE
#undef TG_HELD_HERE
}
#endif

#undef TG_KERNELS_ON_DEVICE
#undef TG_REDUCTIONS_ON_DEVICE
#undef TG_OPERATION_ON_DEVICE
#undef TG_SEALED_ON_DEVICE
#undef TG_FORMULA_ON_DEVICE
#undef TG_WHOLE_ON_DEVICE

} // namespace tapegraph::cuda
