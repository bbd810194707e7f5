#include <cuda/device_array.hpp>

#include <cuda/convolution_operations.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace convolution_few_channels_test {

/// Convolutions of few channels, which have kernels of their own.

using namespace convolution_testing;

namespace {

// Several tiles across and down, several blocks of channels and of taps, images narrower than a tile, 1-D.
const tg::convolution_geometry first_layers[]{
    geometry(2, 17, 21, 3, 3, 3, 150, 1, 1, 1, 1, 1, 1),       geometry(1, 20, 35, 1, 5, 5, 33),
    geometry(1, 23, 19, 3, 7, 7, 70, 2, 2, 3, 3, 3, 3),        geometry(3, 3, 2, 4, 3, 2, 9, 1, 2, 2, 0, 1, 1, 1, 1),
    geometry(1, 13, 12, 3, 3, 3, 161, 2, 3, 1, 2, 0, 1, 2, 3), geometry(2, 1, 300, 4, 1, 9, 64, 1, 3, 0, 4, 0, 4),
};

/// While it lives, filter gradients of these shapes go by few_channels, which is predicted for large ones of few outputs alone.
class by_few_channels {
public:
    explicit by_few_channels(const tg::convolution_geometry& g) {
        constexpr auto pass = cuda::convolution_pass::filter_gradient;
        const cuda::detail::few_channels_tiling t(g, pass, sizeof(float));
        REQUIRE(t.valid);
        const auto plan = cuda::detail::few_channels_plan(
            t, g, pass, sizeof(float), cuda::detail::this_convolution_device(), cuda::convolution_workspace_limit);
        for (const auto mode : {tg::math_mode::fp32, tg::math_mode::tf32, tg::math_mode::tf32x3})
            cuda::plan_memory::instance().keep(cuda::context::of(0).properties().name,
                                               cuda::detail::convolution_work(g, pass, tg::dtype::f32, mode),
                                               {cuda::name_of(plan), 1});
    }
    by_few_channels(const by_few_channels&) = delete;
    by_few_channels& operator=(const by_few_channels&) = delete;
    ~by_few_channels() { cuda::plan_memory::instance().forget(); }
};

} // namespace

TEST_CASE("convolution of few channels on a device: all operations are exact") {
    for (const auto& g : first_layers) {
        const by_few_channels remembered(g);
        const cuda::detail::few_channels_tiling t(g, cuda::convolution_pass::forward, sizeof(float));
        CHECK(t.valid);
        in_orders([&] { check_operations<float>(g); });
    }
    for (const auto& g : {first_layers[1], first_layers[3]}) check_operations<double>(g);
}

// Whole numbers this small are exact in TF32.
TEST_CASE("convolution of few channels on a device: on tensor cores all operations are exact") {
    const tg::math_mode_scope in(tg::math_mode::tf32);
    for (const auto& g : first_layers) {
        for (const auto pass : {cuda::convolution_pass::forward, cuda::convolution_pass::filter_gradient})
            CHECK(cuda::detail::few_channels_tiling::on_tensor_cores(g, pass).valid);
        in_orders([&] { check_operations<float>(g); });
    }
}

TEST_CASE("convolution of few channels on a device: tensor cores round factors and nothing else") {
    const tg::math_mode_scope in(tg::math_mode::tf32);
    const auto g = geometry(2, 17, 21, 3, 3, 3, 150, 1, 1, 1, 1, 1, 1);
    const sizes n(g);
    const auto numbers = [](std::int64_t count, std::uint64_t seed) {
        std::vector<float> v(static_cast<std::size_t>(count));
        for (float& each : v) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            each = static_cast<float>(static_cast<double>(seed >> 11) * 0x1p-52 - 1);
        }
        return v;
    };
    const auto x = numbers(n.x, 1), w = numbers(n.w, 2), dy = numbers(n.y, 3);
    // As for measured plans: eight standard deviations of rounding.
    const auto close = [](const auto& call, std::int64_t k) {
        const auto want = call.on_cpu(), got = call.on_device();
        double largest = 0;
        for (std::size_t i = 0; i < want.size(); ++i)
            largest = std::max(largest, std::abs(static_cast<double>(want[i]) - static_cast<double>(got[i])));
        CHECK(largest > 0); // factors were rounded
        CHECK(largest <= cuda::detail::convolution_difference(k, sizeof(float), tg::math_mode::tf32));
    };
    close(convolution_call<tg::convolution_op, float>(g, {x, w}), 27);
    close(convolution_call<tg::convolution_filter_gradient_op, float>(g, {x, dy}), 2 * 17 * 21);
}

// A tile may contain windows of outputs beyond the image's end that read the image: they must not
// count.
TEST_CASE("convolution of few channels on a device: NaN only where the image's outputs see it") {
    const auto g = geometry(1, 9, 7, 3, 2, 2, 5, 2, 2);
    const by_few_channels remembered(g);
    const sizes n(g);
    auto x = whole_numbers<float>(n.x, 1);
    const auto dy = whole_numbers<float>(n.y, 2);
    for (std::int64_t i = n.x - 7 * 3; i < n.x; ++i)
        x[static_cast<std::size_t>(i)] = NAN; // a row that no window reaches
    const convolution_call<tg::convolution_filter_gradient_op, float> call(g, {x, dy});
    const auto want = call.on_cpu();
    CHECK(call.on_device() == want);
    const tg::math_mode_scope in(tg::math_mode::tf32);
    CHECK(call.on_device() == want);
}

#if defined(TG_SIMT) && !defined(SIMT_TSAN)
TEST_CASE("convolution of few channels on a device: no barrier is there for nothing") {
    const auto g = geometry(2, 17, 21, 3, 3, 3, 70, 1, 1, 1, 1, 1, 1);
    const by_few_channels remembered(g);
    const expected<float> e(g);
    std::size_t found = 0;
    auto unnoticed = simt::unnoticed_barriers(
        [&] {
            return result<tg::convolution_op, float>(g, {e.x, e.w}) == e.y;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 1);
    unnoticed = simt::unnoticed_barriers(
        [&] {
            return result<tg::convolution_filter_gradient_op, float>(g, {e.x, e.dy}) == e.dw;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 3);
}
#endif

} // namespace convolution_few_channels_test
