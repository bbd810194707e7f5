#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/reduce_plan.hpp>
#include <tapegraph/ops/reduction/length.hpp>
#include <tapegraph/runtime/kernel.hpp>

#include <type_traits>

namespace tapegraph {

namespace cpu {
struct roots_body {
    template <class Isa, class T>
    TG_INLINE static void run(const T* squares, T* roots, std::int64_t n, bool* good) {
        std::int64_t bad = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            roots[i] = math::sqrt(squares[i]);
            bad += tapegraph::detail::is_good_sum(squares[i]) ? 0 : 1;
        }
        *good = bad == 0;
    }
};
} // namespace cpu

namespace runtime {

template <class T>
    requires std::is_floating_point_v<T>
struct kernel<tapegraph::detail::length_op, T> {
    static void run(const kernel_call& c) {
        const std::int64_t count = c.out[0].elements();
        constexpr std::int64_t in_task = 4096;
        cpu::parallel_for((count + in_task - 1) / in_task, count >= 4 * in_task, [&](std::int64_t task) {
            const std::int64_t first = task * in_task, n = std::min(in_task, count - first);
            const T* const squares = c.in[1].as<const T>() + first;
            T* const out = c.out[0].as<T>() + first;
            bool good = false;
            cpu::dispatch<cpu::roots_body>(squares, out, n, &good);
            if (!good) again(c, first, n, squares, out);
        });
    }

private:
    static void again(const kernel_call& c, std::int64_t first, std::int64_t n, const T* squares, T* out) {
        cpu::reduce_detail::groups kept, along;
        const buffer_view &x = c.in[0], &sums = c.in[1];
        std::int64_t strides[max_rank], stride = 1;
        for (int i = x.rank; i-- > 0; stride *= x.extents[i]) strides[i] = stride;
        for (int i = 0; i < x.rank; ++i)
            if (x.extents[i] != 1) (sums.extents[i] == 1 ? along : kept).add(x.extents[i], strides[i]);
        for (std::int64_t i = 0; i < n; ++i) {
            const T* const from = x.as<const T>() + kept.offset(first + i);
            out[i] = tapegraph::detail::length_of(squares[i], along.size,
                                                  [&](std::int64_t j) { return from[along.offset(j)]; });
        }
    }
};

} // namespace runtime
} // namespace tapegraph

#include <tapegraph/ops/compiled_kernels.hpp>
