#pragma once

#include <tapegraph/core/component.hpp>
// clang-format off: each header precedes those that include it, since g++ prints the way to what an error names
#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/convolution/convolution_transpose.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/ops/cumulative/cumulative.hpp>
#include <tapegraph/ops/effect/effect.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/cross_entropy.hpp>
#include <tapegraph/ops/elementwise/exponential.hpp>
#include <tapegraph/ops/elementwise/gated_activation.hpp>
#include <tapegraph/ops/elementwise/hyperbolic.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/rounding.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/elementwise/standard_functions.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/gather/gather_scatter.hpp>
#include <tapegraph/ops/gather/rows.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/graph_slices.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/ops/movement/parts.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/ordering/places.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>
#include <tapegraph/ops/pooling/lp_pooling.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/product/tensordot.hpp>
#include <tapegraph/ops/product/einsum.hpp>
#include <tapegraph/ops/random/random.hpp>
#include <tapegraph/ops/reduction/moments.hpp>
#include <tapegraph/ops/reduction/norm.hpp>
#include <tapegraph/ops/reduction/normalization.hpp>
#include <tapegraph/ops/reduction/softmax.hpp>
#include <tapegraph/ops/reduction/softmax_cross_entropy.hpp>
#include <tapegraph/ops/attention/attention.hpp>
#include <tapegraph/ops/shards/sum_over_shards.hpp>
#include <tapegraph/ops/vmap/vmap.hpp>

/// The library's operations: their headers, above, and a row of each. The rows generate the
/// descriptors and kernels that the component holds, on the host and on devices, the tape's records
/// and the registry of graphs that are made at run time. Names of element types are those of
/// core/element_types.hpp. Operations that register where they are used (recurrent layers), and
/// effects, whose labels are types, have no row. The order of rows that share a name is part of the
/// format of saved programs (graph/operation_names.hpp).

/// X(operation): elementwise, for floating types, and for integers if the operation says
/// `integers`.
#define TG_ELEMENTWISE_OPERATIONS(X)                                                                                  \
    X(add_op) X(subtract_op) X(multiply_op) X(divide_op) X(negate_op) X(floor_divide_op) X(remainder_op)              \
    X(squared_difference_op) X(lerp_op) X(maximum_op) X(minimum_op) X(clip_op) X(abs_op) X(sign_op) X(square_op)      \
    X(sqrt_op) X(rsqrt_op) X(cbrt_op) X(reciprocal_op) X(pow_op) X(hypot_op) X(floor_op) X(ceil_op) X(round_op)       \
    X(trunc_op) X(tapegraph::detail::indicator_op) X(tapegraph::detail::inverse_scale_op)                             \
    X(tapegraph::detail::one_minus_square_op) X(integer_power_op<2>) X(integer_power_op<3>) X(integer_power_op<4>)    \
    X(exp_op) X(exp2_op) X(expm1_op) X(log_op) X(log2_op) X(log10_op) X(log1p_op) X(sin_op) X(cos_op) X(tan_op)       \
    X(asin_op) X(acos_op) X(atan_op) X(atan2_op) X(sinh_op) X(cosh_op) X(tanh_op) X(asinh_op) X(acosh_op)             \
    X(atanh_op) X(erf_op) X(erfc_op) X(sigmoid_op) X(softplus_op) X(softsign_op) X(relu_op) X(relu6_op)               \
    X(leaky_relu_op) X(elu_op) X(gelu_op) X(gelu_tanh_op) X(swish_op) X(hard_swish_op) X(mish_op)                     \
    X(tapegraph::detail::gelu_slope_op) X(tapegraph::detail::gelu_tanh_slope_op) X(tapegraph::detail::swish_slope_op) \
    X(sigmoid_cross_entropy_op) X(sigmoid_residual_op) X(tapegraph::detail::near_op) X(less_op) X(less_equal_op)      \
    X(greater_op) X(greater_equal_op)

#define TG_CAST_TO(name, T, X) X(common_types, cast_op<T>)
/// X(types, operation): elementwise, for other element types.
#define TG_TYPED_ELEMENTWISE_OPERATIONS(X)                                                                            \
    X(common_types, where_op) X(common_types, broadcast_op) X(common_types, stop_gradient_op)                         \
    X(common_types, equal_op) X(common_types, not_equal_op) X(common_types, full_like_op)                             \
    TG_COMMON_TYPES(TG_CAST_TO, X)                                                                                    \
    X(element_types<bool>, logical_and_op) X(element_types<bool>, logical_or_op)                                      \
    X(element_types<bool>, logical_xor_op) X(element_types<bool>, logical_not_op) X(floating_types, is_nan_op)        \
    X(floating_types, is_inf_op) X(floating_types, is_finite_op)

