#pragma once

#include <tapegraph/cuda/kernels/convolution.cuh>

/// Convolutions whose groups are too narrow for a product's tile, above all depthwise ones: a
/// thread computes one result at a time. Neighbouring threads have neighbouring channels, so the
/// reads of a depthwise convolution coalesce. No shared memory; elements that neighbours read again
/// come from the caches.
///
/// The problems of kernels/convolution.cuh give the addresses of operands. The filter gradient is
/// split over pixels (grid y).

namespace tapegraph::cuda::kernels {

/// Calls f(i) for every i below `count` in a grid of one-dimensional blocks along x.
template <class F>
__device__ void for_each_of_grid(std::int64_t count, const F& f) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        f(i);
}

/// For forward_problem and input_gradient_problem, whose rows are pixels and whose k counts taps.
template <class Problem>
__global__ void __launch_bounds__(256, 1) direct_convolution(Problem problem) {
    using T = typename Problem::T;
    const int channels = problem.n * problem.groups;
    for_each_of_grid(static_cast<std::int64_t>(problem.m) * channels, [&](std::int64_t i) {
        const auto pixel = static_cast<int>(i / channels);
        const int channel = static_cast<int>(i % channels), group = channel / problem.n, n = channel % problem.n;
        const auto line_a = problem.line_a(pixel, group);
        const auto line_b = problem.line_b(n, group);
        T sum = 0;
        for (int k = 0; k < problem.k; ++k) {
            const T* const a = problem.a(line_a, problem.step_a(k, problem.k, group));
            if (a != nullptr) sum = multiply_add(*a, *problem.b(line_b, problem.step_b(k, problem.k, group)), sum);
        }
        problem.row(pixel, group, 0)[n] = problem.finished(sum, n, group);
    });
}

/// For filter_gradient_problem, whose rows count taps and whose k counts pixels.
template <class T>
__global__ void __launch_bounds__(256, 1) direct_filter_gradient(filter_gradient_problem<T> problem) {
    const int channels = problem.n * problem.groups, split = static_cast<int>(blockIdx.y);
    const k_range range(problem.k, 1, split, problem.splits);
    for_each_of_grid(static_cast<std::int64_t>(problem.m) * channels, [&](std::int64_t i) {
        const auto row = static_cast<int>(i / channels);
        const int channel = static_cast<int>(i % channels), group = channel / problem.n, n = channel % problem.n;
        const auto line_a = problem.line_a(row, group);
        const auto line_b = problem.line_b(n, group);
        T total = 0;
        for (int first = range.begin; first < range.end; first += longest_chain) {
            const int end = range.end - first < longest_chain ? range.end : first + longest_chain;
            T sum = 0;
            for (int k = first; k < end; ++k) {
                const T* const a = problem.a(line_a, problem.step_a(k, end, group));
                if (a != nullptr) sum = multiply_add(*a, *problem.b(line_b, problem.step_b(k, end, group)), sum);
            }
            total += sum;
        }
        problem.row(row, group, split)[n] = total;
    });
}

} // namespace tapegraph::cuda::kernels
