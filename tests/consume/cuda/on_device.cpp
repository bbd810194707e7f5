#include <tapegraph/core/config.hpp>
#include <tapegraph/cuda/ops/cumulative/library_scan.hpp>
#include <tapegraph/cuda/ops/ordering/library_sort.hpp>
#include <tapegraph/cuda/ops/product/gemm.cuh>

#include <cstdio>

#ifndef TG_CUDA
#error "compiled without nvcc"
#endif

/// Starts with and without a GPU, links cuBLAS and what is CUB's, and multiplies where there is something to multiply on.
int run_on_device() {
    namespace tg = tapegraph;
    std::printf("TapeGraph %d.%d.%d\n", TAPEGRAPH_VERSION_MAJOR, TAPEGRAPH_VERSION_MINOR, TAPEGRAPH_VERSION_PATCH);
    std::fputs(tg::device_table().c_str(), stdout);
    if (tg::cuda::sort_of_library<std::uint32_t>.sort == nullptr ||
        tg::cuda::scan_of_library<std::uint32_t>.scan == nullptr) {
        std::fputs("the sources that are compiled for themselves (cuda/library/*.cu) were not linked\n", stderr);
        return 1;
    }
    if (tg::available_or_cpu(tg::device::cuda()).is_cpu()) return 0;
    auto& context = tg::cuda::context::of(0);
    const float factors[]{6, 7};
    auto* const at = static_cast<float*>(context.memory().allocate(3 * sizeof(float), "three numbers"));
    tg::cuda::driver::copy(at, factors, sizeof factors, context.stream());
    tg::cuda::gemm_arguments<float> g;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 1;
    g.a = at, g.b = at + 1, g.c = at + 2;
    tg::cuda::gemm<float>(context.stream(), "consumer", g);
    float product = 0;
    tg::cuda::driver::copy(&product, at + 2, sizeof product, context.stream());
    tg::cuda::driver::wait(context.stream());
    context.memory().release(at);
    return product == 42 ? 0 : 1;
}
