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

#define TG_FLASH(PRODUCTS)                                                                                             \
    template __global__ void flash_forward<PRODUCTS>(flash_arguments, int, float*, float*);                            \
    template __global__ void flash_by_queries<PRODUCTS>(flash_arguments, int, float*);                                 \
    template __global__ void flash_by_keys<PRODUCTS>(flash_arguments, int, float*, float*);
TG_FLASH(flash_tensor_products)
TG_FLASH(flash_multiply_adds)
#undef TG_FLASH
template __global__ void flash_delta<16>(flash_arguments, std::int64_t, const float*, float*);

} // namespace tapegraph::cuda::kernels
