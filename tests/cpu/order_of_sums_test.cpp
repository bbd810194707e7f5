#include <tapegraph/cpu/gemm_vector.hpp>
#include <tapegraph/ops/convolution/cpu.hpp>

#include <support/poisoned.hpp>
#include <support/sums_in_order.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

/// The order in which kernels add, and with it the last bit, is the same on every processor, however wide its vectors are.
///
/// A convolution's direct gradient by its input: where (kernel column, channel) is one run of columns, a pixel gets the kernel's
/// columns from the last to the first, otherwise from the first to the last; each is a sum over kernel rows and output channels.
///
/// A matrix times a vector, row by row: each of the elements in 64 bytes has a sum of its own, then these are added, then what is
/// left.

namespace order_of_sums_test {

namespace cpu = tapegraph::cpu;
using geometry = cpu::convolution_geometry;
using support::added;
using support::each_set;
using support::poisoned;

namespace {

template <class T>
T wanted(const geometry& g, const std::vector<T>& dy, const std::vector<T>& w, std::int64_t row, std::int64_t column,
         std::int64_t channel, bool fused) {
    T all = 0;
    for (std::int64_t step = 0; step < g.kernel_width; ++step) {
        const std::int64_t v = g.row_is_contiguous() ? g.kernel_width - 1 - step : step;
        const std::int64_t across = column + g.pad_left - v * g.dilation_width;
        if (across < 0 || across % g.stride_width != 0 || across / g.stride_width >= g.out_width) continue;
        T sum = 0;
        for (std::int64_t u = 0; u < g.kernel_height; ++u) {
            const std::int64_t down = row + g.pad_top - u * g.dilation_height;
            if (down < 0 || down % g.stride_height != 0 || down / g.stride_height >= g.out_height) continue;
            for (std::int64_t o = 0; o < g.out_channels; ++o)
                sum =
                    added(sum,
                          dy[static_cast<std::size_t>(
                              ((down / g.stride_height) * g.out_width + across / g.stride_width) * g.out_channels + o)],
                          w[static_cast<std::size_t>(
                              ((u * g.kernel_width + v) * g.in_channels + channel) * g.out_channels + o)],
                          fused);
        }
        all += sum;
    }
    return all;
}

template <class T>
void check(const geometry& g) {
    const auto dy = support::numbers_that_round<T>(g.out_height * g.out_width * g.out_channels, 1),
               w = support::numbers_that_round<T>(g.kernel_height * g.kernel_width * g.in_channels * g.out_channels, 2);
    each_set([&](bool fused) {
        std::vector<T> dx(static_cast<std::size_t>(g.in_height * g.in_width * g.in_channels));
        poisoned workspace(
            cpu::convolution_workspace_bytes<T>(g, cpu::convolution_pass::input_gradient, tapegraph::thread_count()));
        cpu::convolution_input_gradient(g, dy.data(), w.data(), dx.data(), workspace.get());
        int differences = 0;
        for (std::size_t i = 0; i < dx.size(); ++i) {
            const auto at = static_cast<std::int64_t>(i), pixel = at / g.in_channels;
            differences += dx[i] != wanted(g, dy, w, pixel / g.in_width, pixel % g.in_width, at % g.in_channels, fused);
        }
        INFO(g.in_channels << " channels, stride " << g.stride_width << ", dilation " << g.dilation_width);
        CHECK(differences == 0);
    });
}

/// y = matrix x, of `rows` rows that lie along k. No set fuses here.
template <class T>
void check_vector(std::int64_t rows, std::int64_t k) {
    constexpr std::int64_t parts = 64 / sizeof(T);
    const auto m = support::numbers_that_round<T>(rows * k, 1), x = support::numbers_that_round<T>(k, 2);
    each_set([&](bool) {
        std::vector<T> y(static_cast<std::size_t>(rows)),
            scratch(static_cast<std::size_t>(cpu::detail::gemm_vector_elements(1, rows, k, tapegraph::thread_count())));
        cpu::detail::gemm_vector<T>({rows, k, m.data(), k, false, x.data(), 1, y.data(), 1, false}, scratch.data());
        int differences = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            T part[parts] = {}, sum = 0;
            const std::int64_t in_parts = k / parts * parts;
            for (std::int64_t n = 0; n < k; ++n) {
                if (n == in_parts)
                    for (const T each : part) sum += each;
                T& to = n < in_parts ? part[n % parts] : sum;
                to = added(to, m[static_cast<std::size_t>(i * k + n)], x[static_cast<std::size_t>(n)], false);
            }
            if (in_parts == k)
                for (const T each : part) sum += each;
            differences += y[static_cast<std::size_t>(i)] != sum;
        }
        INFO(rows << " rows of " << k);
        CHECK(differences == 0);
    });
}

geometry image(std::int64_t channels, std::int64_t stride, std::int64_t dilation) {
    const std::int64_t height = 7, width = 9, out_height = (height - 1) / stride + 1,
                       out_width = (width - 1) / stride + 1;
    return {1,  height, width,  channels, 3,        3,        out_height, out_width,
            13, stride, stride, dilation, dilation, dilation, dilation};
}

} // namespace

TEST_CASE("convolution: the gradient by the input has the same bits wherever panels end") {
    for (const std::int64_t channels : {1, 2, 3, 4, 5, 7, 8, 9, 11, 15})
        for (const std::int64_t stride : {1, 2})
            for (const std::int64_t dilation : {1, 2}) {
                check<float>(image(channels, stride, dilation));
                check<double>(image(channels, stride, dilation));
            }
}

TEST_CASE("dot products of rows with a vector have the same bits for vectors of every width") {
    for (const std::int64_t rows : {1, 2, 3, 7, 8, 13, 37})
        for (const std::int64_t k : {1, 5, 15, 16, 17, 31, 33, 64, 129}) {
            check_vector<float>(rows, k);
            check_vector<double>(rows, k);
        }
}

} // namespace order_of_sums_test
