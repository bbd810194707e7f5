#pragma once

#include <tapegraph/cuda/kernels/box.cuh>
#include <tapegraph/cuda/lines.cuh>
#include <tapegraph/ops/reduction/softmax_kernel.hpp>

/// Kernels of softmax, log_softmax and their gradients. Where lines are short, or many and
/// interleaved, a thread takes a line; otherwise a block takes a line, and its totals are folded by
/// shuffles within warps and through shared memory (256 bytes) between them. A line is read two or
/// three times, mostly from the L2 cache.

namespace tapegraph::cuda {

namespace kernels {

struct softmax_lines {
    std::int64_t length, inner, first, end;
};

/// Folds the values of all threads of a block: in the order of lanes, then of warps.
template <bool Maximum, bool Alone>
__device__ double of_block(double mine, double* warps) {
    if constexpr (Alone) {
        return mine;
    } else {
        constexpr reduction fold = Maximum ? reduction::maximum : reduction::sum;
        TG_UNROLL
        for (int away = 16; away > 0; away /= 2)
            tapegraph::detail::combine<fold>(mine, static_cast<double>(__shfl_xor_sync(0xFFFFFFFFu, mine, away)));
        const int t = static_cast<int>(threadIdx.x), count = static_cast<int>(blockDim.x) / 32;
        __syncthreads(); // some threads may still read the previous totals
        if (t % 32 == 0) warps[t / 32] = mine;
        __syncthreads();
        mine = warps[0];
        for (int w = 1; w < count; ++w) tapegraph::detail::combine<fold>(mine, warps[w]);
        return mine;
    }
}

/// With `Gradient`, x is dy and y the forward result. Blocks have 32 to 1,024 threads; with `Alone`
/// each thread has a line.
template <bool Log, bool Gradient, bool Alone, class T>
__global__ void softmax(softmax_lines s, const T* x, const T* y, T* to) {
    __shared__ double warps[32];
    const std::int64_t line = s.first + (Alone ? std::int64_t{thread_number()} : std::int64_t{blockIdx.x});
    if (line >= s.end) return; // with Alone there are no barriers
    const std::int64_t from = line / s.inner * s.length * s.inner + line % s.inner;
    const std::int64_t begin = Alone ? 0 : threadIdx.x, stride = Alone ? 1 : blockDim.x;
    x += from, y += from, to += from;
    const auto each = [&](const auto& f) {
        for (std::int64_t k = begin; k < s.length; k += stride) f(k * s.inner);
    };
    T total(0);
    if constexpr (Gradient) {
        each([&](std::int64_t i) { total += Log ? x[i] : x[i] * y[i]; });
        const T sum = static_cast<T>(of_block<false, Alone>(static_cast<double>(total), warps));
        each([&](std::int64_t i) { to[i] = Log ? x[i] - math::exp(y[i]) * sum : y[i] * (x[i] - sum); });
    } else {
        T best = tapegraph::detail::identity<reduction::maximum, T>;
        each([&](std::int64_t i) { tapegraph::detail::combine<reduction::maximum>(best, x[i]); });
        const T largest = static_cast<T>(of_block<true, Alone>(static_cast<double>(best), warps));
        each([&](std::int64_t i) {
            const T raised = math::exp(x[i] - largest);
            total += raised;
            if (!Log) to[i] = raised;
        });
        const T sum = static_cast<T>(of_block<false, Alone>(static_cast<double>(total), warps));
        const T by = Log ? math::log(sum) : T(1) / sum;
        each([&](std::int64_t i) { to[i] = Log ? (x[i] - largest) - by : to[i] * by; });
    }
}

} // namespace kernels

namespace detail {

template <bool Log, bool Gradient, class T>
struct softmax_kernel {
    static constexpr const char* name =
        Gradient ? (Log ? "log_softmax_gradient" : "softmax_gradient") : (Log ? "log_softmax" : "softmax");
    static void run(const kernel_call& c) {
        const line_plan p(c.in[0], runtime::attributes_of<softmax_op>(c).axis);
        if (p.lines * p.length == 0) return;
        const T *const x = c.in[0].as<const T>(), *const y = c.in[Gradient ? 1 : 0].as<const T>();
        T* const to = c.out[0].as<T>();
        for_pieces(p.lines, [&](std::int64_t first, std::int64_t count) {
            const kernels::softmax_lines s{p.length, p.inner, first, first + count};
            if (p.by_thread)
                launch(c, name, over(count, 128), kernels::softmax<Log, Gradient, true, T>, s, x, y, to);
            else
                launch(c, name, {static_cast<unsigned>(count), p.length > 8192 ? 1024 : p.threads()},
                       kernels::softmax<Log, Gradient, false, T>, s, x, y, to);
        });
    }
};

} // namespace detail

template <std::floating_point T>
struct kernel<softmax_op, T> : detail::softmax_kernel<false, false, T> {};
template <std::floating_point T>
struct kernel<log_softmax_op, T> : detail::softmax_kernel<true, false, T> {};
template <std::floating_point T>
struct kernel<softmax_gradient_op, T> : detail::softmax_kernel<false, true, T> {};
template <std::floating_point T>
struct kernel<log_softmax_gradient_op, T> : detail::softmax_kernel<true, true, T> {};

} // namespace tapegraph::cuda
