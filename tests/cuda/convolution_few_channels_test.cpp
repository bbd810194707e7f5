#include <cuda/device_array.hpp>

#include <cuda/convolution_operations.hpp>

#include <doctest/doctest.h>

#include <cstddef>
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
