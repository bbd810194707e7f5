#include <cuda/device_array.hpp>

#include <cuda/convolution_operations.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace convolution_winograd_test {

/// Convolutions of floats by Winograd's algorithm on a device, against sums in double.

using namespace convolution_testing;
using cuda::convolution_algorithm;
using cuda::convolution_pass;
using cuda::detail::winograd_chunks;
using tg::math_mode;

namespace {

constexpr convolution_pass passes[]{convolution_pass::forward, convolution_pass::input_gradient,
                                    convolution_pass::filter_gradient};

std::vector<float> noise(std::int64_t count, std::uint32_t seed) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(static_cast<std::int32_t>(seed)) * 0x1p-31f; // uniform in [-1, 1)
    }
    return values;
}

/// Operands, and what the passes give.
struct wanted {
    std::vector<float> x, w, dy, bias;
    std::vector<double> y, activated, dx, dw;

    explicit wanted(const tg::convolution_geometry& g) {
        const sizes n(g);
        x = noise(n.x, 1), w = noise(n.w, 2), dy = noise(n.y, 3), bias = noise(g.out_channels, 4);
        y.resize(dy.size()), dx.resize(x.size()), dw.resize(w.size());
        for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
            const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j),
                       c = static_cast<std::size_t>(k);
            y[c] += double{x[a]} * w[b], dx[a] += double{dy[c]} * w[b], dw[b] += double{dy[c]} * x[a];
        });
        activated = y;
        for (std::size_t i = 0; i < y.size(); ++i)
            activated[i] = std::max(0.0, y[i] + double{bias[i % static_cast<std::size_t>(g.out_channels)]});
    }
};

double distance(const std::vector<float>& got, const std::vector<double>& want) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double d = static_cast<double>(got[i]) - want[i];
        apart += d * d, size += want[i] * want[i];
    }
    return got.size() == want.size() ? std::sqrt(apart / size) : NAN;
}
// The bounds of the CPU's tests: tiles of eight by eight numbers round more than those of six by
// six (docs/performance/convolutions.md has 6.1e-6 and 3.0e-6). A mistake of an index is off by
// 1 / sqrt(products of a sum), which is more than 1e-2 here.
double bound(const tg::convolution_geometry& g) { return g.kernel_width == 5 ? 1e-5 : 5e-6; }

std::vector<float> largest_of_windows(const tg::convolution_geometry& g, const std::vector<float>& y) {
    std::vector<float> pooled;
    for (std::int64_t b = 0; b < g.batch; ++b)
        for (std::int64_t i = 0; i < g.out_height / 2; ++i)
            for (std::int64_t j = 0; j < g.out_width / 2; ++j)
                for (std::int64_t c = 0; c < g.out_channels; ++c) {
                    float most = -INFINITY;
                    for (std::int64_t q = 0; q < 4; ++q)
                        most = std::max(
                            most,
                            y[static_cast<std::size_t>(
                                ((b * g.out_height + 2 * i + q / 2) * g.out_width + 2 * j + q % 2) * g.out_channels +
                                c)]);
                    pooled.push_back(most);
                }
    return pooled;
}