/// X(operation): operations without a kernel, whose result is the operand's memory.
#define TG_VIEW_OPERATIONS(X) X(reshape_op) X(slice_view_op)

/// X(types, types on a device, operation): reductions whose operand may be a formula.
#define TG_FORMULA_REDUCTIONS(X)                                                                                      \
    X(number_types, number_types, sum_op)                                                                             \
    X(computed_types, element_types<>, tapegraph::detail::largest_op)                                                 \
    X(computed_types, element_types<>, tapegraph::detail::smallest_op)

/// X(types, types on a device, the same for operands that eager mode has sealed, tensors,
/// operation): reductions that are differentiated on their own. `tensors` as below.
#define TG_WHOLE_REDUCTIONS(X)                                                                                        \
    X(number_types, number_types, number_types, 1, prod_op)                                                           \
    X(number_types, number_types, number_types, 1, max_op)                                                            \
    X(number_types, number_types, number_types, 1, min_op)                                                            \
    X(element_types<bool>, element_types<bool>, element_types<>, 0, any_op)                                           \
    X(element_types<bool>, element_types<bool>, element_types<>, 0, all_op)

#define TG_RANDOM_OF(name, T, X) X(random, element_types<T>, movement, element_types<T>, 0, random_op<T>)
/// X(part, types, part on a device, types there, tensors, operation): operations with kernels, and
/// the parts of the component that compile them. `tensors`: the number of float tensors that eager
/// mode's call takes, if the component compiles that, too; 0: it does not.
#define TG_OPERATIONS(X)                                                                                              \
    X(product, floating_types, ordering, floating_types, 2, matmul_op)                                                \
    X(product, floating_types, ordering, floating_types, 0, matmul_bias_op<false>)                                    \
    X(product, floating_types, ordering, floating_types, 0, matmul_bias_op<true>)                                     \
    X(convolution, floating_types, convolution, floating_types, 2, convolution_op)                                    \
    X(convolution, floating_types, convolution, floating_types, 2, convolution_input_gradient_op)                     \
    X(convolution, floating_types, convolution, floating_types, 2, convolution_filter_gradient_op)                    \
    X(convolution, floating_types, convolution, floating_types, 0, convolution_bias_op<false>)                        \
    X(convolution, floating_types, convolution, floating_types, 0, convolution_bias_op<true>)                         \
    X(pooling, floating_types, pooling, floating_types, 0, convolution_bias_pool_op<false>)                           \
    X(pooling, floating_types, pooling, floating_types, 0, convolution_bias_pool_op<true>)                            \
    X(pooling, floating_types, pooling, floating_types, 1, max_pool_op)                                               \
    X(pooling, floating_types, pooling, floating_types, 3, max_pool_gradient_op)                                      \
    X(pooling, floating_types, pooling, floating_types, 3, max_pool_select_op)                                        \
    X(pooling, floating_types, pooling, floating_types, 1, average_pool_op)                                           \
    X(pooling, floating_types, pooling, floating_types, 1, average_pool_gradient_op)                                  \
    X(pooling, floating_types, pooling, floating_types, 1, lp_pool_op)                                                \
    X(pooling, floating_types, pooling, floating_types, 0, tapegraph::detail::lp_pool_gradient_op)                    \
    X(pooling, floating_types, pooling, floating_types, 0, tapegraph::detail::lp_pool_slope_op)                       \
    X(movement, common_types, movement, common_types, 1, transpose_op)                                                \
    X(movement, common_types, movement, common_types, 1, slice_op)                                                    \
    X(movement, common_types, movement, common_types, 1, pad_op)                                                      \
    X(movement, common_types, movement, common_types, 1, index_map_op)                                                \
    X(movement, common_types, movement, number_types, 1, index_map_adjoint_op)                                        \
    X(movement, common_types, movement, common_types, 0, concat_op)                                                   \
    X(movement, computed_types, none, element_types<>, 0, placed_sum_op)                                              \
    X(movement, common_types, none, element_types<>, 0, arange_op<float>)                                             \
    X(movement, common_types, none, element_types<>, 0, arange_op<double>)                                            \
    X(movement, common_types, none, element_types<>, 0, arange_op<std::int32_t>)                                      \
    X(movement, common_types, none, element_types<>, 0, arange_op<std::int64_t>)                                      \
    X(gather, common_types, movement, common_types, 0, gather_op)                                                     \
    X(gather, common_types, movement, common_types, 0, gather_nd_op)                                                  \
    X(gather, common_types, movement, common_types, 0, take_along_op)                                                 \
    X(gather, number_types, movement, number_types, 0, scatter_add_op)                                                \
    X(gather, number_types, movement, number_types, 0, scatter_nd_op)                                                 \
    X(gather, number_types, movement, number_types, 0, put_along_op)                                                  \
    X(gather, number_types, movement, number_types, 0, gather_scatter_add_op<false>)                                  \
    X(gather, floating_types, movement, floating_types, 0, gather_scatter_add_op<true>)                               \
    X(gather, index_types, none, element_types<>, 0, one_hot_op<float>)                                               \
    X(gather, index_types, none, element_types<>, 0, one_hot_op<double>)                                              \
    X(gather, floating_types, none, element_types<>, 0, sum_of_equal_rows_op)                                         \
    X(gather, floating_types, none, element_types<>, 0, assign_rows_op)                                               \
    X(ordering, common_types, ordering, common_types, 0, argsort_op)                                                  \
    X(ordering, common_types, ordering, common_types, 0, arg_reduce_op)                                               \
    X(ordering, common_types, none, element_types<>, 0, searchsorted_op)                                              \
    X(ordering, element_types<bool>, none, element_types<>, 0, marked_places_op)                                      \
    X(ordering, element_types<std::int32_t>, none, element_types<>, 0, count_places_op)                               \
    X(cumulative, number_types, ordering, number_types, 1, cumulative_sum_op)                                         \
    X(cumulative, number_types, ordering, number_types, 1, cumulative_product_op)                                     \
    X(cumulative, computed_types, none, element_types<>, 0, tapegraph::detail::product_gradient_op<0>)                \
    X(cumulative, computed_types, none, element_types<>, 0, tapegraph::detail::product_gradient_op<1>)                \
    X(cumulative, computed_types, none, element_types<>, 0, tapegraph::detail::product_gradient_op<2>)                \
    X(cumulative, computed_types, none, element_types<>, 0, tapegraph::detail::product_gradient_op<3>)                \
    X(cumulative, computed_types, none, element_types<>, 0, tapegraph::detail::product_terms_op<1>)                   \
    X(cumulative, computed_types, none, element_types<>, 0, tapegraph::detail::product_terms_op<2>)                   \
    X(cumulative, computed_types, none, element_types<>, 0, tapegraph::detail::product_terms_op<3>)                   \
    X(reduction, computed_types, reduction, computed_types, 0, tapegraph::detail::length_op)                          \
    X(reduction, computed_types, reduction, floating_types, 1, softmax_op)                                            \
    X(reduction, computed_types, reduction, floating_types, 1, log_softmax_op)                                        \
    X(reduction, computed_types, reduction, floating_types, 2, softmax_gradient_op)                                   \
    X(reduction, computed_types, reduction, floating_types, 2, log_softmax_gradient_op)                               \
    X(reduction, computed_types, reduction, floating_types, 3, normalization_op)                                      \
    X(reduction, computed_types, reduction, floating_types, 3, normalization_sums_op)                                 \
    X(reduction, computed_types, reduction, floating_types, 0, normalization_gradient_op)                             \
    X(product, computed_types, reduction, computed_types, 0, attention_op)                                            \
    X(product, computed_types, reduction, computed_types, 0, attention_gradient_op)                                   \
    X(product, computed_types, reduction, computed_types, 0, numbers_at_op)                                           \
    X(product, element_types<float>, reduction, element_types<float>, 0, random_address_op<float>)                    \
    X(product, element_types<double>, reduction, element_types<double>, 0, random_address_op<double>)                 \
    X(reduction, computed_types, reduction, floating_types, 0, sparse_softmax_cross_entropy_op)                       \
    X(reduction, computed_types, reduction, floating_types, 0, sparse_softmax_cross_entropy_gradient_op)              \
    TG_FLOATING_TYPES(TG_RANDOM_OF, X)                                                                                \
    X(random, element_types<std::int32_t>, movement, element_types<std::int32_t>, 0, random_integer_op<std::int32_t>) \
    X(random, element_types<std::int64_t>, movement, element_types<std::int64_t>, 0, random_integer_op<std::int64_t>) \
    X(registry, computed_types, none, element_types<>, 0, sum_over_shards_op)

// clang-format on
