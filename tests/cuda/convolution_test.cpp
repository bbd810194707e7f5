#define TG_SIMT
#include <simt/instructions.hpp>
#include <simt/mutation.hpp>

#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/tensor_gemm.cuh>

#include <doctest/doctest.h>

#include <vector>

/// The convolution kernels on the SIMT executor against sums written out. Inputs are small whole numbers, so that every
/// sum is exact in float and the comparison is equality: an indexing mistake cannot hide behind a tolerance.

namespace tg = tapegraph;
namespace kernels = tapegraph::cuda::kernels;

namespace {

tg::convolution_geometry geometry(int batch, int height, int width, int in, int kh, int kw, int out, int stride_h = 1,
                                  int stride_w = 1, int top = 0, int left = 0, int bottom = 0, int right = 0,
                                  int dilation_h = 1, int dilation_w = 1, int groups = 1) {
    tg::convolution_geometry g{};
    g.batch = batch, g.in_height = height, g.in_width = width, g.in_channels = in;
    g.kernel_height = kh, g.kernel_width = kw, g.out_channels = out;
    g.stride_height = stride_h, g.stride_width = stride_w, g.pad_top = top, g.pad_left = left;
    g.dilation_height = dilation_h, g.dilation_width = dilation_w, g.groups = groups;
    g.out_height = (height + top + bottom - g.span_height()) / stride_h + 1;
    g.out_width = (width + left + right - g.span_width()) / stride_w + 1;
    return g;
}

// What the CUTLASS tests call awkward: one pixel, filters larger than the image, even filters, padding beyond the
// stride, mixed strides and dilations, channels below and beside the tile, groups, 1-D.
const tg::convolution_geometry geometries[]{
    geometry(1, 1, 1, 1, 1, 1, 1),
    geometry(2, 6, 5, 3, 3, 3, 7),
    geometry(1, 3, 3, 2, 5, 5, 4, 1, 1, 2, 2, 2, 2),
    geometry(2, 7, 6, 5, 2, 3, 9, 1, 2, 1, 0, 0, 1),
    geometry(1, 9, 11, 3, 3, 3, 5, 3, 2, 1, 2, 2, 1),
    geometry(1, 11, 9, 4, 3, 2, 6, 2, 3, 2, 1, 2, 1, 2, 3),
    geometry(2, 5, 5, 6, 3, 3, 9, 1, 1, 1, 1, 1, 1, 1, 1, 3),
    geometry(3, 4, 4, 6, 3, 3, 6, 2, 2, 1, 1, 1, 1, 1, 1, 6),
    geometry(2, 1, 37, 5, 1, 8, 33, 1, 4, 0, 2, 0, 2),
    geometry(1, 6, 6, 33, 1, 1, 65),
    geometry(1, 8, 8, 17, 3, 3, 35, 1, 1, 1, 1, 1, 1),
};

template <class T>
std::vector<T> whole_numbers(std::int64_t count, unsigned seed, int most = 3) {
    std::vector<T> v(static_cast<std::size_t>(count));
    for (T& x : v) {
        seed = seed * 1664525u + 1013904223u;
        x = static_cast<T>(static_cast<int>(seed >> 16) % (2 * most + 1) - most);
    }
    return v;
}
template <class T>
std::vector<T> poisoned(std::int64_t count) {
    return std::vector<T>(static_cast<std::size_t>(count), static_cast<T>(NAN));
}

/// Calls f(x index, w index, y index) for every product of the convolution.
template <class F>
void for_each_product(const tg::convolution_geometry& g, const F& f) {
    for (std::int64_t b = 0; b < g.batch; ++b)
        for (std::int64_t i = 0; i < g.out_height; ++i)
            for (std::int64_t j = 0; j < g.out_width; ++j)
                for (std::int64_t o = 0; o < g.out_channels; ++o)
                    for (std::int64_t u = 0; u < g.kernel_height; ++u)
                        for (std::int64_t v = 0; v < g.kernel_width; ++v)
                            for (std::int64_t c = 0; c < g.group_in(); ++c) {
                                const std::int64_t row = i * g.stride_height - g.pad_top + u * g.dilation_height;
                                const std::int64_t column = j * g.stride_width - g.pad_left + v * g.dilation_width;
                                if (row < 0 || row >= g.in_height || column < 0 || column >= g.in_width) continue;
                                const std::int64_t channel = o / g.group_out() * g.group_in() + c;
                                f(((b * g.in_height + row) * g.in_width + column) * g.in_channels + channel,
                                  ((u * g.kernel_width + v) * g.group_in() + c) * g.out_channels + o,
                                  ((b * g.out_height + i) * g.out_width + j) * g.out_channels + o);
                            }
}

struct sizes {
    std::int64_t x, w, y;
    explicit sizes(const tg::convolution_geometry& g)
        : x(g.batch * g.in_height * g.in_width * g.in_channels),
          w(g.kernel_height * g.kernel_width * g.group_in() * g.out_channels),
          y(g.batch * g.out_height * g.out_width * g.out_channels) {}
};

using small_tile = kernels::tile_shape<32, 32, 8, 4, 4>;
using large_tile = kernels::tile_shape<64, 64, 16, 4, 8>;

template <class Tile, class Problem>
void run(const Problem& p) {
    const auto tiles = [](int extent, int tile) { return static_cast<unsigned>((extent + tile - 1) / tile); };
    simt::launch(
        {{tiles(p.m, Tile::BM), tiles(p.n, Tile::BN), static_cast<unsigned>(p.groups * p.splits)}, Tile::threads},
        kernels::implicit_gemm<Problem, Tile>, p);
}

/// Runs a problem on "tensor cores".
using warps_tile = kernels::tensor_tile<32, 48, 16, 2, 2, 3>;
template <kernels::tensor_precision Precision, int VA, int VB, class Problem>
void run_tensor(const Problem& p) {
    using tile = warps_tile;
    const auto tiles = [](int extent, int size) { return static_cast<unsigned>((extent + size - 1) / size); };
    simt::launch({{tiles(p.m, tile::BM), tiles(p.n, tile::BN), static_cast<unsigned>(p.groups * p.splits)},
                  tile::threads,
                  kernels::tensor_gemm_shared_bytes<Problem, tile, VA, VB>},
                 kernels::tensor_gemm<Problem, tile, VA, VB, Precision>, p);
}

template <class Tile, class T>
void check_passes(const tg::convolution_geometry& g) {
    const sizes n(g);
    const auto x = whole_numbers<T>(n.x, 1), w = whole_numbers<T>(n.w, 2), dy = whole_numbers<T>(n.y, 3);
    const auto bias = whole_numbers<T>(g.out_channels, 4);
    std::vector<T> y(static_cast<std::size_t>(n.y)), dx(x.size()), dw(w.size());
    for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
        const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j), c = static_cast<std::size_t>(k);
        y[c] += x[a] * w[b], dx[a] += dy[c] * w[b], dw[b] += dy[c] * x[a];
    });

    auto got = poisoned<T>(n.y);
    run<Tile>(kernels::forward_problem<T>(g, x.data(), w.data(), nullptr, false, got.data()));
    CHECK(got == y);
    got = poisoned<T>(n.y);
    run<Tile>(kernels::forward_problem<T>(g, x.data(), w.data(), bias.data(), true, got.data()));
    for (std::size_t i = 0; i < y.size(); ++i)
        y[i] = std::max(T(0), y[i] + bias[i % static_cast<std::size_t>(g.out_channels)]);
    CHECK(got == y);

    got = poisoned<T>(n.x);
    run<Tile>(kernels::input_gradient_problem<T>(g, dy.data(), w.data(), got.data()));
    CHECK(got == dx);

    for (int splits : {1, 3, 50}) { // more splits than steps: some have nothing to add and must write zeros
        auto partial = poisoned<T>(n.w * splits);
        got = poisoned<T>(n.w);
        run<Tile>(kernels::filter_gradient_problem<T>(g, x.data(), dy.data(), partial.data(), splits));
        simt::launch({2, 64}, kernels::sum_splits<T>, partial.data(), got.data(), n.w, splits);
        CHECK(got == dw);
    }
}