// The scratch memory has exactly the requested size, so that a write beyond it would be seen.
void check_passes(const tg::convolution_geometry& g, const wanted& e, std::size_t limit) {
    CAPTURE(g.in_height);
    CAPTURE(g.in_channels);
    CAPTURE(g.kernel_width);
    const sizes n(g);
    const device_array<float> x(e.x), w(e.w), dy(e.dy), bias(e.bias), y(n.y), activated(n.y), dx(n.x), dw(n.w),
        pooled(g.batch * (g.out_height / 2) * (g.out_width / 2) * g.out_channels);
    const tg::kernel_call call;
    const auto multiply = [](const cuda::gemm_arguments<float>& a) {
        cuda::gemm(nullptr, "convolution", a, math_mode::fp32);
    };
    for (const auto pass : passes) {
        const winograd_chunks chunks(g, pass, limit);
        REQUIRE(chunks.images > 0);
        CHECK(chunks.workspace() <= limit);
        const auto bytes = static_cast<std::int64_t>(chunks.workspace());
        const device_array<unsigned char> scratch(bytes + 256);
        const cuda::convolution_by_winograd<decltype(multiply)> winograd(call, "convolution", g, pass, scratch.data(),
                                                                         limit, multiply);
        if (pass == convolution_pass::forward) {
            winograd.forward(x.data(), w.data(), nullptr, false, false, y.data());
            winograd.forward(x.data(), w.data(), bias.data(), true, false, activated.data());
            winograd.forward(x.data(), w.data(), bias.data(), true, true, pooled.data());
        } else if (pass == convolution_pass::input_gradient) {
            winograd.input_gradient(dy.data(), w.data(), dx.data());
        } else {
            winograd.filter_gradient(x.data(), dy.data(), dw.data());
        }
        const auto after = scratch.host();
        CHECK(std::all_of(after.begin() + bytes, after.end(), [](unsigned char c) { return c == 0xFF; }));
    }
    CHECK(distance(y.host(), e.y) < bound(g));
    CHECK(distance(activated.host(), e.activated) < bound(g));
    CHECK(pooled.host() == largest_of_windows(g, activated.host()));
    CHECK(distance(dx.host(), e.dx) < bound(g));
    CHECK(distance(dw.host(), e.dw) < bound(g));
}

// Whole tiles, one output, partial tiles along one axis and both, images smaller than a tile,
// padding on any side up to all taps but one, one channel, channels that are no multiple of four.
const tg::convolution_geometry shapes[]{
    geometry(1, 8, 8, 4, 5, 5, 8),
    geometry(1, 5, 5, 1, 5, 5, 1),
    geometry(2, 13, 10, 3, 5, 5, 7),
    geometry(3, 9, 12, 6, 5, 5, 5, 1, 1, 2, 1, 0, 4),
    geometry(1, 3, 2, 5, 5, 5, 2, 1, 1, 4, 3, 1, 4),
    geometry(2, 6, 10, 8, 3, 3, 4),
    geometry(1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1),
    geometry(2, 7, 12, 5, 3, 3, 9, 1, 1, 1, 1, 1, 1),
    geometry(5, 4, 5, 2, 3, 3, 3, 1, 1, 2, 0, 2, 1),
    geometry(1, 14, 9, 33, 3, 3, 35, 1, 1, 0, 2, 1, 0),
};

tg::convolution_geometry second_layer(int batch) { return geometry(batch, 24, 24, 150, 5, 5, 300); }

} // namespace

TEST_CASE("winograd on a device: all passes, at awkward sizes, in any order of threads") {
    for (const auto& g : shapes) {
        const wanted e(g);
        in_orders([&] { check_passes(g, e, std::size_t{1} << 24); });
    }
}

TEST_CASE("winograd on a device: chunks of images") {
    constexpr auto forward = convolution_pass::forward;
    for (const auto& g : {geometry(5, 9, 6, 3, 5, 5, 6, 1, 1, 2, 2, 2, 2), geometry(7, 13, 13, 4, 3, 3, 3)}) {
        const wanted e(g);
        const std::size_t all = winograd_chunks(g, forward, std::size_t{1} << 24).workspace();
        std::vector<std::int64_t> chunks;
        for (std::size_t limit = 2 * all; limit > 0; limit -= std::min(limit, all / 40)) {
            const winograd_chunks c(g, forward, limit);
            if (c.images == 0) continue;
            CHECK(c.workspace() <= limit);
            CHECK(c.images * c.chunks >= g.batch);
            CHECK(c.images * (c.chunks - 1) < g.batch);
            if (chunks.empty() || c.chunks != chunks.back()) check_passes(g, e, limit);
            chunks.push_back(c.chunks);
        }
        REQUIRE_FALSE(chunks.empty());
        CHECK(chunks.back() == g.batch); // in the end an image at a time
        CHECK(winograd_chunks(g, forward, 0).images == 0);
    }
}

