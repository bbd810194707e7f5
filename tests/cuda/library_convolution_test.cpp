#include <cuda/device_array.hpp>

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/ops/convolution/library_convolution.hpp>
#ifdef TG_SIMT
#include <tapegraph/cuda/ops/convolution/filter_gradient_by_warpgroups.cuh>
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

constexpr auto forward = convolution_pass::forward, input_gradient = convolution_pass::input_gradient,
               filter_gradient = convolution_pass::filter_gradient;

#ifdef TG_SIMT
using kernels::warpgroup_tile;

/// The device that filter gradients are cut for, on the executor.
struct cut_for {
    int multiprocessors = 4;
    std::size_t limit = filter_gradient_cut::usual_limit;
};
cut_for& current_cut() {
    static cut_for c;
    return c;
}

/// As the registered source does, in a given tile.
template <class T, class... Tile>
std::vector<T> run(const tg::convolution_geometry& g, convolution_pass pass, const library_convolution_operands& o,
                   std::int64_t count) {
    const device_array<T> results(count);
    library_convolution_operands to = o;
    to.results = results.data();
    if (pass == filter_gradient) {
        using gradient = filter_gradient_by_warpgroups<T, Tile...>;
        const auto [multiprocessors, limit] = current_cut();
        const std::size_t bytes = gradient::scratch_bytes(g, multiprocessors, limit);
        const device_array<unsigned char> scratch(static_cast<std::int64_t>(bytes));
        gradient("test", nullptr, g, to, scratch.data(), multiprocessors, limit).run();
        return results.host();
    }
    const im2col_convolution c(g, pass);
    const device_array<unsigned char> scratch(static_cast<std::int64_t>(warpgroup_scratch(c, sizeof(T)).bytes()));
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
    check(filter_gradient, {x.data(), dy.data(), nullptr}, narrowed<T>(want.dw));
    return right;
}
template <class T, class... Tile>
bool filter_gradient_is_right(const tg::convolution_geometry& g) {
    const expected<float> want(g);
    const device_array<T> x(narrowed<T>(want.x)), dy(narrowed<T>(want.dy));
    return !takes(g, filter_gradient, tg::dtype_of<T>) ||
           run<T, Tile...>(g, filter_gradient, {x.data(), dy.data(), nullptr},
                           static_cast<std::int64_t>(want.dw.size())) == narrowed<T>(want.dw);
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

// Many images of few pixels and much padding: taps of a tile that see only padding are left out.
TEST_CASE("convolutions by warpgroups: images innermost") {
    if (!is_here()) return;
    for (const auto& g :
         {geometry(64, 4, 8, 6, 3, 5, 9), geometry(128, 3, 4, 33, 3, 3, 7, 1, 1, 1, 1, 1, 1),
          geometry(32, 5, 8, 3, 3, 3, 5, 1, 2, 2, 1, 2, 6, 2, 1), geometry(256, 1, 2, 3, 1, 5, 4, 1, 1, 0, 4, 0, 6)}) {
        CHECK((im2col_convolution(g, forward).images_innermost || im2col_convolution(g, input_gradient).images_innermost));
        CHECK(passes_are_right<float, small_tile>(g));
        CHECK(passes_are_right<tg::bfloat16, small_tile>(g));
    }
    // The steps that remain: of 24 by 24 positions beside 20 by 20 outputs, two of them in a tile.
    const im2col_convolution second(geometry(128, 24, 24, 150, 5, 5, 300), input_gradient);
    CHECK(second.images_innermost);
    CHECK(second.kept_taps() == doctest::Approx(100.0 / 120 * 104 / 120));
    CHECK(!im2col_convolution(geometry(128, 32, 32, 64, 3, 3, 64, 1, 1, 1, 1, 1, 1), forward).images_innermost);
    CHECK(!im2col_convolution(geometry(129, 24, 24, 150, 5, 5, 300), input_gradient).images_innermost);
}

// Images are innermost: fewer than a step of k, one more, several.
TEST_CASE("filter gradients by warpgroups: numbers of images") {
    if (!is_here()) return;
    for (const int batch : {1, 31, 33, 64, 97}) {
        const auto g = geometry(batch, 3, 4, 7, 2, 3, 11, 1, 1, 1, 0, 0, 1);
        CAPTURE(batch);
        in_orders([&] { CHECK(filter_gradient_is_right<float, small_tile>(g)); });
        CHECK(filter_gradient_is_right<tg::half, small_tile>(g));
    }
}

// Outputs beyond the 8 bits of a tap's offset, an image beyond those of the box's corners; with
// steps, dilation and padding; a filter as long as the image; and rows, which are not such lines.
TEST_CASE("filter gradients by warpgroups: long lines") {
    if (!is_here()) return;
    for (const auto& g :
         {geometry(3, 1, 600, 3, 1, 9, 5, 1, 8), geometry(2, 1, 530, 5, 1, 4, 6, 1, 11, 0, 7, 0, 4, 1, 5),
          geometry(2, 1, 300, 2, 1, 250, 3), geometry(33, 1, 290, 2, 1, 2, 3, 1, 9, 0, 1, 0, 1)}) {
        CHECK(takes(g, filter_gradient, tg::dtype::f32));
        CHECK(filter_gradient_is_right<float, small_tile>(g));
    }
    CHECK(filter_gradient_is_right<tg::half, small_tile>(geometry(3, 1, 300, 3, 1, 9, 5, 1, 5)));
    CHECK(filter_gradient_is_right<float, small_tile>(geometry(3, 60, 1, 3, 9, 1, 5)));
}

#ifdef TG_SIMT
TEST_CASE("filter gradients by warpgroups: parts of k, chains in a part, chunks of images") {
    const auto right = [](const tg::convolution_geometry& g, const cut_for& c, bool parts, bool chunks) {
        const tile_extents tile[]{{small_tile::Rows, small_tile::Columns}};
        const filter_gradient_cut cut(g, sizeof(float), c.multiprocessors, tile, c.limit);
        CHECK((cut.parts > 1) == parts);
        CHECK((cut.images < g.batch) == chunks);
        CHECK(cut.bytes() <= static_cast<std::int64_t>(c.limit));
        current_cut() = c;
        CHECK(filter_gradient_is_right<float, small_tile>(g));
        CHECK(filter_gradient_is_right<tg::bfloat16, small_tile>(g));
        current_cut() = {};
    };
    const auto plain = geometry(70, 7, 8, 6, 2, 3, 9, 2, 1, 1, 1, 0, 1);
    right(plain, {}, true, false);
    right(plain, {1}, false, false);
    right(plain, {4, 110'000}, true, true);
    right(plain, {1, 110'000}, false, true);
    right(geometry(70, 4, 5, 6, 2, 3, 66), {4, 150'000}, true, true);
    right(geometry(33, 13, 13, 2, 2, 2, 3), {1}, false, false); // 288 steps, chains of 248
}

TEST_CASE("filter gradients by warpgroups: cuts of layers") {
    for (const int batch : {1, 32, 128, 1024, 5000})
        for (const auto& g : {geometry(batch, 24, 24, 150, 5, 5, 300), geometry(batch, 1, 1400, 30, 1, 20, 64),
                              geometry(batch, 32, 32, 64, 3, 3, 64, 2, 2, 1, 1, 1, 1)})
            for (const std::size_t element : {2u, 4u}) {
                const filter_gradient_cut cut(g, element, 132, warpgroup_tiles);
                CHECK(cut.bytes() <= static_cast<std::int64_t>(filter_gradient_cut::usual_limit));
                CHECK((cut.images == g.batch || cut.images % (128 / static_cast<int>(element)) == 0));
                const std::int64_t part = cut.steps_of_part(cut.images); // the first chunk fills every slice
                CHECK((cut.steps(cut.images) + part - 1) / part == cut.parts);
            }
}
#endif

TEST_CASE("convolutions by warpgroups: what is not taken") {
    using tg::dtype;
    const auto plain = geometry(2, 9, 9, 8, 3, 3, 8, 2, 2, 1, 1, 1, 1);
    CHECK(takes(plain, forward, dtype::f32) == is_here());
    CHECK_FALSE(takes(plain, input_gradient, dtype::f32)); // because of its stride
    CHECK(takes(plain, filter_gradient, dtype::f32) == is_here());
    CHECK_FALSE(takes(geometry(2, 9, 9, 8, 3, 3, 8, 1, 1, 1, 1, 1, 1, 1, 1, 2), filter_gradient, dtype::f32));
    CHECK_FALSE(takes(geometry(0, 9, 9, 8, 3, 3, 8), filter_gradient, dtype::f32));
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
    // Of filter gradients an output is a tap, and a tap an output.
    for (const auto& [g, taken] :
         {std::pair{geometry(1, 2, 131, 8, 1, 3, 8), true}, std::pair{geometry(1, 2, 132, 8, 1, 3, 8), false},
          std::pair{geometry(1, 2, 132, 8, 1, 4, 8), true},
          std::pair{geometry(1, 2, 100, 8, 1, 100, 8, 1, 8, 0, 128, 0, 128), false},
          std::pair{geometry(1, 2, 100, 8, 1, 100, 8, 1, 8, 0, 128, 0, 127), true},
          std::pair{geometry(1, 2, 100, 8, 1, 3, 8, 1, 1, 0, 0, 0, 0, 1, 8), true},
          std::pair{geometry(1, 2, 100, 8, 1, 3, 8, 1, 1, 0, 0, 0, 0, 1, 9), false},
          std::pair{geometry(1, 1, 32771, 8, 1, 3, 8), true}, std::pair{geometry(1, 1, 32772, 8, 1, 3, 8), false}})
        CHECK(takes(g, filter_gradient, dtype::f32) == (taken && is_here()));
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
    CHECK(found == 7); // in both copies, the kernel's beginning, tiles, stages, products twice
}

using map = kernels::tensor_map;
using map_bend = std::function<void(map&)>;
using fetch_bend = std::function<void(int&, int&, int&, int&, int&, int&)>;

/// Whether right() fails with bent maps, those of images or the others, and bent fetches of pixels.
template <class Right>
bool is_noticed(const Right& right, const map_bend& of_map, bool images, const fetch_bend& of_fetch = {}) {
    simt::current_bends() = {[&of_map, images](map& m) {
                                 if (m.im2col == images) of_map(m);
                             },
                             of_fetch};
    const bool unnoticed = right();
    simt::current_bends() = {};
    return !unnoticed;
}
bool is_noticed(const auto& right, const fetch_bend& bend) {
    return is_noticed(
        right, [](map&) {}, true, bend);
}

TEST_CASE("convolutions by warpgroups: wrong maps and coordinates are noticed") {
    const auto g = geometry(2, 9, 14, 40, 3, 2, 70, 2, 1, 1, 1, 2, 0, 1, 2);
    const auto right = [&] { return passes_are_right<float, small_tile>(g); };
    REQUIRE(right());
    const map_bend of_images[]{
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
    const map_bend of_filters[]{[](map& m) { m.swizzle = 0; }, [](map& m) { m.extents[1] -= 1; },
                                [](map& m) { m.strides[2] += 160; }};
    for (const auto& bend : of_images) CHECK(is_noticed(right, bend, true));
    for (const auto& bend : of_filters) CHECK(is_noticed(right, bend, false));
    const fetch_bend of_fetches[]{
        [](int& channel, int&, int&, int&, int&, int&) { channel += 1; },
        [](int&, int& column, int&, int&, int&, int&) { column += 1; },
        [](int&, int&, int& row, int&, int&, int&) { row += 2; },
        [](int&, int&, int&, int& image, int&, int&) { image = 0; },
        [](int&, int&, int&, int&, int& column, int&) { column /= 2; },
        [](int&, int&, int&, int&, int& column, int& row) { std::swap(column, row); },
    };
    for (const auto& bend : of_fetches) CHECK(is_noticed(right, bend));
}

TEST_CASE("filter gradients by warpgroups: wrong maps and coordinates are noticed") {
    const map_bend of_images[]{
        [](map& m) { ++m.lower[0]; },   [](map& m) { ++m.upper[0]; },   [](map& m) { --m.upper[0]; },
        [](map& m) { ++m.steps[0]; },   [](map& m) { ++m.extents[0]; }, // what pads rows is NaN
        [](map& m) { --m.extents[0]; }, [](map& m) { --m.extents[1]; }, [](map& m) { m.strides[3] += 16; },
    };
    const map_bend of_filters[]{[](map& m) { --m.extents[0]; }, [](map& m) { --m.extents[1]; },
                                [](map& m) { m.strides[2] += 16; }};
    const fetch_bend of_fetches[]{
        [](int& channel, int&, int&, int&, int&, int&) { channel += 1; },
        [](int&, int& column, int&, int&, int&, int&) { column += 1; },
        [](int&, int&, int&, int& image, int&, int&) { image += 1; },
        [](int&, int&, int&, int&, int& column, int&) { column /= 2; },
    };
    for (const auto& g :
         {geometry(5, 7, 9, 5, 3, 2, 6, 2, 1, 1, 1, 1, 0, 2, 1), geometry(5, 1, 31, 4, 1, 3, 6, 1, 4)}) {
        const auto right = [&] { return filter_gradient_is_right<float, small_tile>(g); };
        REQUIRE(right());
        for (const auto& bend : of_images) CHECK(is_noticed(right, bend, true));
        for (const auto& bend : of_filters) CHECK(is_noticed(right, bend, false));
        for (const auto& bend : of_fetches) CHECK(is_noticed(right, bend));
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

// The last is computed in chunks of images. Sums of whole numbers stay below 2^24.
TEST_CASE("filter gradients by warpgroups: what our kernel computes, at the sizes of layers") {
    if (!is_here()) return;
    for (const auto& g :
         {geometry(67, 24, 24, 150, 5, 5, 300), geometry(40, 1, 1400, 30, 1, 20, 64),
          geometry(64, 32, 32, 64, 3, 3, 128, 2, 2, 1, 1, 1, 1), geometry(600, 12, 24, 150, 1, 2, 300)}) {
        const sizes n(g);
        const device_array<float> x(whole_numbers<float>(n.x, 1, 1)), dy(whole_numbers<float>(n.y, 2, 1)), dw(n.w);
        using tile = kernels::tile_shape<64, 64, 16, 4, 8>;
        const kernels::filter_gradient_problem<float> p(g, x.data(), dy.data(), dw.data());
        const auto tiles = [](int extent, int of) { return static_cast<unsigned>((extent + of - 1) / of); };
        launch({{tiles(p.m, tile::BM), tiles(p.n, tile::BN)}, static_cast<unsigned>(tile::threads)},
               kernels::implicit_gemm<kernels::filter_gradient_problem<float>, tile, 1>, p);
        const std::vector<float> right = dw.host();
        const auto computed = [&] { return run<float>(g, filter_gradient, {x.data(), dy.data(), nullptr}, n.w); };
        CHECK(computed() == right);
        CHECK(computed() == right);
        const auto narrow = [&]<class T>(std::type_identity<T>) {
            const device_array<T> a(narrowed<T>(x.host())), b(narrowed<T>(dy.host()));
            CHECK(run<T>(g, filter_gradient, {a.data(), b.data(), nullptr}, n.w) == narrowed<T>(right));
        };
        narrow(std::type_identity<tg::bfloat16>{});
        narrow(std::type_identity<tg::half>{});
    }
}
#endif

} // namespace library_convolution_test
