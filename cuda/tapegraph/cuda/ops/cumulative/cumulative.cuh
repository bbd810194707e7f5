#pragma once

#include <tapegraph/cuda/kernels/scan.cuh>
#include <tapegraph/cuda/launch_bytes.hpp>
#include <tapegraph/cuda/lines.cuh>
#include <tapegraph/cuda/ops/cumulative/library_scan.hpp>
#include <tapegraph/ops/cumulative/kernel.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

/// Kernels of cumulative_sum and cumulative_product. Integers along few long lines go to a library
/// where it is linked.

namespace tapegraph::cuda {

namespace detail {

template <bool Product, class T>
struct scan_kernel {
    using element = typename runtime::reduced_element<sum_op, T>::type; // integers wrap around
    using accumulator = kernels::scan_accumulator<element>;
    static constexpr const char* name = Product ? "cumulative_product" : "cumulative_sum";

    static line_plan plan(const kernel_call& c) { return {c.in[0], runtime::attributes_of<cumulative_sum_op>(c).axis}; }
    static scan_way way(const kernel_call& c) {
        return {Product, runtime::attributes_of<cumulative_sum_op>(c).exclusive != 0};
    }
    /// Scratch memory of the library, which scans one line after the other; 0 if our kernels are
    /// chosen. Ours pass over a line in chunks three times in three launches, CUB twice in two
    /// (CCCL 3.0). CUB is chosen where it moves fewer bytes, with launches counted as bytes: always
    /// for a single line, for four lines from 1,310,721 elements of 4 bytes on.
    static std::size_t library_bytes(const kernel_call& c, const line_plan& p) {
        if constexpr (std::is_integral_v<element> && sizeof(element) >= 4) {
            constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
            const bool reverse = runtime::attributes_of<cumulative_sum_op>(c).reverse != 0;
            if (scan_of_library<element>.scan == nullptr || p.chunks == 1 || p.inner > 1 || p.length > most || reverse)
                return 0;
            const std::int64_t pass = p.lines * p.length * static_cast<std::int64_t>(sizeof(element));
            if (2 * pass + 2 * p.lines * bytes_per_launch >= 3 * (pass + bytes_per_launch)) return 0;
            detail::use_device_of(c);
            return scan_of_library<element>.scratch_bytes(way(c), p.length);
        }
        return 0;
    }
    static std::size_t workspace(const kernel_call& c) {
        const line_plan p = plan(c);
        if (const std::size_t bytes = library_bytes(c, p); bytes > 0) return bytes;
        return p.chunks == 1 ? 0 : static_cast<std::size_t>(p.lines * p.chunks) * sizeof(accumulator);
    }
    static void run(const kernel_call& c) {
        const line_plan p = plan(c);
        if (p.lines * p.length == 0) return;
        const auto a = runtime::attributes_of<cumulative_sum_op>(c);
        const kernels::scan_shape s{p.length, p.inner, a.exclusive != 0, a.reverse != 0, p.chunk(), p.chunks};
        const auto* const x = c.in[0].as<const element>();
        auto* const y = c.out[0].as<element>();
        if constexpr (std::is_integral_v<element> && sizeof(element) >= 4)
            if (const std::size_t bytes = library_bytes(c, p); bytes > 0) {
                for (std::int64_t begin = 0; begin < p.lines * p.length; begin += p.length)
                    scan_of_library<element>.scan(name, c.stream, way(c), x + begin, y + begin, p.length, c.workspace,
                                                  bytes);
                return;
            }
        if (p.by_thread)
            return for_pieces(p.lines, [&](std::int64_t first, std::int64_t count) {
                launch(c, name, over(count, 128), kernels::scan_lines<Product, element>, s, first, first + count, x, y);
            });
        accumulator* before = nullptr;
        const auto blocks = static_cast<unsigned>(p.lines * p.chunks);
        if (p.chunks > 1) { // totals of chunks, then the prefix of each
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