// Between few channels, and for long sums: parts that end within an image, and after the last one.
TEST_CASE("winograd on a device: filter gradients in parts") {
    constexpr auto filters = convolution_pass::filter_gradient;
    constexpr std::size_t most = std::size_t{1} << 24;
    const auto g = geometry(7, 30, 30, 3, 3, 3, 5);
    const wanted e(g);
    const winograd_chunks all(g, filters, most);
    CHECK(all.parts == 2);
    CHECK(all.images == 7);
    CHECK(all.part() == 172); // of 343 tiles
    in_orders([&] { check_passes(g, e, most); });
    const std::size_t limit = all.workspace() * 3 / 5;
    CHECK(winograd_chunks(g, filters, limit).chunks > 1);
    check_passes(g, e, limit);
    // One image of 36 by 36 tiles: the sums of all at once would be too long.
    const auto large = geometry(1, 144, 143, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1);
    CHECK(winograd_chunks(large, filters, most).part() <= 512);
    check_passes(large, wanted(large), most);
    const winograd_chunks second(second_layer(128), filters, cuda::convolution_workspace_limit);
    CHECK(second.chunks == 2);
    CHECK(second.part() == 400);
    CHECK(second.workspace() <= cuda::convolution_workspace_limit);
}

TEST_CASE("winograd on a device: NaN and infinity reach what they reach on the CPU") {
    constexpr auto forward = convolution_pass::forward;
    for (auto g : {geometry(2, 13, 14, 3, 5, 5, 5, 1, 1, 1, 0, 0, 1), geometry(2, 11, 9, 3, 3, 3, 5)}) {
        g.algorithm = tg::convolution_algorithm::winograd;
        wanted e(g);
        e.x[static_cast<std::size_t>((7 * g.in_width + 5) * g.in_channels)] = NAN;
        e.x[static_cast<std::size_t>((g.in_height * g.in_width + 1) * g.in_channels)] = INFINITY;
        const auto want = convolution_call<tg::convolution_op, float>(g, {e.x, e.w}).on_cpu();
        const device_array<float> x(e.x), w(e.w), y(static_cast<std::int64_t>(want.size()));
        constexpr std::size_t limit = std::size_t{1} << 24;
        const device_array<unsigned char> scratch(
            static_cast<std::int64_t>(winograd_chunks(g, forward, limit).workspace()));
        const tg::kernel_call call;
        const auto multiply = [](const cuda::gemm_arguments<float>& a) {
            cuda::gemm(nullptr, "convolution", a, math_mode::fp32);
        };
        cuda::convolution_by_winograd<decltype(multiply)>(call, "convolution", g, forward, scratch.data(), limit,
                                                          multiply)
            .forward(x.data(), w.data(), nullptr, false, false, y.data());
        const auto got = y.host();
        int finite = 0, others = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
            CHECK(std::isfinite(got[i]) == std::isfinite(want[i]));
            ++(std::isfinite(want[i]) ? finite : others);
        }
        CHECK(finite > 0);
        CHECK(others > 0);
    }
}

