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

#define TG_COMPILED_KERNELS(part, types, ...)                                                                          \
    template <>                                                                                                        \
    inline constexpr types compiled_types<__VA_ARGS__>;                                                                \
    TG_COMPILED(part, struct compiled_kernels<__VA_ARGS__, types>)

#define TG_KERNELS(part, types, device_part, device_types, tensors, ...) TG_COMPILED_KERNELS(part, types, __VA_ARGS__)
TG_OPERATIONS(TG_KERNELS)
#undef TG_KERNELS
#define TG_KERNELS(types, device_types, sealed_types, tensors, ...) TG_COMPILED_KERNELS(reduction, types, __VA_ARGS__)
TG_WHOLE_REDUCTIONS(TG_KERNELS)
#undef TG_KERNELS
#undef TG_COMPILED_KERNELS

} // namespace tapegraph::runtime
#endif
