#include <tapegraph/cuda/ops/product/gemm.cuh>

/// Instantiates matrix products by cuBLASLt and their epilogues.

namespace tapegraph::cuda {

template void gemm(driver::stream, const char*, gemm_arguments<float>, math_mode);
template void gemm(driver::stream, const char*, gemm_arguments<double>, math_mode);
template void gemm(driver::stream, const char*, gemm_arguments<half>, math_mode);
template void gemm(driver::stream, const char*, gemm_arguments<bfloat16>, math_mode);

} // namespace tapegraph::cuda
