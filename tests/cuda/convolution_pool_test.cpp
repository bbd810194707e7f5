#include <cuda/convolution_calls.hpp>

#include <tapegraph/cuda/ops/convolution/storage.cuh>
#include <tapegraph/cuda/ops/pooling/of_convolution.cuh>
#include <tapegraph/cuda/ops/pooling/pooling.cuh>
#include <tapegraph/ops/pooling/kernel_of_convolution.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <span>

namespace convolution_pool_test {

/// Convolutions that are pooled within their kernel, on a device: integers against the CPU's
/// kernel, and numbers whose sums round against the device's two kernels in sequence, bit for bit;
/// and epilogues of 16-bit elements.

namespace {

namespace tg = tapegraph;
namespace cuda = tapegraph::cuda;
namespace kernels = tapegraph::cuda::kernels;
using convolution_testing::geometry;
using tg::convolution_geometry;
using namespace tapegraph::testing;

template <class T, bool Relu = true>
void check_against_cpu(const convolution_geometry& g) {
    CAPTURE(g.out_height);
    CAPTURE(g.out_width);
    CAPTURE(g.out_channels);
    check_same<tg::convolution_bias_pool_op<Relu>, T>(
        attributes_of(g), {whole<T>(image(g), 1), whole<T>(filter(g), 2), whole<T>({g.out_channels}, 3)},
        {shaped<T>(pooled(g))});
}

template <class T, bool Relu = true>
void check_against_parts(const convolution_geometry& g) {
    CAPTURE(g.in_channels);
    CAPTURE(g.out_channels);
    const std::vector<argument> in{uneven<T>(image(g), 1), uneven<T>(filter(g), 2), uneven<T>({g.out_channels}, 3)};
    const tg::window_attributes a = attributes_of(g);
    tg::window_attributes halves;
    for (int i = 0; i < 2; ++i) halves.window[i] = halves.stride[i] = 2;
    argument y = shaped<T>(convolved(g));
    const outcome first = run_on_device<tg::convolution_bias_op<Relu>, T>(a, in, {y});
    y.values = first.out[0];
    const outcome want = run_on_device<tg::max_pool_op, T>(halves, {y}, {shaped<T>(pooled(g))});
    on_device::in_orders([&] {
        const outcome got = run_on_device<tg::convolution_bias_pool_op<Relu>, T>(a, in, {shaped<T>(pooled(g))});
        CHECK(got.error.empty());
        CHECK(got.out == want.out);
    });
}

class with_mode {
public:
    explicit with_mode(tg::math_mode mode) { tg::set_math_mode(mode); }
    with_mode(const with_mode&) = delete;
    ~with_mode() { tg::set_math_mode(tg::math_mode::fp32); }
};

// One window, odd and even extents, strides, dilations, padding, groups of both kinds, channels
// that are no multiple of the tiles, a batch whose images are innermost.
const convolution_geometry shapes[]{
    geometry(1, 2, 2, 2, 1, 1, 1),
    geometry(2, 7, 6, 6, 3, 2, 7),
    geometry(1, 9, 11, 8, 3, 3, 20, 2, 1, 1, 1, 1, 1),
    geometry(3, 6, 9, 5, 2, 3, 33, 1, 2, 0, 1, 1, 1, 2, 1),
    geometry(9, 5, 6, 6, 3, 3, 12, 1, 1, 1, 1, 1, 1),
    geometry(2, 6, 7, 18, 3, 3, 20, 1, 1, 1, 1, 1, 1, 1, 1, 2),
    geometry(2, 7, 6, 10, 3, 3, 30, 1, 1, 1, 1, 1, 1, 1, 1, 10),
    geometry(1, 8, 5, 6, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1, 1, 6),
};

// Few channels: several tiles across and down, images narrower than a tile, blocks of channels, strides and dilations.
const convolution_geometry first_layers[]{
    geometry(2, 17, 21, 3, 3, 3, 150, 1, 1, 1, 1, 1, 1),       geometry(1, 20, 35, 1, 5, 5, 33),
    geometry(1, 23, 19, 3, 7, 7, 70, 2, 2, 3, 3, 3, 3),        geometry(3, 4, 5, 4, 3, 2, 9, 1, 2, 2, 0, 1, 1, 1, 1),
    geometry(1, 13, 12, 3, 3, 3, 161, 2, 3, 1, 2, 0, 1, 2, 3),
};

} // namespace

TEST_CASE("pooled convolution on a device: exact at awkward sizes") {
    for (const auto& g : shapes) {
        check_against_cpu<float>(g);
        check_against_cpu<double>(g);
        check_against_cpu<float, false>(g);
        const with_mode set(tg::math_mode::tf32);
        check_against_cpu<float>(g);
    }
    check_against_cpu<float>(geometry(0, 6, 6, 5, 3, 3, 4));
    check_against_cpu<float>(geometry(2, 6, 6, 0, 3, 3, 4)); // a bias alone
    check_against_cpu<float>(geometry(2, 6, 6, 5, 3, 3, 0));
}

TEST_CASE("pooled convolution on a device: few channels") {
    for (const auto& g : first_layers) check_against_cpu<float>(g);
    for (const auto& g : {first_layers[1], first_layers[3]}) check_against_cpu<double, false>(g);
}

TEST_CASE("pooled convolution on a device: the bits of convolution and pooling in turn") {
    for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32, tg::math_mode::tf32x3}) {
        const with_mode set(mode);
        for (const auto& g : shapes) check_against_parts<float>(g);
        check_against_parts<float, false>(shapes[2]);
    }
    for (const auto& g : first_layers) check_against_parts<float>(g);
    check_against_parts<double>(shapes[3]);
}

