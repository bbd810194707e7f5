#include <cuda/device_array.hpp>

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/ops/convolution/library_convolution.hpp>
#ifdef TG_SIMT
#include <tapegraph/cuda/ops/convolution/by_warpgroups.cuh>
#else
#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/implicit_gemm.cuh>
#endif

#include <cuda/convolution_reference.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <type_traits>

namespace library_convolution_test {

using namespace convolution_testing;
using namespace tapegraph::cuda;
namespace kernels = tapegraph::cuda::kernels;

namespace {

constexpr auto forward = convolution_pass::forward, input_gradient = convolution_pass::input_gradient;

#ifdef TG_SIMT
using kernels::warpgroup_tile;

/// As the registered source does, in a given tile.
template <class T, class... Tile>
std::vector<T> run(const tg::convolution_geometry& g, convolution_pass pass, const library_convolution_operands& o,
                   std::int64_t count) {
    const im2col_convolution c(g, pass);
    const device_array<unsigned char> scratch(static_cast<std::int64_t>(warpgroup_scratch(c, sizeof(T)).bytes()));
    const device_array<T> results(count);
    library_convolution_operands to = o;
    to.results = results.data();
    convolution_by_warpgroups<T>("test", nullptr, c, to, scratch.data()).template run<Tile...>(4);
    return results.host();
}
bool takes(const tg::convolution_geometry& g, convolution_pass pass, tg::dtype) {
    return im2col_convolution::has(g, pass);
}
#else
template <int Fragments, int Columns>
struct warpgroup_tile; ///< the source chooses

template <class T, class... Tile>
std::vector<T> run(const tg::convolution_geometry& g, convolution_pass pass, const library_convolution_operands& o,
                   std::int64_t count) {
    const library_convolution& l = convolution_of_library;
    const device_array<unsigned char> scratch(static_cast<std::int64_t>(l.scratch_bytes(g, pass, tg::dtype_of<T>)));
    const device_array<T> results(count);
    library_convolution_operands to = o;
    to.results = results.data();
    l.run("test", nullptr, g, pass, tg::dtype_of<T>, to, scratch.data());
    return results.host();
}
bool takes(const tg::convolution_geometry& g, convolution_pass pass, tg::dtype element) {
    return convolution_of_library.takes != nullptr && convolution_of_library.takes(g, pass, element);
}
#endif

template <class T>
std::vector<T> narrowed(const std::vector<float>& from) {
    std::vector<T> to;
    for (const float x : from) to.push_back(static_cast<T>(x));
    return to;
}

// Integers, which all types represent exactly; a 16-bit result is rounded, then again with its
// bias.
template <class T, class... Tile>
bool passes_are_right(const tg::convolution_geometry& g) {
    const sizes n(g);
    const expected<float> want(g);
    const std::vector<T> y = narrowed<T>(want.y);
    std::vector<T> activated;
    for (std::size_t i = 0; i < y.size(); ++i)
        activated.push_back(static_cast<T>(
            std::max(0.0f, static_cast<float>(y[i]) + want.bias[i % static_cast<std::size_t>(g.out_channels)])));
    const device_array<T> x(narrowed<T>(want.x)), w(narrowed<T>(want.w)), dy(narrowed<T>(want.dy)),
        bias(narrowed<T>(want.bias));
    bool right = true;
    const auto check = [&](convolution_pass pass, const library_convolution_operands& o, const std::vector<T>& wanted) {
        if (takes(g, pass, tg::dtype_of<T>))
            right = right && run<T, Tile...>(g, pass, o, static_cast<std::int64_t>(wanted.size())) == wanted;
    };
    check(forward, {x.data(), w.data(), nullptr}, y);
    check(forward, {x.data(), w.data(), nullptr, bias.data(), true}, activated);
    check(input_gradient, {dy.data(), w.data(), nullptr}, narrowed<T>(want.dx));
    return right;
}

using small_tile = warpgroup_tile<1, 64>;

/// Whether a device, or its imitation, is present that supports any pass at all.
bool is_here() {
    const bool here = takes(geometry(1, 1, 1, 1, 1, 1, 1), forward, tg::dtype::f32);
    if (!here) MESSAGE("convolution_sm90.cu is not linked, or the device is not one of compute capability 9.0");
    return here;
}

// More than one tile of pixels and of channels; channels of whole rows of 16 bytes and others.
const tg::convolution_geometry larger_geometries[]{
    geometry(3, 9, 7, 33, 3, 3, 70, 1, 1, 1, 1, 1, 1),
    geometry(2, 13, 12, 64, 3, 2, 8, 2, 1, 2, 1, 1, 1),
    geometry(5, 6, 11, 40, 2, 5, 129, 1, 2, 0, 4, 2, 3, 2, 1),
    geometry(300, 1, 2, 6, 1, 2, 3, 1, 1, 0, 1, 0, 0),
};

} // namespace

TEST_CASE("convolutions by warpgroups: exact at awkward sizes") {
    if (!is_here()) return;
    for (const auto& g : geometries) in_orders([&] { CHECK(passes_are_right<float, small_tile>(g)); });
    for (const auto& g : larger_geometries) {
        CHECK(passes_are_right<float, small_tile>(g));
        CHECK(passes_are_right<tg::bfloat16, small_tile>(g));
        CHECK(passes_are_right<tg::half, small_tile>(g));
    }
}

TEST_CASE("convolutions by warpgroups: all tiles, the cheapest of them") {
    if (!is_here()) return;
    const auto g = geometry(3, 9, 10, 36, 3, 3, 166, 1, 1, 1, 1, 1, 1); // 270 rows
    CHECK(passes_are_right<float, warpgroup_tile<2, 160>>(g));
    CHECK(passes_are_right<float, warpgroup_tile<2, 128>>(g));
    CHECK(passes_are_right<tg::bfloat16, warpgroup_tile<1, 208>>(g));
    CHECK(passes_are_right<tg::half, warpgroup_tile<2, 160>, small_tile, warpgroup_tile<1, 208>>(g));
}

// More than two chains, whose sums go through memory: of whole taps, and of parts of one.
TEST_CASE("convolutions by warpgroups: long sums are added in pieces") {
    if (!is_here()) return;
    for (const auto& g : {geometry(2, 1, 4, 1500, 1, 3, 5, 1, 1, 0, 1, 0, 1), geometry(3, 1, 1, 8200, 1, 1, 3)}) {
        CHECK(passes_are_right<float, small_tile>(g));
        CHECK(passes_are_right<tg::bfloat16, small_tile>(g));
    }
}

TEST_CASE("convolutions by warpgroups: what is not taken") {
    using tg::dtype;
    const auto plain = geometry(2, 9, 9, 8, 3, 3, 8, 2, 2, 1, 1, 1, 1);
    CHECK(takes(plain, forward, dtype::f32) == is_here());
    CHECK_FALSE(takes(plain, input_gradient, dtype::f32)); // because of its stride
    CHECK_FALSE(takes(plain, convolution_pass::filter_gradient, dtype::f32));
    CHECK_FALSE(takes(geometry(2, 9, 9, 8, 3, 3, 8, 1, 1, 1, 1, 1, 1, 1, 1, 2), forward, dtype::f32));
    CHECK_FALSE(takes(geometry(0, 9, 9, 8, 3, 3, 8), forward, dtype::f32));
    // The hardware's limits: padding up to 128 pixels, a tap's offset up to 255, steps up to 8, and
    // the end that the box leaves out.
    for (const auto& [g, taken] : {std::pair{geometry(1, 1, 300, 8, 1, 257, 8, 1, 1, 0, 128, 0, 128), false},
                                   std::pair{geometry(1, 1, 300, 8, 1, 256, 8, 1, 1, 0, 128, 0, 128), true},
                                   std::pair{geometry(1, 1, 300, 8, 1, 256, 8, 1, 1, 0, 129, 0, 128), false},
                                   std::pair{geometry(1, 1, 300, 8, 1, 129, 8, 1, 1), true},
                                   std::pair{geometry(1, 1, 300, 8, 1, 130, 8, 1, 1), false},
                                   std::pair{geometry(1, 1, 300, 8, 1, 3, 8, 1, 8), true},
                                   std::pair{geometry(1, 1, 300, 8, 1, 3, 8, 1, 9), false},
                                   std::pair{geometry(1, 1, 300, 8, 1, 2, 8, 1, 1, 0, 0, 0, 0, 1, 128), true},
                                   std::pair{geometry(1, 1, 300, 8, 1, 3, 8, 1, 1, 0, 64, 0, 64, 1, 128), false}})
        CHECK(takes(g, forward, dtype::f32) == (taken && is_here()));
}

#ifdef TG_SIMT
TEST_CASE("convolutions by warpgroups: barriers, and tiles that come at once or late") {
    const auto g = geometry(2, 5, 30, 70, 3, 3, 9, 1, 1, 1, 1, 1, 1); // 27 steps: the ring wraps around
    const auto right = [&] { return passes_are_right<float, small_tile>(g); };
    for (const std::uint64_t seed : {1, 2, 3}) {
        const simt::with_settings set(simt::order::random, seed);
        CHECK(right());
    }
    std::size_t found = 0;
    CHECK(simt::unnoticed_barriers(right, found) == std::vector<std::string>{});
    CHECK(found == 6); // in the copies of filters, the kernel's beginning, tiles, stages, products twice
}

TEST_CASE("convolutions by warpgroups: wrong maps and coordinates are noticed") {
    using map = kernels::tensor_map;
    const auto g = geometry(2, 9, 14, 40, 3, 2, 70, 2, 1, 1, 1, 2, 0, 1, 2);
    const auto right = [&] { return passes_are_right<float, small_tile>(g); };
    REQUIRE(right());
    const std::function<void(map&)> of_images[]{
        [](map& m) { ++m.lower[0]; },
        [](map& m) { --m.lower[1]; },
        [](map& m) { ++m.upper[0]; },
        [](map& m) { --m.upper[0]; },
        [](map& m) { --m.upper[1]; },
        [](map& m) { std::swap(m.lower[0], m.lower[1]), std::swap(m.upper[0], m.upper[1]); },
        [](map& m) { ++m.steps[0]; },
        [](map& m) { std::swap(m.steps[0], m.steps[1]); },
        [](map& m) { m.swizzle = 3; },
        [](map& m) { m.swizzle = 0; },
        [](map& m) { m.extents[0] += 1; },
        [](map& m) { m.extents[1] -= 1; },
        [](map& m) { m.strides[3] += 160; },
    };
    const std::function<void(map&)> of_filters[]{
        [](map& m) { m.swizzle = 0; },
        [](map& m) { m.extents[1] -= 1; },
        [](map& m) { m.strides[2] += 160; },
    };
    const auto with = [&](const auto& bend, bool images) {
        simt::current_bends().map = [&bend, images](map& m) {
            if (m.im2col == images) bend(m);
        };
        const bool unnoticed = right();
        simt::current_bends() = {};
        return unnoticed;
    };
    for (const auto& bend : of_images) CHECK_FALSE(with(bend, true));
    for (const auto& bend : of_filters) CHECK_FALSE(with(bend, false));
    const std::function<void(int&, int&, int&, int&, int&, int&)> of_fetches[]{
        [](int& channel, int&, int&, int&, int&, int&) { channel += 1; },
        [](int&, int& column, int&, int&, int&, int&) { column += 1; },
        [](int&, int&, int& row, int&, int&, int&) { row += 2; },
        [](int&, int&, int&, int& image, int&, int&) { image = 0; },
        [](int&, int&, int&, int&, int& column, int&) { column /= 2; },
        [](int&, int&, int&, int&, int& column, int& row) { std::swap(column, row); },
    };
    for (const auto& bend : of_fetches) {
        simt::current_bends().fetch = bend;
        CHECK_FALSE(right());
        simt::current_bends() = {};
    }
}
#else
TEST_CASE("convolutions by warpgroups: what our kernel computes, at the size of a layer") {
    if (!is_here()) return;
    const auto g = geometry(9, 24, 24, 150, 5, 5, 300);
    const sizes n(g);
    const device_array<float> x(whole_numbers<float>(n.x, 1)), w(whole_numbers<float>(n.w, 2)), y(n.y);
    using tile = kernels::tile_shape<64, 64, 16, 4, 8>;
    const kernels::forward_problem<float> p(g, false, x.data(), w.data(), nullptr, false, y.data());
    const auto tiles = [](int extent, int of) { return static_cast<unsigned>((extent + of - 1) / of); };
    launch({{tiles(p.m, tile::BM), tiles(p.n, tile::BN)}, static_cast<unsigned>(tile::threads)},
           kernels::implicit_gemm<kernels::forward_problem<float>, tile, 1>, p);
    CHECK(run<float>(g, forward, {x.data(), w.data(), nullptr}, n.y) == y.host());
}
#endif

} // namespace library_convolution_test
