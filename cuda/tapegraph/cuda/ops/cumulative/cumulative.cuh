#pragma once

#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/arg_reduce.cuh>
#include <tapegraph/cuda/kernels/scan.cuh>
#include <tapegraph/ops/cumulative/kernel.hpp>

#include <algorithm>

/// cumulative_sum, cumulative_product; argmax, argmin: whatever goes along one axis.

namespace tapegraph::cuda {

namespace detail {

/// A variable, so that tests reach every way with small tensors.
struct line_limits {
    std::int64_t short_line = 64;   ///< a thread's work
    std::int64_t many_lines = 8192; ///< enough threads for a device
    std::int64_t few_blocks = 256;  ///< not enough blocks for one
    std::int64_t chunk = 8192;
};
inline line_limits limits_of_lines;

/// How lines along an axis are divided among threads: from their number and length alone.
struct line_plan {
    std::int64_t outer = 1, length, inner = 1, lines, chunks = 1;
    bool by_thread;

    line_plan(const buffer_view& x, std::int64_t axis)
        : outer(runtime::detail::span(x, 0, axis)),
          length(x.extents[axis]),
          inner(runtime::detail::span(x, axis + 1, x.rank)),
          lines(outer * inner),
          by_thread(length <= limits_of_lines.short_line || (inner > 1 && lines >= limits_of_lines.many_lines)) {
        if (!by_thread && lines < limits_of_lines.few_blocks) chunks = divide_up(length, limits_of_lines.chunk);
    }
    std::int64_t chunk() const { return chunks == 1 ? length : limits_of_lines.chunk; }
    unsigned threads() const { return length <= 256 ? 32 : 256; }
};

template <bool Product, class T>
struct scan_kernel {
    using element = typename runtime::reduced_element<sum_op, T>::type; // integers wrap around
    using accumulator = kernels::scan_accumulator<element>;
    static constexpr const char* name = Product ? "cumulative_product" : "cumulative_sum";

    static line_plan plan(const kernel_call& c) { return {c.in[0], runtime::attributes_of<cumulative_sum_op>(c).axis}; }
    static std::size_t workspace(const kernel_call& c) {
        const line_plan p = plan(c);
        return p.chunks == 1 ? 0 : static_cast<std::size_t>(p.lines * p.chunks) * sizeof(accumulator);
    }
    static void run(const kernel_call& c) {
        const line_plan p = plan(c);
        if (p.lines * p.length == 0) return;
        const auto a = runtime::attributes_of<cumulative_sum_op>(c);
        const kernels::scan_shape s{p.length, p.inner, a.exclusive != 0, a.reverse != 0, p.chunk(), p.chunks};
        const auto* const x = c.in[0].as<const element>();
        auto* const y = c.out[0].as<element>();
        if (p.by_thread)
            return for_pieces(p.lines, [&](std::int64_t first, std::int64_t count) {
                launch(c, name, over(count, 128), kernels::scan_lines<Product, element>, s, first, first + count, x, y);
            });
        accumulator* before = nullptr;
        const auto blocks = static_cast<unsigned>(p.lines * p.chunks);
        if (p.chunks > 1) { // totals of chunks, then what goes before each
            before = static_cast<accumulator*>(c.workspace);
            launch(c, name, {blocks, kernels::scan_threads}, kernels::fold_chunks<Product, element>, s, x, before);
            const kernels::scan_shape totals{p.chunks, 1, true, false, p.chunks, 1};
            launch(c, name, {static_cast<unsigned>(p.lines), kernels::scan_threads},
                   kernels::scan_rows<Product, accumulator>, totals, before, before, nullptr);
        }
        launch(c, name, {blocks, p.threads()}, kernels::scan_rows<Product, element>, s, x, y, before);
    }
};

} // namespace detail

template <class T>
struct kernel<cumulative_sum_op, T> : detail::scan_kernel<false, T> {};
template <class T>
struct kernel<cumulative_product_op, T> : detail::scan_kernel<true, T> {};

template <class T>
struct kernel<arg_reduce_op, T> {
    using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

    static std::size_t workspace(const kernel_call& c) {
        const detail::line_plan p(c.in[0], runtime::attributes_of<arg_reduce_op>(c).axis);
        return p.chunks == 1 ? 0 : static_cast<std::size_t>(p.lines * p.chunks) * sizeof(std::int32_t);
    }
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<arg_reduce_op>(c);
        const detail::line_plan p(c.in[0], a.axis);
        if (p.lines == 0) return;
        cpu::reduce_detail::check_arg_axis(a.maximum != 0, static_cast<int>(a.axis), p.length);
        a.maximum != 0 ? reduce<true>(c, p) : reduce<false>(c, p);
    }

private:
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
