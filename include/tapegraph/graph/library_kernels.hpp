#pragma once

#include <tapegraph/graph/kernel_registry.hpp>
#include <tapegraph/ops/compiled_regions.hpp>
#include <tapegraph/ops/gather/rows_kernel.hpp>
#include <tapegraph/ops/kernels.hpp>
#include <tapegraph/ops/ops.hpp>

/// The library's operations and the element types for which graphs that are made when the program runs have their kernels.

namespace tapegraph::ir {

namespace detail {

template <class... Op>
struct operation_list {};

template <class... T, class... Op>
void register_list(kernel_registry& to, runtime::element_types<T...>, operation_list<Op...>) {
    const auto each = [&]<class O>(O*) { (register_kernel<O, T>(to), ...); };
    (each(static_cast<Op*>(nullptr)), ...);
}
/// Elementwise operations: floating types, and integers where they may be operands.
template <class... Op>
void register_elementwise(kernel_registry& to, operation_list<Op...>) {
    const auto each = [&]<class O>(O*) {
        register_list(to, runtime::floating_types{}, operation_list<O>{});
        if constexpr (O::integers)
            register_list(to, runtime::element_types<std::int32_t, std::int64_t, std::uint8_t>{}, operation_list<O>{});
    };
    (each(static_cast<Op*>(nullptr)), ...);
}

/// A compiled region as schedules have it: several results are computed at once.
template <bool Merged, class Region>
void register_region(kernel_registry& to) {
    const auto results_of = []<class Slots, int... R, class... I>(region<Slots, results<R...>, I...>*) {
        return static_cast<int>(sizeof...(R));
    };
    constexpr int count = results_of(static_cast<Region*>(nullptr));
    if constexpr (Merged)
        to.add(region_key(Region{}), &cpu::evaluate_merged_tile<Region>);
    else if constexpr (count == 1)
        to.add(region_key(Region{}), &cpu::evaluate_tile<Region>);
}

using arithmetic_operations =
    operation_list<add_op, subtract_op, multiply_op, divide_op, negate_op, floor_divide_op, remainder_op,
                   squared_difference_op, lerp_op, maximum_op, minimum_op, clip_op, abs_op, sign_op, square_op, sqrt_op,
                   rsqrt_op, cbrt_op, reciprocal_op, pow_op, hypot_op, floor_op, ceil_op, round_op, trunc_op,
                   tapegraph::detail::indicator_op, tapegraph::detail::inverse_scale_op,
                   tapegraph::detail::one_minus_square_op, integer_power_op<2>, integer_power_op<3>,
                   integer_power_op<4>>;
using function_operations =
    operation_list<exp_op, exp2_op, expm1_op, log_op, log2_op, log10_op, log1p_op, sin_op, cos_op, tan_op, asin_op,
                   acos_op, atan_op, atan2_op, sinh_op, cosh_op, tanh_op, asinh_op, acosh_op, atanh_op, erf_op, erfc_op,
                   sigmoid_op, softplus_op, softsign_op, relu_op, relu6_op, leaky_relu_op, elu_op, gelu_op,
                   gelu_tanh_op, swish_op, hard_swish_op, mish_op, sigmoid_cross_entropy_op, sigmoid_residual_op,
                   tapegraph::detail::near_op>;
/// Of all types, bool among them.
using selecting_operations =
    operation_list<where_op, broadcast_op, stop_gradient_op, equal_op, not_equal_op, full_like_op, cast_op<float>,
                   cast_op<double>, cast_op<half>, cast_op<bfloat16>, cast_op<std::int32_t>, cast_op<std::int64_t>,
                   cast_op<std::uint8_t>, cast_op<bool>>;
using ordering_operations = operation_list<less_op, less_equal_op, greater_op, greater_equal_op>;
using logical_operations = operation_list<logical_and_op, logical_or_op, logical_xor_op, logical_not_op>;
using question_operations = operation_list<is_nan_op, is_inf_op, is_finite_op>;

} // namespace detail

/// The elementwise operations, one instruction each. Templates, so that only programs that make graphs compile them.
template <class = void>
void add_library_instructions(kernel_registry& to) {
    detail::register_elementwise(to, detail::arithmetic_operations{});
    detail::register_elementwise(to, detail::function_operations{});
    detail::register_elementwise(to, detail::ordering_operations{});
    detail::register_list(to, runtime::common_types{}, detail::selecting_operations{});
    detail::register_list(to, runtime::element_types<bool>{}, detail::logical_operations{});
    detail::register_list(to, runtime::floating_types{}, detail::question_operations{});
#ifdef TG_COMPONENT // holds them compiled
    using namespace cpu;
#define TG_REGION(...) detail::register_region<false, region<__VA_ARGS__>>(to);
#define TG_MERGED_REGION(...) detail::register_region<true, region<__VA_ARGS__>>(to);
    TG_COMPILED_REGIONS(TG_REGION, TG_MERGED_REGION)
#undef TG_REGION
#undef TG_MERGED_REGION
#endif
}

/// Reductions and all other operations.
template <class = void>
void add_library_kernels(kernel_registry& to) {
    using namespace runtime;
    detail::register_list(to, number_types{}, detail::operation_list<sum_op, prod_op, max_op, min_op>{});
    detail::register_list(to, element_types<bool>{}, detail::operation_list<any_op, all_op>{});
    detail::register_list(to, computed_types{},
                          detail::operation_list<tapegraph::detail::largest_op, tapegraph::detail::smallest_op>{});
    detail::register_list(to, element_types<double>{}, detail::operation_list<tapegraph::detail::length_op>{});
    detail::register_list(
        to, computed_types{},
        detail::operation_list<tapegraph::detail::product_gradient_op<0>, tapegraph::detail::product_gradient_op<1>,
                               tapegraph::detail::product_gradient_op<2>, tapegraph::detail::product_gradient_op<3>,
                               tapegraph::detail::product_terms_op<1>, tapegraph::detail::product_terms_op<2>,
                               tapegraph::detail::product_terms_op<3>>{});
    detail::register_list(to, computed_types{},
                          detail::operation_list<softmax_op, log_softmax_op, softmax_gradient_op,
                                                 log_softmax_gradient_op, placed_sum_op>{});
    detail::register_list(
        to, floating_types{},
        detail::operation_list<matmul_op, matmul_bias_op<false>, matmul_bias_op<true>, convolution_op,
                               convolution_input_gradient_op, convolution_filter_gradient_op,
                               convolution_bias_op<false>, convolution_bias_op<true>, convolution_bias_pool_op<false>,
                               convolution_bias_pool_op<true>, max_pool_op, max_pool_gradient_op, max_pool_select_op,
                               average_pool_op, average_pool_gradient_op, lp_pool_op,
                               tapegraph::detail::lp_pool_gradient_op, tapegraph::detail::lp_pool_slope_op>{});
    detail::register_list(
        to, common_types{},
        detail::operation_list<transpose_op, slice_op, pad_op, index_map_op, index_map_adjoint_op, concat_op,
                               argsort_op, arg_reduce_op, searchsorted_op, gather_op, gather_nd_op, take_along_op>{});
    detail::register_list(to, element_types<bool>{}, detail::operation_list<marked_places_op>{});
    detail::register_list(to, element_types<std::int32_t>{}, detail::operation_list<count_places_op>{});
    detail::register_list(to, number_types{},
                          detail::operation_list<cumulative_sum_op, cumulative_product_op, scatter_add_op,
                                                 scatter_nd_op, put_along_op>{});
    detail::register_list(to, element_types<std::int32_t, std::int64_t>{},
                          detail::operation_list<one_hot_op<float>, one_hot_op<double>>{});
    detail::register_list(to, common_types{},
                          detail::operation_list<arange_op<float>, arange_op<double>, arange_op<std::int32_t>,
                                                 arange_op<std::int64_t>>{});
    detail::register_list(to, floating_types{}, detail::operation_list<sum_of_equal_rows_op, assign_rows_op>{});
    detail::register_list(to, computed_types{}, detail::operation_list<sum_over_shards_op>{});
    detail::register_list(to, element_types<float>{}, detail::operation_list<random_op<float>>{});
    detail::register_list(to, element_types<double>{}, detail::operation_list<random_op<double>>{});
    detail::register_list(to, element_types<half>{}, detail::operation_list<random_op<half>>{});
    detail::register_list(to, element_types<bfloat16>{}, detail::operation_list<random_op<bfloat16>>{});
    detail::register_list(to, element_types<std::int32_t>{}, detail::operation_list<random_integer_op<std::int32_t>>{});
    detail::register_list(to, element_types<std::int64_t>{}, detail::operation_list<random_integer_op<std::int64_t>>{});
}

TG_COMPILED(instructions, void add_library_instructions<void>(kernel_registry&))
TG_COMPILED(registry, void add_library_kernels<void>(kernel_registry&))

#if TG_DEFINES(registry)
TG_DEFINITION kernel_registry& kernel_registry::instance() {
    static kernel_registry registry;
    static std::once_flag filled;
    std::call_once(filled, [] {
        add_library_instructions<>(registry);
        add_library_kernels<>(registry);
    });
    return registry;
}
#endif

} // namespace tapegraph::ir
