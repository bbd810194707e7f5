#include <cuda/device_array.hpp>

#include <cuda/convolution_operations.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace convolution_test {

/// The convolution operations on an imitated device, called as graphs and tapes call them.

using namespace convolution_testing;

namespace {

template <class T>
std::vector<T> random_numbers(std::int64_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> law;
    std::vector<T> v(static_cast<std::size_t>(count));
    for (T& x : v) x = static_cast<T>(law(generator));
    return v;
}

template <class T>
double distance(const std::vector<T>& got, const std::vector<double>& want) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double d = static_cast<double>(got[i]) - want[i];
        apart += d * d, size += want[i] * want[i];
    }
    return std::sqrt(apart / size);
}

} // namespace

TEST_CASE("convolution on a device: all operations are exact at awkward sizes") {
    for (const auto& g : geometries) in_orders([&] { check_operations<float>(g); });
    for (const auto& g : geometries) check_operations<double>(g);
}

TEST_CASE("convolution on a device: 150 and 300 channels, in every mode") {
    const auto g = geometry(1, 4, 4, 150, 2, 3, 300, 1, 1, 1, 1, 0, 1);
    for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32, tg::math_mode::tf32x3}) {
        const with_mode set(mode);
        check_operations<float>(g);
    }
}

TEST_CASE("convolution on a device: batch innermost") {
    for (const auto& g :
         {geometry(9, 4, 5, 6, 3, 3, 10, 1, 1, 1, 1, 1, 1), geometry(8, 7, 5, 5, 4, 3, 6, 2, 2, 1, 1, 1, 0)}) {
        CHECK(cuda::choose_convolution(g, cuda::convolution_pass::input_gradient, 4, tg::math_mode::fp32, {})
                  .batch_innermost);
        for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
            const with_mode set(mode);
            in_orders([&] { check_operations<float>(g); });
        }
    }
}

// Large problems choose among more tiles than small ones do: each of these is tested by a given
// plan.
template <cuda::convolution_pass Pass>
void check_every_tile(const tg::convolution_geometry& g, const std::vector<float>& a, const std::vector<float>& b,
                      const std::vector<float>& want) {
    const device_array<float> at[]{a, b};
    int kernels = 0;
    const auto check = [&](cuda::convolution_algorithm algorithm, std::span<const cuda::product_tile> tiles,
                           bool exact) {
        for (int tile = 0; tile < static_cast<int>(tiles.size()); ++tile)
            for (int vector : {1, 2, 4}) {
                const cuda::product_tile& t = tiles[static_cast<std::size_t>(tile)];
                if (vector < t.vector || (exact && !t.exact)) continue;
                cuda::convolution_plan plan;
                plan.algorithm = algorithm, plan.tile = tile, plan.vector = vector, plan.exact = exact;
                const device_array<float> out(static_cast<std::int64_t>(want.size()));
                cuda::detail::convolution_run<float, Pass>::run_product(
                    tg::kernel_call(), "convolution", g, {at[0].data(), at[1].data(), out.data()}, plan, out.data());
                CAPTURE(tile);
                CAPTURE(vector);
                CHECK(out.host() == want);
                ++kernels;
            }
    };
    check(cuda::convolution_algorithm::multiply_adds, cuda::multiply_add_tiles, false);
    check(cuda::convolution_algorithm::tensor_cores, cuda::tensor_tiles, false);
    check(cuda::convolution_algorithm::tensor_cores, cuda::tensor_tiles, true);
    CHECK(kernels == 6 + 8 + 3);
}

TEST_CASE("convolution on a device: every tile that a plan may name") {
    const auto g = geometry(1, 6, 7, 12, 3, 2, 20, 1, 1, 1, 0, 1, 1);
    const expected<float> e(g);
    check_every_tile<cuda::convolution_pass::forward>(g, e.x, e.w, e.y);
    check_every_tile<cuda::convolution_pass::input_gradient>(g, e.dy, e.w, e.dx);
    check_every_tile<cuda::convolution_pass::filter_gradient>(g, e.x, e.dy, e.dw);
}

TEST_CASE("convolution on a device: narrow groups") {
    for (const auto& g : {geometry(2, 7, 6, 37, 3, 3, 37, 1, 1, 1, 1, 1, 1, 1, 1, 37),
                          geometry(2, 9, 8, 10, 3, 2, 30, 2, 3, 1, 0, 1, 1, 2, 1, 10),
                          geometry(1, 1, 41, 12, 1, 5, 8, 1, 2, 0, 4, 0, 0, 1, 1, 4)}) {
        CHECK(cuda::choose_convolution(g, cuda::convolution_pass::forward, 4, tg::math_mode::tf32, {}).algorithm ==
              cuda::convolution_algorithm::direct);
        in_orders([&] { check_operations<float>(g); });
        check_operations<double>(g);
    }
}

TEST_CASE("convolution on a device: nothing to compute, and nothing to add") {
    for (auto [batch, height, in, out] : {std::array{0, 5, 3, 4}, {2, 5, 0, 4}, {2, 5, 3, 0}, {2, 0, 3, 4}}) {
        auto g = geometry(batch, height, 5, in, 3, 3, out, 1, 1, 1, 1, 1, 1);
        if (height == 0) g.out_height = 0;
        check_operations<float>(g);
    }
}

TEST_CASE("convolution on a device: the CPU's meaning of NaN") {
    const auto g = geometry(2, 7, 6, 5, 3, 3, 9, 2, 2, 0, 0, 1, 0);
    const sizes n(g);
    auto x = whole_numbers<float>(n.x, 1);
    const auto w = whole_numbers<float>(n.w, 2), bias = whole_numbers<float>(g.out_channels, 3);
    x[17] = NAN;
    const convolution_call<tg::convolution_bias_op<true>, float> call(g, {x, w, bias});
    const auto want = call.on_cpu();
    const auto got = call.on_device();
    int nans = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        nans += std::isnan(want[i]);
        CHECK((std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]));
    }
    CHECK(nans > 0);
}

