#include <tapegraph/cuda/ops/effect/effect.cuh>
#include <tapegraph/cuda/ops/movement/fill.cuh>
#include <tapegraph/cuda/ops/movement/movement.cuh>
#include <tapegraph/cuda/ops/pooling/pooling.cuh>
#include <tapegraph/cuda/ops/gather/rows.cuh>
#include <tapegraph/cuda/ops/cumulative/cumulative.cuh>
#include <tapegraph/cuda/ops/ordering/arg_reduce.cuh>
#include <tapegraph/cuda/ops/ordering/places.cuh>
#include <tapegraph/cuda/ops/gather/scatter.cuh>
#include <tapegraph/cuda/ops/ordering/sort.cuh>
#include <tapegraph/cuda/ops/reduction/normalization.cuh>
#include <tapegraph/cuda/ops/reduction/softmax.cuh>
#include <tapegraph/cuda/ops/reduction/softmax_cross_entropy.cuh>

/// Instantiates movement, indexing, scans, sorts, pooling and effects: every kernel once, for float
/// where its type matters.

namespace tapegraph::cuda {

extern const runtime::kernel_functions movement_kernels[];
const runtime::kernel_functions movement_kernels[]{
    kernel_for<transpose_op, float>(),
    kernel_for<slice_op, float>(),
    kernel_for<pad_op, bfloat16>(),
    kernel_for<index_map_op, float>(),
    kernel_for<index_map_adjoint_op, float>(),
    kernel_for<concat_op, float>(),
    kernel_for<arange_op<half>, float>(),
    kernel_for<gather_op, float>(),
    kernel_for<scatter_add_op, float>(),
    kernel_for<scatter_add_op, std::int32_t>(),
    kernel_for<scatter_add_op, std::int64_t>(),
    kernel_for<gather_scatter_add_op<false>, float>(),
    kernel_for<gather_scatter_add_op<true>, float>(),
    kernel_for<sum_of_equal_rows_op, float>(),
    kernel_for<assign_rows_op, float>(),
    kernel_for<gather_nd_op, float>(),
    kernel_for<scatter_nd_op, float>(),
    kernel_for<take_along_op, float>(),
    kernel_for<put_along_op, float>(),
    kernel_for<one_hot_op<float>, std::int32_t>(),
    kernel_for<cumulative_sum_op, float>(),
    kernel_for<cumulative_product_op, std::int64_t>(),
    kernel_for<argsort_op, float>(),
    kernel_for<argsort_op, double>(),
    kernel_for<arg_reduce_op, float>(),
    kernel_for<searchsorted_op, float>(),
    kernel_for<marked_places_op, bool>(),
    kernel_for<count_places_op, std::int32_t>(),
    kernel_for<softmax_op, float>(),
    kernel_for<log_softmax_op, float>(),
    kernel_for<softmax_gradient_op, float>(),
    kernel_for<log_softmax_gradient_op, float>(),
    kernel_for<sparse_softmax_cross_entropy_op, float>(),
    kernel_for<sparse_softmax_cross_entropy_gradient_op, float>(),
    kernel_for<normalization_op, float>(),
    kernel_for<normalization_sums_op, float>(),
    kernel_for<normalization_gradient_op, float>(),
    kernel_for<max_pool_op, float>(),
    kernel_for<max_pool_gradient_op, float>(),
    kernel_for<max_pool_select_op, float>(),
    kernel_for<average_pool_op, float>(),
    kernel_for<average_pool_gradient_op, float>(),
    kernel_for<check_finite_op<"loss">, float>(),
    kernel_for<check_op<"positive">, bool>(),
    kernel_for<print_op<"loss">, float>(),
};

} // namespace tapegraph::cuda
