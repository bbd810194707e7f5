#include <tapegraph/cuda/ops/attention/attention.cuh>

/// Instantiates attention and its derivative. No kernel here may spill registers.

namespace tapegraph::cuda::kernels {

#define TG_ATTENTION(T)                                                                                                \
    template __global__ void attention_forward<T>(attention_arguments<T>, T*, T*);                                     \
    template __global__ void attention_delta<T>(attention_arguments<T>, std::int64_t, const T*, T*);                   \
    template __global__ void attention_by_queries<T>(attention_arguments<T>, T*);                                      \
    template __global__ void attention_by_keys<false, T>(attention_arguments<T>, T*);                                  \
    template __global__ void attention_by_keys<true, T>(attention_arguments<T>, T*);                                   \
    template __global__ void random_address<T>(const random_state*, std::uint32_t, std::int64_t, T*);                  \
    template __global__ void numbers_at<T>(const T*, std::int64_t, std::int64_t, T*);
TG_ATTENTION(float)
TG_ATTENTION(double)
#undef TG_ATTENTION

} // namespace tapegraph::cuda::kernels