TEST_CASE("pooled convolution on a device: by Winograd's algorithm") {
#ifdef TG_SIMT // a device of four multiprocessors
    const auto g = geometry(2, 17, 18, 50, 5, 5, 98, 1, 1, 0, 0, 2, 0);
#else
    const auto g = geometry(40, 49, 50, 50, 5, 5, 98, 1, 1, 0, 0, 2, 0);
#endif
    using forward = cuda::detail::convolution_run<float, cuda::convolution_pass::forward>;
    CHECK(forward::plans(g)[tg::math_mode::fp32].algorithm == cuda::convolution_algorithm::winograd);
    check_against_parts<float>(g);
}

// A sum in several parts, because it is split or long, is finished and pooled by a kernel of its
// own.
TEST_CASE("pooled convolution on a device: sums in parts") {
    const auto split = geometry(1, 4, 5, 64, 3, 3, 8, 1, 1, 1, 1, 1, 1), longer = geometry(1, 6, 5, 460, 3, 3, 4);
    using forward = cuda::detail::convolution_run<float, cuda::convolution_pass::forward>;
    CHECK(forward::plans(split)[tg::math_mode::fp32].splits > 1);
    CHECK(longer.kernel_height * longer.kernel_width * longer.in_channels > kernels::longest_chain);
    for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
        const with_mode set(mode);
        for (const auto& g : {split, longer}) {
            check_against_cpu<float>(g);
            check_against_parts<float>(g);
        }
    }
}

TEST_CASE("pooled convolution on a device: NaN stays, and reaches its windows only") {
    const auto g = geometry(2, 7, 6, 5, 3, 3, 9, 1, 1, 1, 1, 1, 1);
    argument x = whole<float>(image(g), 1);
    const float nan = NAN;
    std::memcpy(x.values.data() + 17 * sizeof(float), &nan, sizeof nan);
    const std::vector<argument> in{x, whole<float>(filter(g), 2), whole<float>({g.out_channels}, 3)};
    for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
        const with_mode set(mode);
        using op = tg::convolution_bias_pool_op<true>;
        const auto want = run_on_cpu<op, float>(attributes_of(g), in, {shaped<float>(pooled(g))}).values<float>();
        const auto got = run_on_device<op, float>(attributes_of(g), in, {shaped<float>(pooled(g))}).values<float>();
        int nans = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
            nans += std::isnan(want[i]);
            CHECK((std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]));
        }
        CHECK(nans > 0);
        CHECK(nans < static_cast<int>(want.size()));
    }
}