template <class F>
void in_orders(const F& f) {
    for (simt::order o : {simt::order::forward, simt::order::greedy}) {
        const simt::with_settings set(o);
        f();
    }
}

} // namespace

TEST_CASE("convolution kernels: all passes are exact at awkward sizes") {
    for (const auto& g : geometries) in_orders([&] { check_passes<small_tile, float>(g); });
}

TEST_CASE("convolution kernels: double, and a larger tile") {
    for (const auto& g : {geometries[1], geometries[5], geometries[6], geometries[10]})
        in_orders([&] { check_passes<large_tile, double>(g); });
}

// Whole numbers up to 3 are exact in TF32, and so are the sums.
template <kernels::tensor_precision Precision, int V>
void check_tensor_passes(const tg::convolution_geometry& g) {
    using T = float;
    const sizes n(g);
    const auto x = whole_numbers<T>(n.x, 1), w = whole_numbers<T>(n.w, 2), dy = whole_numbers<T>(n.y, 3);
    std::vector<T> y(static_cast<std::size_t>(n.y)), dx(x.size()), dw(w.size());
    for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
        const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j), c = static_cast<std::size_t>(k);
        y[c] += x[a] * w[b], dx[a] += dy[c] * w[b], dw[b] += dy[c] * x[a];
    });
    auto got = poisoned<T>(n.y);
    run_tensor<Precision, V, V>(kernels::forward_problem<T>(g, x.data(), w.data(), nullptr, false, got.data()));
    CHECK(got == y);
    got = poisoned<T>(n.x);
    run_tensor<Precision, V, V>(kernels::input_gradient_problem<T>(g, dy.data(), w.data(), got.data()));
    CHECK(got == dx);
    for (int splits : {1, 3}) {
        auto partial = poisoned<T>(n.w * splits);
        got = poisoned<T>(n.w);
        run_tensor<Precision, V, V>(
            kernels::filter_gradient_problem<T>(g, x.data(), dy.data(), partial.data(), splits));
        simt::launch({2, 64}, kernels::sum_splits<T>, partial.data(), got.data(), n.w, splits);
        CHECK(got == dw);
    }
}

