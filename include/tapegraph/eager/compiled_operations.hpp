#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/seal.hpp>
#ifdef TG_COMPONENT
#include <tapegraph/ops/operation_list.hpp>
#endif

/// Operations of eager mode that the component (core/component.hpp) contains, and their tape
/// records: for float tensors, which most programs use. Others are compiled where they are used.

namespace tapegraph {

#ifdef TG_COMPONENT
#define TG_TENSORS_0(operation, a)
#define TG_TENSORS_1(operation, a)                                                                                     \
    TG_COMPILED(eager, tensor<a> eager::run<operation, a>(const operation::attributes&, const shape*,                  \
                                                          std::source_location, const tensor<a>&))                     \
    TG_COMPILED(eager, struct detail::operation_record<operation, tensor<a>, tensor<a>>)
#define TG_TENSORS_2(operation, a) TG_TWO_TENSORS(operation, a, a)
#define TG_TWO_TENSORS(operation, a, b)                                                                                \
    TG_COMPILED(eager,                                                                                                 \
                tensor<a> eager::run<operation, a, b>(const operation::attributes&, const shape*,                      \
                                                      std::source_location, const tensor<a>&, const tensor<b>&))       \
    TG_COMPILED(eager, struct detail::operation_record<operation, tensor<a>, tensor<a>, tensor<b>>)
#define TG_TENSORS_3(operation, a)                                                                                     \
    TG_COMPILED(eager, tensor<a> eager::run<operation, a, a, a>(const operation::attributes&, const shape*,            \
                                                                std::source_location, const tensor<a>&,                \
                                                                const tensor<a>&, const tensor<a>&))                   \
    TG_COMPILED(eager, struct detail::operation_record<operation, tensor<a>, tensor<a>, tensor<a>, tensor<a>>)

#define TG_CALLS(part, types, device_part, device_types, tensors, ...) TG_TENSORS_##tensors(__VA_ARGS__, float)
TG_OPERATIONS(TG_CALLS)
#undef TG_CALLS
#define TG_CALLS(types, device_types, sealed_types, tensors, ...) TG_TENSORS_##tensors(__VA_ARGS__, float)
TG_WHOLE_REDUCTIONS(TG_CALLS)
#undef TG_CALLS
TG_TENSORS_1(reshape_op, float)
TG_TWO_TENSORS(gather_op, float, std::int32_t)
TG_TWO_TENSORS(scatter_add_op, float, std::int32_t)
TG_TWO_TENSORS(gather_op, float, std::int64_t)
TG_TWO_TENSORS(scatter_add_op, float, std::int64_t)
TG_COMPILED(eager, tensor<float> eager::invoke_list<concat_op, float>(const concat_op::attributes&,
                                                                      std::source_location, const tensor<float>*, int))
TG_COMPILED(eager, struct detail::list_record<concat_op, float>)

#undef TG_TENSORS_0
#undef TG_TENSORS_1
#undef TG_TENSORS_2
#undef TG_TENSORS_3
#undef TG_TWO_TENSORS
#endif

} // namespace tapegraph
