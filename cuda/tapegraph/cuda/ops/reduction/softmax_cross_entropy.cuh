#pragma once

#include <tapegraph/cuda/ops/gather/gather.cuh>
#include <tapegraph/cuda/ops/reduction/softmax.cuh>
#include <tapegraph/ops/reduction/softmax_cross_entropy_kernel.hpp>

/// Kernels of the cross entropy of class numbers and of its gradient. Rows are divided among threads
/// and blocks as those of softmax; a row is read two or three times, mostly from the L2 cache. A
/// label outside the classes becomes the call's fault, with the text that the CPU would throw.

namespace tapegraph::cuda {

namespace kernels {

/// `to` is the loss of each row or, with `Gradient`, dy (softmax(x) - 1 at the label). With `Alone`
/// each thread has a row.
template <bool Gradient, bool Alone, class T>
__global__ void sparse_cross_entropy(softmax_lines s, const T* dy, const T* x, index_view labels, T* to,
                                     fault_report report) {
    __shared__ double warps[32];
    const std::int64_t row = s.first + (Alone ? std::int64_t{thread_number()} : std::int64_t{blockIdx.x});
    if (row >= s.end) return; // with Alone there are no barriers
    const std::int64_t begin = Alone ? 0 : threadIdx.x, stride = Alone ? 1 : blockDim.x, label = labels[row];
    if (!inside(label, s.length)) { // the same for all threads of a row
        if (begin == 0) report(row, label, s.length);
        return;
    }
    x += row * s.length;
    T best = tapegraph::detail::identity<reduction::maximum, T>, total(0);
    for (std::int64_t k = begin; k < s.length; k += stride) tapegraph::detail::combine<reduction::maximum>(best, x[k]);
    const T largest = static_cast<T>(of_block<true, Alone>(static_cast<double>(best), warps));
    if constexpr (Gradient) {
        to += row * s.length;
        for (std::int64_t k = begin; k < s.length; k += stride) {
            to[k] = math::exp(x[k] - largest);
            total += to[k];
        }
        const T sum = static_cast<T>(of_block<false, Alone>(static_cast<double>(total), warps));
        const T slope = dy[row], factor = slope / sum;
        for (std::int64_t k = begin; k < s.length; k += stride)
            to[k] = k == label ? to[k] * factor - slope : to[k] * factor;
    } else {
        for (std::int64_t k = begin; k < s.length; k += stride) total += math::exp(x[k] - largest);
        const T sum = static_cast<T>(of_block<false, Alone>(static_cast<double>(total), warps));
        if (begin == 0) to[row] = math::log(sum) - (x[label] - largest);
    }
}

} // namespace kernels

namespace detail {

template <bool Gradient, class T>
struct sparse_cross_entropy_kernel {
    static void run(const kernel_call& c) {
        constexpr const char* name = "sparse_softmax_cross_entropy_with_logits";
        const buffer_view &x = c.in[Gradient ? 1 : 0], &labels = c.in[Gradient ? 2 : 1];
        const line_plan p(x, x.rank - 1);
        const T* const dy = Gradient ? c.in[0].as<const T>() : nullptr;
        for_pieces(p.lines, [&](std::int64_t first, std::int64_t count) {
            const kernels::softmax_lines s{p.length, 1, first, first + count};
            if (p.by_thread)
                launch(c, name, over(count, 128), kernels::sparse_cross_entropy<Gradient, true, T>, s, dy,
                       x.as<const T>(), indices_of(labels), c.out[0].as<T>(), report_indices(c, name));
            else
                launch(c, name, {static_cast<unsigned>(count), p.length > 8192 ? 1024 : p.threads()},
                       kernels::sparse_cross_entropy<Gradient, false, T>, s, dy, x.as<const T>(), indices_of(labels),
                       c.out[0].as<T>(), report_indices(c, name));
        });
    }
};

} // namespace detail

template <std::floating_point T>
struct kernel<sparse_softmax_cross_entropy_op, T> : detail::sparse_cross_entropy_kernel<false, T> {};
template <std::floating_point T>
struct kernel<sparse_softmax_cross_entropy_gradient_op, T> : detail::sparse_cross_entropy_kernel<true, T> {};

} // namespace tapegraph::cuda