// Small problems are split, and large ones choose among more tiles: each of these is tested by a
// given plan.
namespace {

class pooled_convolution {
public:
    explicit pooled_convolution(const convolution_geometry& whole) : g_(even(whole)), e_(g_), at_{e_.x, e_.w, e_.bias} {
        const std::int64_t across = g_.out_width / 2, count = g_.batch * g_.out_height / 2 * across * g_.out_channels;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t channel = i % g_.out_channels, column = i / g_.out_channels % across * 2,
                               row = i / g_.out_channels / across * 2; // over all images
            float most = 0;
            for (std::int64_t q = 0; q < 4; ++q)
                most =
                    std::max(most, e_.activated[static_cast<std::size_t>(
                                       ((row + q / 2) * g_.out_width + column + q % 2) * g_.out_channels + channel)]);
            want_.push_back(most);
        }
    }
    void check(const cuda::convolution_plan& plan) const {
        const on_device::device_array<float> out(static_cast<std::int64_t>(want_.size()));
        using pass = cuda::detail::convolution_run<float, cuda::convolution_pass::forward>;
        pass::run_product<kernels::pooled_forward_problem<float>>(
            tg::kernel_call(), "pooled", g_, {at_[0].data(), at_[1].data(), out.data(), at_[2].data(), true}, plan,
            out.data());
        CAPTURE(plan.tile);
        CAPTURE(plan.vector);
        CAPTURE(plan.batch_innermost);
        CHECK(out.host() == want_);
    }

private:
    static convolution_geometry even(convolution_geometry g) {
        g.out_height -= g.out_height % 2, g.out_width -= g.out_width % 2;
        return g;
    }
    convolution_geometry g_;
    convolution_testing::expected<float> e_;
    on_device::device_array<float> at_[3];
    std::vector<float> want_;
};

} // namespace

TEST_CASE("pooled convolution on a device: both orders of pixels, on both kinds of cores") {
    for (const auto& g : shapes) {
        const pooled_convolution problem(g);
        cuda::convolution_plan plan;
        for (plan.batch_innermost = false;; plan.batch_innermost = true) {
            for (auto algorithm :
                 {cuda::convolution_algorithm::multiply_adds, cuda::convolution_algorithm::tensor_cores}) {
                plan.algorithm = algorithm;
                on_device::in_orders([&] { problem.check(plan); });
            }
            if (plan.batch_innermost) break;
        }
    }
    for (const auto& g : first_layers)
        CHECK(cuda::detail::few_channels_tiling(g, cuda::convolution_pass::forward, 4, true).valid);
}

TEST_CASE("pooled convolution on a device: every tile that a plan may name") {
    const pooled_convolution problem(geometry(1, 6, 7, 12, 3, 2, 20, 1, 1, 1, 0, 1, 1));
    const auto check = [&](cuda::convolution_algorithm algorithm, std::span<const cuda::product_tile> tiles,
                           bool exact) {
        int kernels_run = 0;
        for (int tile = 0; tile < static_cast<int>(tiles.size()); ++tile)
            for (int vector : {1, 2, 4}) {
                const cuda::product_tile& t = tiles[static_cast<std::size_t>(tile)];
                if (vector < t.vector || (exact && !t.exact)) continue;
                cuda::convolution_plan plan;
                plan.algorithm = algorithm, plan.tile = tile, plan.vector = vector, plan.exact = exact;
                problem.check(plan);
                ++kernels_run;
            }
        return kernels_run;
    };
    CHECK(check(cuda::convolution_algorithm::multiply_adds, cuda::multiply_add_tiles, false) == 6);
    CHECK(check(cuda::convolution_algorithm::tensor_cores, cuda::tensor_tiles, false) == 8);
    CHECK(check(cuda::convolution_algorithm::tensor_cores, cuda::tensor_tiles, true) == 3);
}

#if defined(TG_SIMT) && !defined(SIMT_TSAN)
TEST_CASE("pooled convolution on a device: no barrier is there for nothing") {
    for (const auto& g : {first_layers[0], geometry(1, 9, 9, 24, 3, 3, 20)}) {
        const std::vector<argument> in{whole<float>(image(g), 1), whole<float>(filter(g), 2),
                                       whole<float>({g.out_channels}, 3)};
        using op = tg::convolution_bias_pool_op<true>;
        const auto want = run_on_cpu<op, float>(attributes_of(g), in, {shaped<float>(pooled(g))});
        std::size_t found = 0;
        const auto unnoticed = simt::unnoticed_barriers(
            [&] { return run_on_device<op, float>(attributes_of(g), in, {shaped<float>(pooled(g))}).out == want.out; },
            found);
        CHECK(unnoticed == std::vector<std::string>{});
        CHECK(found > 0);
    }
}
#endif