TEST_CASE("convolution on tensor cores: all passes are exact for whole numbers") {
    for (const auto& g : geometries) in_orders([&] { check_tensor_passes<kernels::tensor_precision::tf32, 1>(g); });
    for (const auto& g :
         {geometry(2, 6, 5, 6, 3, 3, 10, 1, 1, 1, 1, 1, 1), geometry(1, 5, 7, 4, 2, 3, 12, 2, 1, 0, 1, 1, 1, 1, 2, 2)})
        in_orders([&] { check_tensor_passes<kernels::tensor_precision::tf32, 2>(g); });
    in_orders([&] {
        check_tensor_passes<kernels::tensor_precision::tf32x3, 4>(geometry(2, 6, 5, 8, 3, 3, 52, 1, 1, 1, 1, 1, 1));
    });
}

// Operands that TF32 cannot hold: one rounding costs up to 2^-11 a factor, three products all but a few units of float.
TEST_CASE("convolution on tensor cores: accuracy of the two precisions") {
    const auto g = geometry(1, 8, 8, 16, 3, 3, 24, 1, 1, 1, 1, 1, 1);
    const sizes n(g);
    auto x = whole_numbers<float>(n.x, 1, 1000), w = whole_numbers<float>(n.w, 2, 1000);
    for (float& v : x) v = v / 777 + 1e-4f;
    for (float& v : w) v = v / 333 + 1e-4f;
    std::vector<double> y(static_cast<std::size_t>(n.y));
    for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
        y[static_cast<std::size_t>(k)] +=
            static_cast<double>(x[static_cast<std::size_t>(i)]) * w[static_cast<std::size_t>(j)];
    });
    const auto error = [&](const std::vector<float>& got) {
        double apart = 0, size = 0;
        for (std::size_t i = 0; i < y.size(); ++i) apart += (got[i] - y[i]) * (got[i] - y[i]), size += y[i] * y[i];
        return std::sqrt(apart / size);
    };
    auto got = poisoned<float>(n.y);
    const kernels::forward_problem<float> p(g, x.data(), w.data(), nullptr, false, got.data());
    run_tensor<kernels::tensor_precision::tf32, 4, 4>(p);
    CHECK(error(got) < 1e-3);
    CHECK(error(got) > 1e-5); // it is TF32 that was measured
    run_tensor<kernels::tensor_precision::tf32x3, 4, 4>(p);
    CHECK(error(got) < 2e-6);
}

TEST_CASE("division by multiplication is exact") {
    for (std::uint32_t d : {1u, 2u, 3u, 5u, 7u, 48u, 150u, 641u, 2304u, 65535u, 65536u, 1000003u, 0x7FFFFFFFu}) {
        const kernels::divisor by(d);
        for (std::uint64_t base : {0ull, 1ull * d, 2ull * d, 1000ull * d, 0x7FFFFFFFull / d * d, 0x7FFFFFFFull})
            for (std::int64_t n = static_cast<std::int64_t>(base) - 2; n <= static_cast<std::int64_t>(base) + 2; ++n)
                if (n >= 0 && n <= 0x7FFFFFFF) CHECK(by.quotient(static_cast<std::uint32_t>(n)) == n / d);
    }
}

#ifndef SIMT_TSAN
TEST_CASE("convolution kernels: no barrier is there for nothing") {
    const auto g = geometry(2, 9, 9, 5, 3, 3, 40, 1, 1, 1, 1, 1, 1);
    const sizes n(g);
    const auto x = whole_numbers<float>(n.x, 1), w = whole_numbers<float>(n.w, 2);
    std::vector<float> want(static_cast<std::size_t>(n.y));
    for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
        want[static_cast<std::size_t>(k)] += x[static_cast<std::size_t>(i)] * w[static_cast<std::size_t>(j)];
    });
    std::size_t found = 0;
    const auto unnoticed = simt::unnoticed_barriers(
        [&] {
            auto got = poisoned<float>(n.y);
            run<small_tile>(kernels::forward_problem<float>(g, x.data(), w.data(), nullptr, false, got.data()));
            return got == want;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 2);
}

TEST_CASE("convolution on tensor cores: the barrier is not there for nothing") {
    const auto g = geometry(2, 9, 9, 6, 3, 3, 40, 1, 1, 1, 1, 1, 1);
    const sizes n(g);
    const auto x = whole_numbers<float>(n.x, 1), w = whole_numbers<float>(n.w, 2);
    std::vector<float> want(static_cast<std::size_t>(n.y));
    for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
        want[static_cast<std::size_t>(k)] += x[static_cast<std::size_t>(i)] * w[static_cast<std::size_t>(j)];
    });
    std::size_t found = 0;
    const auto unnoticed = simt::unnoticed_barriers(
        [&] {
            auto got = poisoned<float>(n.y);
            run_tensor<kernels::tensor_precision::tf32, 2, 2>(
                kernels::forward_problem<float>(g, x.data(), w.data(), nullptr, false, got.data()));
            return got == want;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 1);
}
#endif