TEST_CASE("winograd on a device: where it is chosen") {
    for (int batch : {128, 1024})
        for (auto pass : passes) {
            const auto g = second_layer(batch);
            for (auto mode : {math_mode::fp32, math_mode::tf32, math_mode::tf32x3}) {
                const auto plan = cuda::choose_convolution(g, pass, sizeof(float), mode, {132, true});
                CHECK((plan.algorithm == convolution_algorithm::winograd) == (mode != math_mode::tf32));
                CHECK(plan.workspace <= cuda::convolution_workspace_limit);
            }
            const auto chosen = [&](const tg::convolution_geometry& shape, std::size_t element, std::size_t limit) {
                return cuda::choose_convolution(shape, pass, element, math_mode::fp32, {132, true}, limit).algorithm;
            };
            constexpr std::size_t most = cuda::convolution_workspace_limit;
            CHECK(chosen(g, sizeof(double), most) != convolution_algorithm::winograd);
            CHECK(chosen(g, sizeof(float), std::size_t{1} << 20) !=
                  convolution_algorithm::winograd);                                                 // too little memory
            CHECK(chosen(second_layer(1), sizeof(float), most) != convolution_algorithm::winograd); // too little work
            auto direct = g;
            direct.algorithm = tg::convolution_algorithm::direct;
            CHECK(chosen(direct, sizeof(float), most) != convolution_algorithm::winograd);
            for (const auto& p :
                 cuda::convolution_candidates(direct, pass, sizeof(float), math_mode::fp32, {132, true}))
                CHECK(p.algorithm != convolution_algorithm::winograd);
        }
    // Shapes that the CPU's tiles do not have.
    for (const auto& g :
         {geometry(128, 24, 24, 150, 5, 5, 300, 2, 2), geometry(128, 24, 24, 150, 5, 4, 300),
          geometry(128, 24, 24, 150, 5, 5, 300, 1, 1, 5, 5, 5, 5), geometry(128, 1, 576, 150, 1, 5, 300),
          geometry(128, 24, 24, 150, 5, 5, 300, 1, 1, 0, 0, 0, 0, 2, 2),
          geometry(128, 24, 24, 150, 5, 5, 300, 1, 1, 0, 0, 0, 0, 1, 1, 2)})
        CHECK_FALSE(cuda::detail::winograd_may(g));
}

namespace {

template <convolution_pass Pass>
const cuda::convolution_plans& plans(const tg::convolution_geometry& g) {
    return cuda::detail::convolution_run<float, Pass>::plans(g);
}

} // namespace

TEST_CASE("winograd on a device: operations that choose it") {
#ifdef TG_SIMT // a device of four multiprocessors
    const auto g = geometry(2, 17, 18, 50, 5, 5, 98, 1, 1, 0, 0, 2, 0);
#else
    const auto g = geometry(40, 49, 50, 50, 5, 5, 98, 1, 1, 0, 0, 2, 0);
#endif
    const auto method = [](const cuda::convolution_plans& all, math_mode mode) { return name_of(all[mode]); };
    CHECK(method(plans<convolution_pass::forward>(g), math_mode::fp32) == "winograd");
    CHECK(method(plans<convolution_pass::input_gradient>(g), math_mode::fp32) == "winograd");
    CHECK(method(plans<convolution_pass::filter_gradient>(g), math_mode::fp32) == "winograd");
    CHECK(method(plans<convolution_pass::input_gradient>(g), math_mode::tf32x3) == "winograd");
    CHECK(method(plans<convolution_pass::forward>(g), math_mode::tf32) != "winograd");
    const sizes n(g);
    const auto x = noise(n.x, 1), w = noise(n.w, 2), dy = noise(n.y, 3), bias = noise(g.out_channels, 4);
    auto direct = g;
    direct.algorithm = tg::convolution_algorithm::direct;
    CHECK(name_of(plans<convolution_pass::forward>(direct)[math_mode::fp32]) != "winograd");
    const auto agree = [&]<class Op>(std::type_identity<Op>, const std::vector<std::vector<float>>& in) {
        const std::vector<float> sums = result<Op, float>(direct, in), got = result<Op, float>(g, in);
        CHECK(distance(got, std::vector<double>(sums.begin(), sums.end())) < 1.2e-5); // 1e-6 are the sums'
        CHECK(got != sums);
        CHECK(result<Op, float>(g, in) == got);
    };
    agree(std::type_identity<tg::convolution_op>{}, {x, w});
    agree(std::type_identity<tg::convolution_bias_op<true>>{}, {x, w, bias});
    agree(std::type_identity<tg::convolution_input_gradient_op>{}, {dy, w});
    agree(std::type_identity<tg::convolution_filter_gradient_op>{}, {x, dy});
    const std::vector<float> in_float = result<tg::convolution_input_gradient_op, float>(g, {dy, w});
    const with_mode set(math_mode::tf32x3); // the same kernels
    CHECK((result<tg::convolution_input_gradient_op, float>(g, {dy, w}) == in_float));
}

} // namespace convolution_winograd_test