// Addresses need not be aligned for vectors: an operand may be a part of a buffer.
TEST_CASE("convolution on a device: unaligned operands") {
    const auto g = geometry(2, 5, 6, 8, 3, 3, 12, 1, 1, 1, 1, 1, 1);
    const expected<float> e(g);
    const auto after_one_zero = [](std::vector<float> v) {
        v.insert(v.begin(), 0.0f);
        return v;
    };
    const device_array<float> x(after_one_zero(e.x)), w(after_one_zero(e.w));
    using pass = cuda::detail::convolution_run<float, cuda::convolution_pass::forward>;
    const std::int64_t planned = cuda::known_convolution_plans::instance().made();
    for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
        const with_mode set(mode);
        const device_array<float> y(static_cast<std::int64_t>(e.y.size()) + 1);
        const device_array<unsigned char> scratch(static_cast<std::int64_t>(pass::workspace(g)));
        const tg::buffer_view out = view(y.data() + 1, {static_cast<std::int64_t>(e.y.size())});
        tg::kernel_call call;
        call.out = &out, call.workspace = scratch.data();
        pass::run(call, "convolution", g, {x.data() + 1, w.data() + 1, y.data() + 1});
        const auto got = y.host();
        CHECK(std::vector<float>(got.begin() + 1, got.end()) == e.y);
    }
    CHECK(cuda::known_convolution_plans::instance().made() == planned + 1); // once for scratch memory, runs and modes
}

// fp32: a sum of 2,000 products rounds by some 1e-6 of its size. tf32 rounds every operand by up to 2^-11.
TEST_CASE("convolution on a device: accuracy of the modes, and the same bits twice") {
    const auto g = geometry(2, 7, 7, 40, 3, 3, 52, 1, 1, 1, 1, 1, 1);
    const sizes n(g);
    const auto x = random_numbers<float>(n.x, 1), w = random_numbers<float>(n.w, 2), dy = random_numbers<float>(n.y, 3);
    std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
    for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
        const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j), c = static_cast<std::size_t>(k);
        y[c] += double{x[a]} * w[b], dx[a] += double{dy[c]} * w[b], dw[b] += double{dy[c]} * x[a];
    });
    const auto check = [&](double most, double least) {
        const convolution_call<tg::convolution_op, float> forward(g, {x, w});
        const convolution_call<tg::convolution_input_gradient_op, float> input(g, {dy, w});
        const convolution_call<tg::convolution_filter_gradient_op, float> filter(g, {x, dy});
        const auto once = [&](auto& call, const std::vector<double>& want) {
            const std::vector<float> got = call.on_device();
            CHECK(distance(got, want) < most);
            CHECK(distance(got, want) > least);
            in_orders([&] { CHECK(call.on_device() == got); });
        };
        once(forward, y), once(input, dx), once(filter, dw);
    };
    check(1e-6, 0);
    {
        const with_mode set(tg::math_mode::tf32);
        check(1e-3, 1e-5);
    }
    const with_mode set(tg::math_mode::tf32x3);
    check(3e-6, 0);
}

#ifndef TG_SIMT
// The layers of a network of 3 -> 150 -> 300 -> 200 channels, too large for the executor: the plans
// chosen for them against library products over written-out windows. Integers again: every sum
// stays below 2^24; direct sums, because Winograd's are not exact.
TEST_CASE("convolution on a device: large layers agree with products of a library") {
    for (int batch : {1, 33, 128})
        for (auto g :
             {geometry(batch, 50, 50, 3, 3, 3, 150), geometry(batch, 24, 24, 150, 5, 5, 300),
              geometry(batch, 10, 10, 300, 3, 3, 200), geometry(batch, 12, 12, 64, 3, 3, 128, 2, 2, 1, 1, 1, 1)}) {
            g.algorithm = tg::convolution_algorithm::direct;
            const sizes n(g);
            const auto x = whole_numbers<float>(n.x, 1, 1), w = whole_numbers<float>(n.w, 2, 1);
            const auto dy = whole_numbers<float>(n.y, 3, 1), bias = whole_numbers<float>(g.out_channels, 4, 9);
            const device_array<float> at[]{x, w, dy, bias}, y(n.y), dx(n.x), dw(n.w);
            const device_array<unsigned char> scratch(static_cast<std::int64_t>(
                cuda::detail::chunk_bytes(g, sizeof(float), cuda::convolution_workspace_limit)));
            const auto multiply = [](const cuda::gemm_arguments<float>& a) {
                cuda::gemm(nullptr, "convolution", a, tg::math_mode::fp32);
            };
            const tg::kernel_call call;
            const cuda::convolution_by_product<float, decltype(multiply)> product(
                call, "convolution", g, scratch.data(), cuda::convolution_workspace_limit, multiply);
            product.forward(at[0].data(), at[1].data(), at[3].data(), true, y.data());
            product.input_gradient(at[2].data(), at[1].data(), dx.data());
            product.filter_gradient(at[0].data(), at[2].data(), dw.data());
            for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32, tg::math_mode::tf32x3}) {
                CAPTURE(static_cast<int>(mode));
                const with_mode set(mode);
                CHECK((result<tg::convolution_bias_op<true>, float>(g, {x, w, bias}) == y.host()));
                CHECK((result<tg::convolution_input_gradient_op, float>(g, {dy, w}) == dx.host()));
                CHECK((result<tg::convolution_filter_gradient_op, float>(g, {x, dy}) == dw.host()));
            }
        }
}
#endif

} // namespace convolution_test
