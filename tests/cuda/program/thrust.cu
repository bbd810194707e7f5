#include <tapegraph/cuda/thrust.hpp>
#include <tapegraph/tapegraph.hpp>

#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <cstdio>
#include <utility>
#include <vector>

/// Thrust and tensors together, as in docs/interop.md. Without a GPU the program says so.

namespace tg = tapegraph;

struct squared {
    __host__ __device__ float operator()(float x) const { return x * x; }
};

static int failures = 0;
static void expect(bool right, const char* what) {
    if (!right) std::printf("wrong: %s\n", what), ++failures;
}

int main() {
    const tg::device gpu = tg::available_or_cpu(tg::device::cuda(0));
    if (gpu.is_cpu()) {
        std::printf("no GPU: nothing was run\n");
        return 0;
    }
    const tg::device_scope on(gpu);

    // A vector becomes a tensor without moving its elements.
    thrust::device_vector<float> v(6);
    thrust::sequence(v.begin(), v.end());
    const void* const before = thrust::raw_pointer_cast(v.data());
    tg::tensor<float> x = tg::cuda::adopt(std::move(v), {2, 3});
    expect(tg::cuda::elements_on(x).data() == before, "adopt copied");
    const tg::tensor<float> y = exp(x) - 3 * x;
    expect(y.shape() == tg::shape{2, 3}, "shape");

    // Thrust's algorithms on a tensor, in order with its computation, without waiting.
    tg::tensor<float> z = y * 1;
    thrust::sort(tg::cuda::policy(), tg::cuda::begin(z), tg::cuda::end(z));
    thrust::transform(tg::cuda::policy(), tg::cuda::cbegin(z), tg::cuda::cend(z), tg::cuda::begin(x), squared{});
    const std::vector<float> sorted = z.to_vector(), squares = x.to_vector();
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        expect(i == 0 || sorted[i - 1] <= sorted[i], "sort");
        expect(squares[i] == sorted[i] * sorted[i], "transform");
    }
    const float all = thrust::reduce(tg::cuda::policy(), tg::cuda::cbegin(z), tg::cuda::cend(z));
    const float ours = sum(z).item();
    expect(all - ours < 1e-4f && ours - all < 1e-4f, "reduce");

    // Vectors whose memory comes from the tensors' pool.
    const auto copied = tg::cuda::to_device_vector(z);
    const tg::tensor<float> seen = tg::cuda::borrow(copied, {6});
    expect(seen.to_vector() == sorted, "borrow");
    std::printf("%s\n", failures == 0 ? "Thrust and tensors agree" : "Thrust and tensors differ");
    return failures == 0 ? 0 : 1;
}
