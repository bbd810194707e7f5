#pragma once

#include <tapegraph/cuda/kernels/scan.cuh>
#include <tapegraph/cuda/lines.cuh>
#include <tapegraph/ops/cumulative/kernel.hpp>

/// cumulative_sum and cumulative_product.

namespace tapegraph::cuda {

namespace detail {

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

} // namespace tapegraph::cuda
