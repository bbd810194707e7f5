#include <tapegraph/cuda/kernels/warpgroup_convolution.cuh>

/// As kernels.cu, for sm_90a: convolutions by warpgroups, which need CuTe's headers.

namespace tapegraph::cuda::kernels {

#define TG_WARPGROUPS(T, FRAGMENTS, COLUMNS, INNERMOST)                                                                \
    template __global__ void                                                                                           \
    warpgroup_convolution<T, warpgroup_tile<FRAGMENTS, COLUMNS>, warpgroup_problem<T, INNERMOST>>(                     \
        const __grid_constant__ tensor_map, const __grid_constant__ tensor_map,                                        \
        const __grid_constant__ warpgroup_problem<T, INNERMOST>);
TG_WARPGROUPS(float, 2, 160, false)
TG_WARPGROUPS(float, 1, 208, false)
TG_WARPGROUPS(bfloat16, 2, 160, false)
TG_WARPGROUPS(float, 2, 160, true)

#define TG_WARPGROUP_SLICES(T, FRAGMENTS, COLUMNS)                                                                     \
    template __global__ void warpgroup_convolution<T, warpgroup_tile<FRAGMENTS, COLUMNS>, warpgroup_slices<T>>(        \
        const __grid_constant__ tensor_map, const __grid_constant__ tensor_map,                                        \
        const __grid_constant__ warpgroup_slices<T>);
TG_WARPGROUP_SLICES(float, 2, 160)
TG_WARPGROUP_SLICES(float, 1, 208)
TG_WARPGROUP_SLICES(bfloat16, 2, 160)

} // namespace tapegraph::cuda::kernels
