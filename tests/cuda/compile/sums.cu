#include <tapegraph/cuda/nccl.cuh>

/// Instantiates a GPU for NCCL's exchange, and with it the kernels that add what ranks send each
/// other.

namespace tapegraph::cuda {

extern distributed::nccl_device (*const device_for_sums)(tapegraph::device);
distributed::nccl_device (*const device_for_sums)(tapegraph::device) = &nccl_device_of;

} // namespace tapegraph::cuda
