#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/region.hpp>
#include <tapegraph/ops/ops.hpp>

/// Fused regions that many programs have, held by the component (core/component.hpp). Written by
/// tools/compiled_regions/collect.py; do not edit.

namespace tapegraph::cpu {

// clang-format off
#define TG_F32(operation, ...) instruction<operation, dtype::f32, __VA_ARGS__>
#define TG_BOOL(operation, ...) instruction<operation, dtype::boolean, __VA_ARGS__>
/// REGION(slots, results, instructions) for each; MERGED for regions whose results are computed at
/// once.
#define TG_COMPILED_REGIONS(REGION, MERGED) \
REGION(slots<dtype::f32>, results<0>) \
REGION(slots<dtype::f32>, results<0, 0>) \
REGION(slots<dtype::f32>, results<1>, TG_F32(abs_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(cos_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(exp_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(log_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(sin_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(gelu_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(relu_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(sqrt_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(tanh_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(rsqrt_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(swish_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(negate_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(square_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(sigmoid_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(softplus_op, 0)) \
REGION(slots<dtype::f32>, results<0, 1>, TG_F32(negate_op, 0)) \
REGION(slots<dtype::f32>, results<1>, TG_F32(broadcast_op, 0)) \
REGION(slots<dtype::f64>, results<1>, TG_F32(cast_op<float>, 0)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(add_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(elu_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(divide_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(maximum_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(minimum_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(multiply_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(subtract_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(leaky_relu_op, 0, 1)) \
REGION(slots<dtype::f64, dtype::f64>, results<2>, instruction<add_op, dtype::f64, 0, 1>) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(sigmoid_cross_entropy_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(add_op, 0, 1), TG_F32(gelu_op, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(add_op, 0, 1), TG_F32(relu_op, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(add_op, 0, 1), TG_F32(tanh_op, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(add_op, 0, 1), TG_F32(rsqrt_op, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(add_op, 0, 1), TG_F32(swish_op, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(add_op, 0, 1), TG_F32(sigmoid_op, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(add_op, 0, 1), TG_F32(softplus_op, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(cos_op, 1), TG_F32(multiply_op, 0, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(exp_op, 1), TG_F32(multiply_op, 0, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<2>, TG_F32(tapegraph::detail::indicator_op, 0, 1)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(sign_op, 1), TG_F32(multiply_op, 0, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(subtract_op, 0, 1), TG_F32(square_op, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3>, TG_F32(sigmoid_op, 1), TG_F32(multiply_op, 0, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<3, 0>, TG_F32(negate_op, 0), TG_F32(multiply_op, 2, 1)) \
REGION(slots<dtype::i32, dtype::i32>, results<3>, TG_BOOL(equal_op, 0, 1), TG_F32(cast_op<float>, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<2, 3, 0>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_F32(add_op, 0, 1), TG_F32(elu_op, 3, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_F32(add_op, 0, 1), TG_F32(divide_op, 3, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_F32(add_op, 0, 1), TG_F32(leaky_relu_op, 3, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_F32(maximum_op, 0, 1), TG_F32(minimum_op, 3, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_F32(multiply_op, 0, 1), TG_F32(divide_op, 3, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_BOOL(greater_op, 0, 1), TG_F32(where_op, 3, 2, 1)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_F32(multiply_op, 1, 2), TG_F32(multiply_op, 0, 3)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_F32(multiply_op, 1, 2), TG_F32(subtract_op, 0, 3)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4>, TG_F32(subtract_op, 0, 1), TG_F32(multiply_op, 3, 2)) \
REGION(slots<dtype::f32, dtype::f32>, results<4>, TG_F32(sin_op, 1), TG_F32(multiply_op, 0, 2), TG_F32(negate_op, 3)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<3, 4>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 0, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4, 4>, TG_BOOL(greater_op, 0, 1), TG_F32(where_op, 3, 2, 1)) \
REGION(slots<dtype::boolean, dtype::f32, dtype::f32, dtype::f32>, results<5>, TG_F32(divide_op, 2, 3), TG_F32(where_op, 0, 1, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5>, TG_F32(divide_op, 0, 1), TG_F32(add_op, 3, 2), TG_F32(rsqrt_op, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5>, TG_F32(add_op, 0, 1), TG_F32(rsqrt_op, 3), TG_F32(multiply_op, 4, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5>, TG_F32(add_op, 0, 1), TG_F32(subtract_op, 3, 2), TG_F32(square_op, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 3), TG_F32(divide_op, 4, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5, 5>, TG_F32(add_op, 1, 2), TG_F32(sigmoid_op, 3), TG_F32(multiply_op, 0, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<3, 5>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 0), TG_F32(multiply_op, 4, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5>, TG_F32(multiply_op, 2, 2), TG_F32(subtract_op, 1, 3), TG_F32(multiply_op, 0, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5>, TG_F32(subtract_op, 2, 1), TG_F32(multiply_op, 1, 3), TG_F32(multiply_op, 0, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<3, 0, 5>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 0), TG_F32(multiply_op, 4, 2)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5, 5>, TG_F32(multiply_op, 2, 2), TG_F32(subtract_op, 1, 3), TG_F32(multiply_op, 0, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5, 5>, TG_F32(subtract_op, 2, 1), TG_F32(multiply_op, 1, 3), TG_F32(multiply_op, 0, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(add_op, 4, 5)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6>, TG_F32(subtract_op, 0, 1), TG_F32(multiply_op, 4, 2), TG_F32(add_op, 5, 3)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6>, TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 1, 4), TG_F32(add_op, 0, 5)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(subtract_op, 4, 5)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<6>, TG_F32(exp_op, 1), TG_F32(multiply_op, 0, 3), TG_F32(multiply_op, 4, 2), TG_F32(negate_op, 5)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6>, TG_F32(add_op, 1, 2), TG_F32(sigmoid_residual_op, 4, 3), TG_F32(multiply_op, 0, 5)) \
REGION(slots<dtype::boolean, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7>, TG_F32(add_op, 2, 3), TG_F32(divide_op, 5, 4), TG_F32(where_op, 0, 1, 6)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<3, 6>, TG_F32(divide_op, 0, 1), TG_F32(multiply_op, 0, 2), TG_F32(negate_op, 4), TG_F32(divide_op, 5, 1)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<5, 6>, TG_F32(multiply_op, 0, 1), TG_F32(exp_op, 2), TG_F32(multiply_op, 3, 4), TG_F32(multiply_op, 0, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7>, TG_BOOL(greater_op, 1, 2), TG_F32(where_op, 5, 3, 4), TG_F32(multiply_op, 0, 6)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<6>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 2, 2), TG_F32(multiply_op, 4, 2), TG_F32(multiply_op, 3, 5)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7>, TG_F32(square_op, 2), TG_F32(subtract_op, 4, 3), TG_F32(multiply_op, 1, 5), TG_F32(add_op, 0, 6)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7>, TG_BOOL(greater_equal_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(where_op, 5, 6, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6>, TG_F32(tapegraph::detail::indicator_op, 0, 1), TG_F32(divide_op, 2, 3), TG_F32(multiply_op, 4, 5)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32>, results<4, 6>, TG_F32(sigmoid_residual_op, 1, 2), TG_F32(multiply_op, 0, 3), TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 5)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7>, TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 1, 4), TG_F32(multiply_op, 0, 5), TG_F32(negate_op, 6)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6, 7>, TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 1, 4), TG_F32(multiply_op, 0, 5), TG_F32(negate_op, 6)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7>, TG_BOOL(greater_op, 0, 1), TG_BOOL(greater_op, 2, 3), TG_BOOL(equal_op, 4, 5), TG_F32(cast_op<float>, 6)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<4, 5, 7>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 4), TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 0, 6)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6, 7, 0>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(multiply_op, 4, 5), TG_F32(negate_op, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<4, 5, 7, 0>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 4), TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 0, 6)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<8>, TG_F32(add_op, 2, 3), TG_F32(subtract_op, 5, 4), TG_F32(multiply_op, 1, 6), TG_F32(multiply_op, 0, 7)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<8>, TG_F32(multiply_op, 1, 2), TG_F32(add_op, 0, 5), TG_F32(multiply_op, 3, 4), TG_F32(subtract_op, 6, 7)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<8>, TG_F32(subtract_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(multiply_op, 5, 6), TG_F32(add_op, 7, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<8>, TG_F32(subtract_op, 1, 2), TG_F32(multiply_op, 0, 5), TG_F32(multiply_op, 3, 4), TG_F32(subtract_op, 6, 7)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<9, 9>, TG_F32(add_op, 1, 2), TG_BOOL(greater_op, 6, 3), TG_F32(where_op, 7, 4, 5), TG_F32(multiply_op, 0, 8)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<9>, TG_F32(add_op, 0, 1), TG_F32(sigmoid_op, 5), TG_F32(subtract_op, 6, 2), TG_F32(multiply_op, 7, 3), TG_F32(add_op, 8, 4)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<9>, TG_F32(multiply_op, 1, 2), TG_F32(sqrt_op, 3), TG_F32(add_op, 6, 4), TG_F32(divide_op, 5, 7), TG_F32(subtract_op, 0, 8)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<8>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 2, 2), TG_F32(multiply_op, 5, 2), TG_F32(multiply_op, 4, 6), TG_F32(divide_op, 7, 3)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<10>, TG_F32(add_op, 0, 1), TG_F32(broadcast_op, 2), TG_F32(add_op, 5, 6), TG_F32(multiply_op, 4, 4), TG_F32(subtract_op, 3, 8), TG_F32(multiply_op, 7, 9)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<10>, TG_F32(multiply_op, 0, 1), TG_F32(add_op, 2, 3), TG_F32(sigmoid_op, 6), TG_F32(subtract_op, 4, 7), TG_F32(multiply_op, 7, 8), TG_F32(multiply_op, 5, 9)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<11>, TG_BOOL(greater_op, 1, 2), TG_F32(where_op, 6, 5, 1), TG_F32(exp_op, 7), TG_F32(multiply_op, 4, 8), TG_F32(where_op, 6, 3, 9), TG_F32(multiply_op, 0, 10)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<9, 11>, TG_BOOL(less_op, 0, 1), TG_BOOL(equal_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(where_op, 6, 7, 4), TG_F32(where_op, 5, 2, 8), TG_BOOL(less_op, 1, 0), TG_F32(where_op, 10, 2, 8)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<12>, TG_F32(multiply_op, 0, 1), TG_F32(add_op, 6, 2), TG_F32(broadcast_op, 3), TG_F32(add_op, 7, 8), TG_F32(multiply_op, 5, 5), TG_F32(subtract_op, 4, 10), TG_F32(multiply_op, 9, 11)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<12>, TG_F32(multiply_op, 0, 1), TG_F32(add_op, 6, 2), TG_F32(broadcast_op, 3), TG_F32(add_op, 7, 8), TG_F32(subtract_op, 5, 4), TG_F32(multiply_op, 4, 10), TG_F32(multiply_op, 9, 11)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<9, 11>, TG_BOOL(greater_op, 0, 1), TG_BOOL(equal_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(where_op, 6, 7, 4), TG_F32(where_op, 5, 2, 8), TG_BOOL(greater_op, 1, 0), TG_F32(where_op, 10, 2, 8)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<8, 9, 11>, TG_F32(negate_op, 0), TG_F32(multiply_op, 4, 1), TG_F32(multiply_op, 5, 2), TG_F32(exp_op, 3), TG_F32(multiply_op, 6, 7), TG_F32(multiply_op, 5, 7), TG_F32(multiply_op, 2, 7), TG_F32(multiply_op, 4, 10)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7, 11>, TG_F32(tapegraph::detail::indicator_op, 1, 2), TG_F32(multiply_op, 0, 5), TG_F32(divide_op, 6, 3), TG_F32(divide_op, 4, 3), TG_F32(multiply_op, 6, 8), TG_F32(negate_op, 9), TG_F32(divide_op, 10, 3)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<13>, TG_F32(log_op, 1), TG_F32(multiply_op, 0, 6), TG_F32(subtract_op, 2, 3), TG_F32(subtract_op, 4, 5), TG_F32(log_op, 9), TG_F32(multiply_op, 8, 10), TG_F32(add_op, 7, 11), TG_F32(negate_op, 12)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6, 7, 9, 11, 12>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 6), TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 0, 8), TG_F32(negate_op, 0), TG_F32(multiply_op, 10, 4), TG_F32(multiply_op, 10, 5)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<13, 13>, TG_F32(add_op, 1, 2), TG_BOOL(greater_op, 7, 3), TG_F32(where_op, 8, 6, 7), TG_F32(exp_op, 9), TG_F32(multiply_op, 5, 10), TG_F32(where_op, 8, 4, 11), TG_F32(multiply_op, 0, 12)) \
REGION(slots<dtype::boolean, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<13>, TG_F32(multiply_op, 2, 3), TG_F32(multiply_op, 7, 4), TG_F32(multiply_op, 5, 5), TG_F32(multiply_op, 9, 5), TG_F32(multiply_op, 8, 10), TG_F32(divide_op, 11, 6), TG_F32(where_op, 0, 1, 12)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<12>, TG_F32(tapegraph::detail::near_op, 1, 2, 3), TG_F32(sigmoid_op, 5), TG_F32(negate_op, 5), TG_F32(sigmoid_op, 7), TG_F32(multiply_op, 5, 8), TG_F32(add_op, 4, 9), TG_F32(multiply_op, 6, 10), TG_F32(multiply_op, 0, 11)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<14, 14>, TG_F32(add_op, 1, 2), TG_F32(tapegraph::detail::near_op, 6, 3, 4), TG_F32(sigmoid_op, 7), TG_F32(negate_op, 7), TG_F32(sigmoid_op, 9), TG_F32(multiply_op, 7, 10), TG_F32(add_op, 5, 11), TG_F32(multiply_op, 8, 12), TG_F32(multiply_op, 0, 13)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<16>, TG_BOOL(greater_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(subtract_op, 0, 6), TG_F32(multiply_op, 5, 10), TG_F32(multiply_op, 4, 11), TG_F32(add_op, 9, 12), TG_F32(broadcast_op, 7), TG_F32(add_op, 13, 14), TG_F32(where_op, 8, 15, 1)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<16>, TG_BOOL(greater_op, 0, 1), TG_F32(maximum_op, 0, 1), TG_BOOL(less_op, 7, 2), TG_BOOL(equal_op, 7, 2), TG_F32(multiply_op, 3, 4), TG_F32(where_op, 9, 10, 5), TG_F32(where_op, 8, 3, 11), TG_BOOL(equal_op, 0, 1), TG_F32(multiply_op, 12, 4), TG_F32(where_op, 13, 14, 5), TG_F32(where_op, 6, 12, 15)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<10, 17, 0>, TG_F32(negate_op, 0), TG_F32(sqrt_op, 1), TG_F32(add_op, 7, 2), TG_F32(divide_op, 6, 8), TG_F32(multiply_op, 9, 3), TG_F32(multiply_op, 3, 4), TG_F32(divide_op, 11, 8), TG_F32(multiply_op, 6, 12), TG_F32(negate_op, 13), TG_F32(divide_op, 14, 8), TG_F32(multiply_op, 15, 5), TG_F32(divide_op, 16, 7)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<18>, TG_F32(multiply_op, 2, 3), TG_F32(erfc_op, 8), TG_F32(multiply_op, 1, 9), TG_F32(tapegraph::detail::near_op, 3, 5, 6), TG_F32(multiply_op, 4, 11), TG_F32(multiply_op, 11, 11), TG_F32(multiply_op, 7, 13), TG_F32(exp_op, 14), TG_F32(multiply_op, 12, 15), TG_F32(add_op, 10, 16), TG_F32(multiply_op, 0, 17)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<9, 11, 15, 19>, TG_F32(negate_op, 0), TG_F32(multiply_op, 7, 1), TG_F32(divide_op, 8, 2), TG_F32(log_op, 2), TG_F32(multiply_op, 7, 10), TG_F32(subtract_op, 3, 4), TG_F32(log_op, 12), TG_F32(multiply_op, 7, 13), TG_F32(negate_op, 14), TG_F32(subtract_op, 5, 6), TG_F32(multiply_op, 7, 16), TG_F32(divide_op, 17, 12), TG_F32(negate_op, 18)) \
REGION(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<20, 20>, TG_F32(add_op, 3, 4), TG_F32(multiply_op, 2, 9), TG_F32(erfc_op, 10), TG_F32(multiply_op, 1, 11), TG_F32(tapegraph::detail::near_op, 9, 6, 7), TG_F32(multiply_op, 5, 13), TG_F32(multiply_op, 13, 13), TG_F32(multiply_op, 8, 15), TG_F32(exp_op, 16), TG_F32(multiply_op, 14, 17), TG_F32(add_op, 12, 18), TG_F32(multiply_op, 0, 19)) \
MERGED(slots<dtype::f32, dtype::f32>, results<3, 2>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 2)) \
MERGED(slots<dtype::f64, dtype::f64>, results<2, 3>, TG_F32(cast_op<float>, 0), TG_F32(cast_op<float>, 1)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32>, results<3, 4>, TG_F32(divide_op, 0, 1), TG_F32(divide_op, 2, 1)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32>, results<4, 5>, TG_F32(add_op, 0, 1), TG_F32(rsqrt_op, 3), TG_F32(multiply_op, 4, 2)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<4, 5, 6>, TG_F32(divide_op, 0, 1), TG_F32(divide_op, 2, 1), TG_F32(divide_op, 3, 1)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6, 5>, TG_F32(subtract_op, 1, 2), TG_F32(multiply_op, 0, 4), TG_F32(multiply_op, 5, 3)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<5, 7>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 4), TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 0, 6)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7, 6>, TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 1, 4), TG_F32(multiply_op, 0, 5), TG_F32(negate_op, 6)) \
MERGED(slots<dtype::f64, dtype::f64, dtype::f64, dtype::f64>, results<4, 5, 6, 7>, TG_F32(cast_op<float>, 0), TG_F32(cast_op<float>, 1), TG_F32(cast_op<float>, 2), TG_F32(cast_op<float>, 3)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7, 8>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(subtract_op, 5, 6), TG_F32(add_op, 4, 7)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6, 9>, TG_F32(multiply_op, 0, 1), TG_F32(negate_op, 5), TG_F32(subtract_op, 2, 3), TG_F32(multiply_op, 0, 7), TG_F32(multiply_op, 8, 4)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<9, 10>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 3, 4), TG_F32(multiply_op, 2, 7), TG_F32(subtract_op, 6, 8), TG_F32(add_op, 5, 9)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7, 10>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 2, 3), TG_F32(subtract_op, 5, 6), TG_F32(multiply_op, 0, 7), TG_F32(add_op, 4, 8), TG_F32(subtract_op, 9, 6)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<6, 10>, TG_F32(add_op, 0, 1), TG_F32(sigmoid_cross_entropy_op, 5, 2), TG_BOOL(greater_op, 5, 3), TG_BOOL(greater_op, 2, 4), TG_BOOL(equal_op, 7, 8), TG_F32(cast_op<float>, 9)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<9, 15>, TG_F32(multiply_op, 0, 1), TG_BOOL(greater_equal_op, 2, 3), TG_F32(subtract_op, 4, 5), TG_F32(multiply_op, 11, 9), TG_F32(add_op, 12, 6), TG_F32(multiply_op, 13, 7), TG_F32(where_op, 10, 14, 8)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::boolean, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<7, 14>, TG_F32(multiply_op, 0, 1), TG_F32(multiply_op, 0, 4), TG_F32(multiply_op, 8, 5), TG_F32(multiply_op, 1, 1), TG_F32(multiply_op, 10, 1), TG_F32(multiply_op, 9, 11), TG_F32(divide_op, 12, 6), TG_F32(where_op, 2, 3, 13)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<10, 14, 19>, TG_F32(subtract_op, 2, 0), TG_F32(multiply_op, 1, 8), TG_F32(add_op, 0, 9), TG_F32(square_op, 2), TG_F32(subtract_op, 11, 3), TG_F32(multiply_op, 4, 12), TG_F32(add_op, 3, 13), TG_F32(multiply_op, 6, 10), TG_F32(sqrt_op, 14), TG_F32(add_op, 16, 7), TG_F32(divide_op, 15, 17), TG_F32(subtract_op, 5, 18)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<17, 21>, TG_F32(add_op, 1, 2), TG_F32(maximum_op, 7, 3), TG_F32(minimum_op, 8, 4), TG_F32(log_op, 9), TG_F32(multiply_op, 0, 10), TG_F32(subtract_op, 5, 0), TG_F32(subtract_op, 5, 9), TG_F32(log_op, 13), TG_F32(multiply_op, 12, 14), TG_F32(add_op, 11, 15), TG_F32(negate_op, 16), TG_BOOL(greater_op, 7, 6), TG_BOOL(greater_op, 0, 6), TG_BOOL(equal_op, 18, 19), TG_F32(cast_op<float>, 20)) \
MERGED(slots<dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32, dtype::f32>, results<17, 21, 9>, TG_F32(add_op, 1, 2), TG_F32(maximum_op, 7, 3), TG_F32(minimum_op, 8, 4), TG_F32(log_op, 9), TG_F32(multiply_op, 0, 10), TG_F32(subtract_op, 5, 0), TG_F32(subtract_op, 5, 9), TG_F32(log_op, 13), TG_F32(multiply_op, 12, 14), TG_F32(add_op, 11, 15), TG_F32(negate_op, 16), TG_BOOL(greater_op, 7, 6), TG_BOOL(greater_op, 0, 6), TG_BOOL(equal_op, 18, 19), TG_F32(cast_op<float>, 20))

// clang-format on

#ifdef TG_COMPONENT
#define TG_REGION(...) TG_COMPILED(regions, void evaluate_tile<region<__VA_ARGS__>>(const tile&))
#define TG_MERGED_REGION(...) TG_COMPILED(regions, void evaluate_merged_tile<region<__VA_ARGS__>>(const tile&))
TG_COMPILED_REGIONS(TG_REGION, TG_MERGED_REGION)
#undef TG_REGION
#undef TG_MERGED_REGION
#endif

} // namespace tapegraph::cpu
