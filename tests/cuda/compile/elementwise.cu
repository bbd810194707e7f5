#include <tapegraph/cuda/ops/random/random.cuh>
#include <tapegraph/cuda/reduction.cuh>
#include <tapegraph/cuda/region.cuh>
#include <tapegraph/cuda/widened.cuh>
#include <tapegraph/ops/ops.hpp>

/// Instantiates regions as training has them, reductions of every kind, random numbers, and
/// conversions.

namespace tapegraph::cuda {

namespace {

constexpr dtype f32 = dtype::f32, f64 = dtype::f64, bf16 = dtype::bf16, truth = dtype::boolean;

using biased_relu = region<slots<f32, f32>, results<3>, instruction<add_op, f32, 0, 1>, instruction<relu_op, f32, 2>>;
using momentum =
    region<slots<f32, f32, f32, f32, f32>, results<6, 8>, instruction<multiply_op, f32, 1, 3>,
           instruction<add_op, f32, 5, 2>, instruction<multiply_op, f32, 6, 4>, instruction<subtract_op, f32, 0, 7>>;
using gelu_in_bfloat16 = region<slots<bf16>, results<1>, instruction<gelu_op, bf16, 0>>;
using masked = region<slots<truth, f64, f64>, results<3>, instruction<where_op, f64, 0, 1, 2>>;
using squared_error =
    region<slots<f32, f32>, results<3>, instruction<subtract_op, f32, 0, 1>, instruction<square_op, f32, 2>>;
using normalization_derivative =
    region<slots<f32, f32, f32, f32>, results<4, 5, 7, 0>, instruction<multiply_op, f32, 0, 1>,
           instruction<negate_op, f32, 4>, instruction<subtract_op, f32, 2, 3>, instruction<multiply_op, f32, 0, 6>>;

template <dtype Type>
using in_memory = region<slots<Type>, results<0>>;

template <class Kernel>
constexpr runtime::kernel_functions functions() {
    return {&Kernel::run, &Kernel::workspace};
}

} // namespace

extern const runtime::kernel_functions elementwise_kernels[];
const runtime::kernel_functions elementwise_kernels[]{
    {&region_kernel<biased_relu>::run, nullptr},
    {&region_kernel<momentum>::run, nullptr},
    {&region_kernel<gelu_in_bfloat16>::run, nullptr},
    {&region_kernel<masked>::run, nullptr},
    functions<reduction_kernel<sum_op, squared_error, float>>(),
    functions<reduction_kernel<sum_op, in_memory<f32>, float>>(),
    functions<reduction_kernel<sum_op, in_memory<bf16>, bfloat16>>(),
    functions<reduction_kernel<sum_op, in_memory<dtype::i32>, std::int32_t>>(),
    functions<result_sum<normalization_derivative>>(),
    functions<reduction_kernel<all_op, in_memory<truth>, bool>>(),
    functions<kernel<max_op, double>>(),
    kernel_for<random_op<float>, float>(),
    kernel_for<random_op<half>, half>(),
    kernel_for<random_integer_op<std::int64_t>, std::int64_t>(),
};

} // namespace tapegraph::cuda