TEST_CASE_TEMPLATE("convolution, bias and relu of 16-bit elements on a device: the CPU's bits", T, tg::bfloat16,
                   tg::half) {
    for (const auto& g : {shapes[1], shapes[4], shapes[6], first_layers[3], geometry(0, 6, 6, 5, 3, 3, 4),
                          geometry(2, 6, 6, 5, 3, 3, 0), geometry(1, 40, 40, 4, 1, 1, 3)}) {
        // Sums that are exact in float, and round in 16 bits; so do the results computed from them.
        const std::vector<argument> in{
            filled<T>(image(g), [](std::int64_t i) { return static_cast<int>(scattered(i, 41, 1)) - 20; }),
            filled<T>(filter(g), [](std::int64_t i) { return static_cast<int>(scattered(i, 41, 2)) - 20; }),
            filled<T>({g.out_channels},
                      [](std::int64_t i) { return static_cast<int>(scattered(i, 99, 3)) * 0.375 - 17; })};
        check_same<tg::convolution_bias_op<false>, T>(attributes_of(g), in, {shaped<T>(convolved(g))});
        check_same<tg::convolution_bias_op<true>, T>(attributes_of(g), in, {shaped<T>(convolved(g))});
    }
}

TEST_CASE_TEMPLATE("convolutions of 16-bit elements on tensor cores: the CPU's bits", T, tg::bfloat16, tg::half) {
    using tg::cuda::convolution_pass;
    const auto on_cores = []<convolution_pass Pass>(const tg::convolution_geometry& g) {
        return tg::cuda::detail::narrow_convolution<T, Pass>(g).on_cores;
    };
    for (const auto& g : {geometry(2, 7, 6, 6, 3, 3, 10), geometry(3, 5, 5, 16, 3, 3, 40, 2, 1, 1, 1, 1, 1),
                          geometry(1, 4, 4, 16, 3, 3, 16, 1, 1, 1, 1, 1, 1, 1, 1, 2), geometry(9, 3, 3, 8, 3, 3, 8),
                          geometry(2, 5, 4, 7, 2, 2, 5)}) {
        const bool even = g.in_channels % 2 == 0;
        CHECK(on_cores.template operator()<convolution_pass::forward>(g) == even);
        CHECK(on_cores.template operator()<convolution_pass::input_gradient>(g) == even);
        CHECK(on_cores.template operator()<convolution_pass::filter_gradient>(g) == even);
        const auto numbers = [](const extents& e, unsigned seed) {
            return filled<T>(e, [=](std::int64_t i) { return static_cast<int>(scattered(i, 41, seed)) - 20; });
        };
        const auto x = numbers(image(g), 1), w = numbers(filter(g), 2), dy = numbers(convolved(g), 3);
        check_same<tg::convolution_op, T>(attributes_of(g), {x, w}, {shaped<T>(convolved(g))});
        check_same<tg::convolution_input_gradient_op, T>(attributes_of(g), {dy, w}, {shaped<T>(image(g))});
        check_same<tg::convolution_filter_gradient_op, T>(attributes_of(g), {x, dy}, {shaped<T>(filter(g))});
        if (g.in_channels == 6) {
            const auto bias = numbers({g.out_channels}, 4);
            check_same<tg::convolution_bias_op<true>, T>(attributes_of(g), {x, w, bias}, {shaped<T>(convolved(g))});
        }
    }
}

TEST_CASE_TEMPLATE(
    "convolutions of 16-bit elements whose outputs see one pixel: the library's products, the CPU's bits", T,
    tg::bfloat16, tg::half) {
    for (const auto& g :
         {geometry(3, 5, 4, 6, 1, 1, 10), geometry(1, 7, 3, 7, 1, 1, 5), geometry(2, 1, 1, 16, 1, 1, 1)}) {
        const auto numbers = [](const extents& e, unsigned seed) {
            return filled<T>(e, [=](std::int64_t i) { return static_cast<int>(scattered(i, 41, seed)) - 20; });
        };
        const auto x = numbers(image(g), 1), w = numbers(filter(g), 2), dy = numbers(convolved(g), 3),
                   bias = numbers({g.out_channels}, 4);
#ifdef TG_SIMT
        const int before = tg::cuda::blas::imitation::instance().run;
#endif
        check_same<tg::convolution_op, T>(attributes_of(g), {x, w}, {shaped<T>(convolved(g))});
        check_same<tg::convolution_input_gradient_op, T>(attributes_of(g), {dy, w}, {shaped<T>(image(g))});
        check_same<tg::convolution_filter_gradient_op, T>(attributes_of(g), {x, dy}, {shaped<T>(filter(g))});
        check_same<tg::convolution_bias_op<false>, T>(attributes_of(g), {x, w, bias}, {shaped<T>(convolved(g))});
        check_same<tg::convolution_bias_op<true>, T>(attributes_of(g), {x, w, bias}, {shaped<T>(convolved(g))});
#ifdef TG_SIMT
        CHECK(tg::cuda::blas::imitation::instance().run >= before + 5);
#endif
    }
}

} // namespace convolution_pool_test
