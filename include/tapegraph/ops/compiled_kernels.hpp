#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/runtime/kernel.hpp>
#ifdef TG_COMPONENT
#include <tapegraph/ops/operation_list.hpp>
#endif

/// The kernels that the component (core/component.hpp) holds: those of the list. A source that
/// defines kernels includes this after them.

#ifdef TG_COMPONENT
namespace tapegraph::runtime {

// A part of the component reads the definitions of all kernels; those of other parts it only calls.
#define TG_NOT_HERE(...)
#if TG_COMPONENT == 2
#define TG_KERNEL_ELSEWHERE(T, ...) extern template struct compiled_kernel<__VA_ARGS__, T>;
#define TG_KERNELS_ELSEWHERE(...)                                                                                      \
    TG_KERNEL_ELSEWHERE(float, __VA_ARGS__)                                                                            \
    TG_KERNEL_ELSEWHERE(double, __VA_ARGS__)                                                                           \
    TG_KERNEL_ELSEWHERE(half, __VA_ARGS__)                                                                             \
    TG_KERNEL_ELSEWHERE(bfloat16, __VA_ARGS__)                                                                         \
    TG_KERNEL_ELSEWHERE(std::int32_t, __VA_ARGS__)                                                                     \
    TG_KERNEL_ELSEWHERE(std::int64_t, __VA_ARGS__)                                                                     \
    TG_KERNEL_ELSEWHERE(std::uint8_t, __VA_ARGS__)                                                                     \
    TG_KERNEL_ELSEWHERE(bool, __VA_ARGS__)
#else // which has no definitions
#define TG_KERNELS_ELSEWHERE(...)
#endif
#define TG_COMPILED_KERNELS(part, types, ...)                                                                          \
    template <>                                                                                                        \
    inline constexpr types compiled_types<__VA_ARGS__>;                                                                \
    TG_IF(TG_IS_PART(TG_PART, part), TG_NOT_HERE, TG_KERNELS_ELSEWHERE)                                                \
    (__VA_ARGS__) TG_COMPILED(part, struct compiled_kernels<__VA_ARGS__, types>)

#define TG_KERNELS(part, types, device_part, device_types, tensors, ...) TG_COMPILED_KERNELS(part, types, __VA_ARGS__)
TG_OPERATIONS(TG_KERNELS)
#undef TG_KERNELS
#define TG_KERNELS(types, device_types, sealed_types, tensors, ...) TG_COMPILED_KERNELS(reduction, types, __VA_ARGS__)
TG_WHOLE_REDUCTIONS(TG_KERNELS)
#undef TG_KERNELS
#undef TG_COMPILED_KERNELS
#undef TG_KERNELS_ELSEWHERE
#undef TG_KERNEL_ELSEWHERE
#undef TG_NOT_HERE

} // namespace tapegraph::runtime
#endif
