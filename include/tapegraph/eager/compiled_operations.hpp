#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/seal.hpp>

/// Operations of eager mode that the component (core/component.hpp) holds, and their records on the tape: on tensors of float,
/// which most programs compute with. Others are compiled where they are used.

namespace tapegraph {

#define TG_COMPILED_OPERATION(operation, a)                                                                            \
    TG_COMPILED(eager, tensor<a> eager::run<operation, a>(const operation::attributes&, const shape*,         \
                                                                   std::source_location, const tensor<a>&))            \
    TG_COMPILED(eager, struct detail::operation_record<operation, tensor<a>, tensor<a>>)
#define TG_COMPILED_OPERATION2(operation, a, b)                                                                        \
    TG_COMPILED(eager, tensor<a> eager::run<operation, a, b>(const operation::attributes&, const shape*,      \
                                                                      std::source_location, const tensor<a>&,          \
                                                                      const tensor<b>&))                               \
    TG_COMPILED(eager, struct detail::operation_record<operation, tensor<a>, tensor<a>, tensor<b>>)
#define TG_COMPILED_OPERATION3(operation, a)                                                                           \
    TG_COMPILED(eager, tensor<a> eager::run<operation, a, a, a>(const operation::attributes&, const shape*,   \
                                                                         std::source_location, const tensor<a>&,       \
                                                                         const tensor<a>&, const tensor<a>&))          \
    TG_COMPILED(eager, struct detail::operation_record<operation, tensor<a>, tensor<a>, tensor<a>, tensor<a>>)

TG_COMPILED_OPERATION(reshape_op, float)
TG_COMPILED_OPERATION(transpose_op, float)
TG_COMPILED_OPERATION(slice_op, float)
TG_COMPILED_OPERATION(pad_op, float)
TG_COMPILED_OPERATION(index_map_op, float)
TG_COMPILED_OPERATION(index_map_adjoint_op, float)
TG_COMPILED_OPERATION(max_op, float)
TG_COMPILED_OPERATION(min_op, float)
TG_COMPILED_OPERATION(prod_op, float)
TG_COMPILED_OPERATION(cumulative_sum_op, float)
TG_COMPILED_OPERATION(cumulative_product_op, float)
TG_COMPILED_OPERATION(max_pool_op, float)
TG_COMPILED_OPERATION(average_pool_op, float)
TG_COMPILED_OPERATION(average_pool_gradient_op, float)
TG_COMPILED_OPERATION(lp_pool_op, float)
TG_COMPILED_OPERATION(softmax_op, float)
TG_COMPILED_OPERATION(log_softmax_op, float)
TG_COMPILED_OPERATION2(softmax_gradient_op, float, float)
TG_COMPILED_OPERATION2(log_softmax_gradient_op, float, float)
TG_COMPILED_OPERATION2(matmul_op, float, float)
TG_COMPILED_OPERATION2(convolution_op, float, float)
TG_COMPILED_OPERATION2(convolution_input_gradient_op, float, float)
TG_COMPILED_OPERATION2(convolution_filter_gradient_op, float, float)
TG_COMPILED_OPERATION2(gather_op, float, std::int32_t)
TG_COMPILED_OPERATION2(scatter_add_op, float, std::int32_t)
TG_COMPILED_OPERATION2(gather_op, float, std::int64_t)
TG_COMPILED_OPERATION2(scatter_add_op, float, std::int64_t)
TG_COMPILED_OPERATION3(max_pool_gradient_op, float)
TG_COMPILED_OPERATION3(max_pool_select_op, float)
TG_COMPILED(eager, tensor<float> eager::invoke_list<concat_op, float>(const concat_op::attributes&,
                                                                               std::source_location,
                                                                               const tensor<float>*, int))
TG_COMPILED(eager, struct detail::list_record<concat_op, float>)

#undef TG_COMPILED_OPERATION
#undef TG_COMPILED_OPERATION2
#undef TG_COMPILED_OPERATION3

} // namespace tapegraph
