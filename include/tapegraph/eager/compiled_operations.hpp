#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/seal.hpp>
#ifdef TG_COMPONENT
#include <tapegraph/ops/operation_list.hpp>
#endif

/// Operations of eager mode that the component (core/component.hpp) contains, and their tape
/// records: for float tensors, which most programs use. Others are compiled where they are used.

#ifdef TG_COMPONENT
// Who uses the list defines TG_ELEMENT, the tensors' element type, and TG_INSTANTIATED(DECLARATION).
#define TG_TENSORS_0(operation)
#define TG_TENSORS_1(operation)                                                                                        \
    TG_INSTANTIATED(tensor<TG_ELEMENT> eager::run<operation, TG_ELEMENT>(                                              \
        const operation::attributes&, const shape*, std::source_location, const tensor<TG_ELEMENT>&))                  \
    TG_INSTANTIATED(struct detail::operation_record<operation, tensor<TG_ELEMENT>, tensor<TG_ELEMENT>>)
#define TG_TENSORS_2(operation) TG_TWO_TENSORS(TG_ELEMENT, operation)
#define TG_TWO_TENSORS(b, operation)                                                                                   \
    TG_INSTANTIATED(tensor<TG_ELEMENT> eager::run<operation, TG_ELEMENT, b>(                                           \
        const operation::attributes&, const shape*, std::source_location, const tensor<TG_ELEMENT>&,                   \
        const tensor<b>&))                                                                                             \
    TG_INSTANTIATED(struct detail::operation_record<operation, tensor<TG_ELEMENT>, tensor<TG_ELEMENT>, tensor<b>>)
#define TG_TENSORS_3(operation) TG_THREE_TENSORS(TG_ELEMENT, TG_ELEMENT, operation)
#define TG_THREE_TENSORS(b, c, operation)                                                                              \
    TG_INSTANTIATED(tensor<TG_ELEMENT> eager::run<operation, TG_ELEMENT, b, c>(                                        \
        const operation::attributes&, const shape*, std::source_location, const tensor<TG_ELEMENT>&, const tensor<b>&, \
        const tensor<c>&))                                                                                             \
    TG_INSTANTIATED(                                                                                                   \
        struct detail::operation_record<operation, tensor<TG_ELEMENT>, tensor<TG_ELEMENT>, tensor<b>, tensor<c>>)

#define TG_CALLS(part, types, device_part, device_types, tensors, ...) TG_TENSORS_##tensors(__VA_ARGS__)
#define TG_REDUCTION_CALLS(types, device_types, sealed_types, tensors, ...) TG_TENSORS_##tensors(__VA_ARGS__)
#define TG_OPERATIONS_ON_TENSORS                                                                                       \
    TG_OPERATIONS(TG_CALLS)                                                                                            \
    TG_WHOLE_REDUCTIONS(TG_REDUCTION_CALLS)                                                                            \
    TG_TENSORS_1(reshape_op)                                                                                           \
    TG_TWO_TENSORS(std::int32_t, gather_op)                                                                            \
    TG_TWO_TENSORS(std::int32_t, scatter_add_op)                                                                       \
    TG_TWO_TENSORS(std::int64_t, gather_op)                                                                            \
    TG_TWO_TENSORS(std::int64_t, scatter_add_op)                                                                       \
    TG_INSTANTIATED(tensor<TG_ELEMENT> eager::invoke_list<concat_op, TG_ELEMENT>(                                      \
        const concat_op::attributes&, std::source_location, const tensor<TG_ELEMENT>*, int))                           \
    TG_INSTANTIATED(struct detail::list_record<concat_op, TG_ELEMENT>)

namespace tapegraph {
#define TG_ELEMENT float
#define TG_INSTANTIATED(...) TG_COMPILED(eager, __VA_ARGS__)
TG_OPERATIONS_ON_TENSORS
#undef TG_INSTANTIATED
#undef TG_ELEMENT
} // namespace tapegraph
#endif
