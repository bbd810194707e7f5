#pragma once

#include <tapegraph/cuda/kernels/arg_reduce.cuh>
#include <tapegraph/cuda/library_reduction.hpp>
#include <tapegraph/cuda/lines.cuh>
#include <tapegraph/ops/ordering/kernel.hpp>

#include <limits>

/// Kernels of argmax and argmin. Those of whole tensors go to a library where it is linked.

namespace tapegraph::cuda {

template <class T>
struct kernel<arg_reduce_op, T> {
    using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

    static std::size_t workspace(const kernel_call& c) {
        const auto a = runtime::attributes_of<arg_reduce_op>(c);
        const detail::line_plan p(c.in[0], a.axis);
        if (const std::size_t bytes = library_bytes(c, p, a.maximum != 0); bytes > 0) return bytes;
        return p.chunks == 1 ? 0 : static_cast<std::size_t>(p.lines * p.chunks) * sizeof(std::int32_t);
    }
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<arg_reduce_op>(c);
        const detail::line_plan p(c.in[0], a.axis);
        if (p.lines == 0) return;
        cpu::reduce_detail::check_arg_axis(a.maximum != 0, static_cast<int>(a.axis), p.length);
        if (const std::size_t bytes = library_bytes(c, p, a.maximum != 0); bytes > 0)
            return arg_reduction_of_library<element>.find(a.maximum != 0 ? "argmax" : "argmin", c.stream,
                                                          a.maximum != 0, c.in[0].as<const element>(),
                                                          c.out[0].as<std::int32_t>(), p.length, c.workspace, bytes);
        a.maximum != 0 ? reduce<true>(c, p) : reduce<false>(c, p);
    }

private:
    /// Scratch memory of a library that searches one line; 0 if our kernels are chosen. Either
    /// reads the line once and searches the remaining candidates in a second launch; ours then
    /// reads the candidates' elements, a sector of 32 bytes each, which the library has stored with
    /// their positions. A line that fits one block takes our kernels one launch and may take the
    /// library two.
    static std::size_t library_bytes(const kernel_call& c, const detail::line_plan& p, bool maximum) {
        if (arg_reduction_of_library<element>.find == nullptr || p.lines != 1 || p.chunks == 1 ||
            p.length > std::numeric_limits<std::int32_t>::max())
            return 0;
        detail::use_device_of(c);
        return arg_reduction_of_library<element>.scratch_bytes(maximum, p.length);
    }
    template <bool Maximum>
    static void reduce(const kernel_call& c, const detail::line_plan& p) {
        constexpr const char* name = Maximum ? "argmax" : "argmin";
        const kernels::arg_shape s{p.length, p.inner, p.length, p.chunk(), p.chunks};
        const auto* const x = c.in[0].as<const element>();
        auto* const out = c.out[0].as<std::int32_t>();
        if (p.by_thread)
            return detail::for_pieces(p.lines, [&](std::int64_t first, std::int64_t count) {
                launch(c, name, detail::over(count, 128), kernels::arg_lines<Maximum, element>, s, first, first + count,
                       x, out);
            });
        auto* const found = p.chunks > 1 ? static_cast<std::int32_t*>(c.workspace) : out;
        launch(c, name, {static_cast<unsigned>(p.lines * p.chunks), p.threads()}, kernels::arg_rows<Maximum, element>,
               s, x, nullptr, found);
        if (p.chunks == 1) return;
        const kernels::arg_shape last{p.length, p.inner, p.chunks, p.chunks, 1};
        launch(c, name, {static_cast<unsigned>(p.lines), kernels::arg_threads}, kernels::arg_rows<Maximum, element>,
               last, x, found, out);
    }
};

} // namespace tapegraph::cuda
