#include <cuda/device_array.hpp>

#include <tapegraph/cuda/ops/convolution/im2col_box.hpp>

#include <cuda/warpgroup_passes.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <type_traits>

namespace library_convolution_test {

using namespace warpgroup_testing;

namespace {

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
        CHECK((im2col_convolution(g, forward).images_innermost ||
               im2col_convolution(g, input_gradient).images_innermost));
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

TEST_CASE("convolutions by warpgroups: chunks of images, also of several chains") {
    const auto right = []<class T>(const tg::convolution_geometry& g, std::size_t limit, T) {
        const warpgroup_scratch s(im2col_convolution(g, forward), sizeof(T), limit);
        CHECK(s.images < g.batch);
        CHECK(s.bytes() <= limit);
        current_cut().limit = limit;
        CHECK(passes_are_right<T, small_tile>(g));
        current_cut() = {};
    };
    const auto plain = geometry(5, 6, 7, 13, 3, 2, 10, 1, 1, 1, 1, 1, 1), deep = geometry(3, 1, 4, 1500, 1, 3, 5);
    right(plain, 10'000, 0.0f), right(plain, 6'000, tg::half(0.0f));
    right(deep, 140'000, 0.0f), right(deep, 70'000, tg::bfloat16(0.0f));
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
    const auto large = geometry(9, 24, 24, 150, 5, 5, 300), in_chunks = geometry(1600, 12, 24, 150, 1, 2, 8);
    for (const auto& g : {large, in_chunks}) {
        const sizes n(g);
        const device_array<float> x(whole_numbers<float>(n.x, 1)), w(whole_numbers<float>(n.w, 2)), y(n.y);
        using tile = kernels::tile_shape<64, 64, 16, 4, 8>;
        const kernels::forward_problem<float> p(g, false, x.data(), w.data(), nullptr, false, y.data());
        const auto tiles = [](int extent, int of) { return static_cast<unsigned>((extent + of - 1) / of); };
        launch({{tiles(p.m, tile::BM), tiles(p.n, tile::BN)}, static_cast<unsigned>(tile::threads)},
               kernels::implicit_gemm<kernels::forward_problem<float>, tile, 1>, p);
        CHECK(run<float>(g, forward, {x.data(), w.data(), nullptr}, n.y) == y.host());
    }
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
