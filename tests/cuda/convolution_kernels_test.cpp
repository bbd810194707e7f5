#include <cuda/device_array.hpp>

#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/implicit_gemm.cuh>
#include <tapegraph/cuda/kernels/tensor_gemm.cuh>

#include <cuda/convolution_reference.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace convolution_kernels_test {

using namespace convolution_testing;
namespace kernels = tapegraph::cuda::kernels;

namespace {

using small_tile = kernels::tile_shape<32, 32, 8, 4, 4>;
using large_tile = kernels::tile_shape<64, 160, 16, 8, 8>;
using large_double_tile = kernels::tile_shape<64, 96, 16, 8, 8>; // devices have 48 KiB of static shared memory
using warps_tile = kernels::tensor_tile<32, 48, 16, 2, 2, 3>;
using odd_tile = kernels::tensor_tile<64, 104, 8, 2, 1, 4>; // 26 copies per step: threads do not keep their column

unsigned tiles_of(int extent, int tile) { return static_cast<unsigned>((extent + tile - 1) / tile); }

/// Runs a problem as float multiply-adds in tiles, V elements at once.
template <class Tile, int V>
struct multiply_adds {
    static constexpr int width = V;
    template <class T>
    static constexpr int depth = Tile::BK; // of a step along k
    template <class Problem>
    static void run(const Problem& p) {
        launch({{tiles_of(p.m, Tile::BM), tiles_of(p.n, Tile::BN), static_cast<unsigned>(p.groups * p.splits)},
                static_cast<unsigned>(Tile::threads)},
               kernels::implicit_gemm<Problem, Tile, V>, p);
    }
};
/// Runs a problem on tensor cores.
template <class Tile, int V, kernels::tensor_precision Precision = kernels::tensor_precision::tf32>
struct tensor_cores {
    static constexpr int width = V;
    template <class T>
    static constexpr int depth = kernels::tile_depth<Tile, T>;
    template <class Problem>
    static void run(const Problem& p) {
        launch({{tiles_of(p.m, Tile::BM), tiles_of(p.n, Tile::BN), static_cast<unsigned>(p.groups * p.splits)},
                static_cast<unsigned>(Tile::threads),
                kernels::tensor_gemm_shared_bytes<Problem, Tile, V>},
               kernels::tensor_gemm<Problem, Tile, V, Precision>, p);
    }
};

/// Runs a problem in `splits` parts and adds them.
template <class Way, class Problem>
auto result_of(Problem p, std::int64_t count, int splits) {
    using T = typename Problem::T;
    const device_array<T> got(count), partial(count * splits);
    p.splits = splits;
    p.width = Way::width;
    p.out = splits > 1 ? partial.data() : got.data();
    Way::run(p);
    if (splits > 1)
        launch({2, 64}, kernels::sum_splits<T>, partial.data(), got.data(), count, splits, nullptr, 1, false);
    return got.host();
}

/// The same whole, in three parts, and in more than there are steps: some have nothing to add and must write zeros. A step
/// is `depth` along k, or, where taps are walked through one by one, along the channels of a tap.
template <class Way, class Problem, class T>
void check_splits(const tg::convolution_geometry& g, const Problem& p, const std::vector<T>& want) {
    const auto steps = static_cast<int>(p.k / Way::template depth<T> + g.kernel_height * g.kernel_width);
    for (const int splits : {1, 3, std::min(steps + 2, 50)})
        CHECK(result_of<Way>(p, static_cast<std::int64_t>(want.size()), splits) == want);
}

// TF32 represents these integers exactly.
template <class Way, class T>
void check_passes(const tg::convolution_geometry& g, bool batch_innermost = false) {
    const sizes n(g);
    const expected<T> want(g);
    const device_array<T> inputs[]{want.x, want.w, want.dy, want.bias};
    const T *const x = inputs[0].data(), *const w = inputs[1].data(), *const dy = inputs[2].data();
    check_splits<Way>(g, kernels::forward_problem<T>(g, batch_innermost, x, w, nullptr, false, nullptr), want.y);
    check_splits<Way>(g, kernels::input_gradient_problem<T>(g, batch_innermost, dy, w, nullptr), want.dx);
    check_splits<Way>(g, kernels::filter_gradient_problem<T>(g, x, dy, nullptr), want.dw);
    CHECK(result_of<Way>(kernels::forward_problem<T>(g, batch_innermost, x, w, inputs[3].data(), true, nullptr), n.y,
                         1) == want.activated);
}

// Channels are multiples of 4, so that neighbours can be copied together.
const tg::convolution_geometry wide_geometries[]{
    geometry(2, 6, 5, 4, 3, 3, 8, 1, 1, 1, 1, 1, 1),
    geometry(1, 5, 7, 8, 2, 3, 24, 2, 1, 0, 1, 1, 1, 1, 2, 2),
    geometry(3, 1, 19, 4, 1, 5, 36, 1, 2, 0, 2, 0, 1),
};

} // namespace

TEST_CASE("convolution kernels: all passes are exact at awkward sizes") {
    for (const auto& g : geometries) in_orders([&] { check_passes<multiply_adds<small_tile, 1>, float>(g); });
}

TEST_CASE("convolution kernels: batch innermost") {
    for (const auto& g : geometries) in_orders([&] { check_passes<multiply_adds<small_tile, 1>, float>(g, true); });
    const auto many = geometry(37, 3, 4, 5, 3, 3, 6, 1, 1, 1, 1, 1, 1); // a tile of 32 rows covers one or two pixels
    in_orders([&] { check_passes<multiply_adds<small_tile, 1>, float>(many, true); });
    const auto long_taps = geometry(9, 1, 50, 2, 1, 35, 3, 1, 1, 0, 20, 0, 20); // more than the mask has bits
    in_orders([&] { check_passes<multiply_adds<small_tile, 1>, float>(long_taps, true); });
    const auto strided = geometry(33, 5, 4, 5, 3, 3, 6, 2, 3, 1, 1, 1, 1);
    in_orders([&] { check_passes<multiply_adds<small_tile, 1>, float>(strided, true); });
}

TEST_CASE("convolution kernels: several elements at once, double, and a larger tile") {
    for (const auto& g : wide_geometries) {
        in_orders([&] { check_passes<multiply_adds<small_tile, 4>, float>(g, true); });
        in_orders([&] { check_passes<multiply_adds<large_tile, 2>, float>(g); });
        in_orders([&] { check_passes<multiply_adds<small_tile, 2>, double>(g); });
    }
    in_orders([&] { check_passes<multiply_adds<large_double_tile, 1>, double>(geometries[10]); });
}

TEST_CASE("convolution on tensor cores: all passes are exact for whole numbers") {
    using kernels::tensor_precision;
    for (const auto& g : geometries) in_orders([&] { check_passes<tensor_cores<warps_tile, 1>, float>(g); });
    for (const auto& g : wide_geometries) {
        in_orders([&] { check_passes<tensor_cores<warps_tile, 2>, float>(g, true); });
        in_orders([&] { check_passes<tensor_cores<odd_tile, 4>, float>(g); });
        in_orders([&] { check_passes<tensor_cores<warps_tile, 4, tensor_precision::tf32x3>, float>(g); });
    }
}

namespace {

// The integers of `expected` fit into 8 bits.
template <class Way, class Element>
void check_narrow_passes(const tg::convolution_geometry& g, bool batch_innermost = false) {
    const sizes n(g);
    const expected<float> want(g);
    const auto narrow = [](const std::vector<float>& v) {
        std::vector<Element> to;
        for (const float x : v) to.push_back(static_cast<Element>(x));
        return device_array<Element>(to);
    };
    const auto x = narrow(want.x), w = narrow(want.w), dy = narrow(want.dy);
    for (int splits : {1, 3}) {
        const kernels::forward_problem<Element> y(g, batch_innermost, x.data(), w.data(), nullptr, false, nullptr);
        CHECK(result_of<Way>(y, n.y, splits) == want.y);
        const kernels::input_gradient_problem<Element> dx(g, batch_innermost, dy.data(), w.data(), nullptr);
        CHECK(result_of<Way>(dx, n.x, splits) == want.dx);
        const kernels::filter_gradient_problem<Element> dw(g, x.data(), dy.data(), nullptr);
        CHECK(result_of<Way>(dw, n.w, splits) == want.dw);
    }
}

} // namespace

TEST_CASE("convolution on tensor cores: 16-bit elements, whole numbers are exact") {
    const tg::convolution_geometry even_geometries[]{
        geometry(2, 6, 5, 2, 3, 3, 6),
        geometry(1, 9, 11, 34, 3, 3, 50, 3, 2, 1, 2, 2, 1),
        geometry(3, 4, 4, 8, 3, 3, 8, 2, 2, 1, 1, 1, 1, 1, 1, 2),
        geometry(1, 1, 41, 66, 1, 5, 18, 1, 1, 0, 2, 0, 2),
    };
    for (const auto& g : even_geometries) {
        in_orders([&] { check_narrow_passes<tensor_cores<warps_tile, 2>, tg::bfloat16>(g); });
        check_narrow_passes<tensor_cores<warps_tile, 2>, tg::half>(g, true);
    }
    const auto eights = geometry(2, 6, 5, 16, 3, 3, 40, 1, 1, 1, 1, 1, 1);
    in_orders([&] { check_narrow_passes<tensor_cores<warps_tile, 8>, tg::half>(eights, true); });
    check_narrow_passes<tensor_cores<kernels::tensor_tile<64, 104, 16, 2, 1, 3>, 8>, tg::bfloat16>(eights);
}

// Two chains and one more product, so that sums go through memory twice.
TEST_CASE("convolution kernels: long sums are added in pieces") {
    const int terms = 2 * kernels::longest_chain + 1;
    const auto pixels = geometry(1, 1, terms, 1, 1, 1, 2), channels = geometry(3, 1, 1, terms, 1, 1, 2);
    const expected<float> filter(pixels), forward(channels);
    const device_array<float> a[]{filter.x, filter.dy}, b[]{forward.x, forward.w, forward.bias};
    const kernels::filter_gradient_problem<float> dw(pixels, a[0].data(), a[1].data(), nullptr);
    CHECK(result_of<multiply_adds<small_tile, 1>>(dw, 2, 1) == filter.dw);
    CHECK(result_of<tensor_cores<warps_tile, 1>>(dw, 2, 1) == filter.dw);
    const kernels::forward_problem<float> y(channels, false, b[0].data(), b[1].data(), b[2].data(), true, nullptr);
    CHECK(result_of<multiply_adds<small_tile, 1>>(y, 6, 1) == forward.activated);
    CHECK(result_of<tensor_cores<warps_tile, 1>>(y, 6, 1) == forward.activated);
}

// The operands are not exact in TF32: one rounding costs up to 2^-11 per factor, three products all
// but a few units of float.
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
    const device_array<float> dx(x), dw(w);
    const kernels::forward_problem<float> p(g, false, dx.data(), dw.data(), nullptr, false, nullptr);
    const double once = error(result_of<tensor_cores<warps_tile, 4>>(p, n.y, 1));
    CHECK(once < 1e-3);
    CHECK(once > 1e-5); // the test did measure TF32
    CHECK(error(result_of<tensor_cores<warps_tile, 4, kernels::tensor_precision::tf32x3>>(p, n.y, 1)) < 2e-6);
}

#ifdef TG_SIMT
// Sums of 4,096 positive products of numbers that are exact in TF32 and bfloat16, on cores that
// truncate: a step may lose 2^-23 of the sum for each of its products and once more, always
// downwards. With tf32x3 eight products at a time are added outside, where rounding errors have
// both signs.
TEST_CASE("convolution on tensor cores: what truncation may cost") {
    constexpr int terms = 4096;
    const auto g = geometry(1, 1, 1, terms, 1, 1, 4);
    std::vector<float> x(terms), w(std::size_t{4} * terms);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(128 + i * 37 % 127) / 64;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(128 + i * 53 % 125) / 64;
    double exact[4]{};
    for (std::size_t i = 0; i < w.size(); ++i) exact[i % 4] += static_cast<double>(x[i / 4]) * w[i];
    const simt::with_settings set(simt::order::forward);
    simt::current_settings().truncating = true;
    // The largest deficit, and the largest excess.
    const auto errors = [&](const std::vector<float>& got) {
        std::pair<double, double> worst{0, 0};
        for (std::size_t i = 0; i < 4; ++i) {
            const double missing = (exact[i] - got[i]) / exact[i];
            worst = {std::max(worst.first, missing), std::max(worst.second, -missing)};
        }
        return worst;
    };
    const auto of = [&]<class Way, class Element>(Way, Element) {
        const std::vector<Element> a(x.begin(), x.end()), b(w.begin(), w.end());
        const device_array<Element> da(a), db(b);
        return errors(result_of<Way>(
            kernels::forward_problem<Element>(g, false, da.data(), db.data(), nullptr, false, nullptr), 4, 1));
    };
    const double ulp = std::ldexp(1.0, -23);
    const auto tf32 = of(tensor_cores<warps_tile, 4>{}, 0.0f);
    CHECK(tf32.first > 16 * ulp); // the test did measure truncation
    CHECK(tf32.first < terms / 8 * 9 * ulp);
    CHECK(tf32.second == 0);
    const auto narrow = of(tensor_cores<warps_tile, 2>{}, tg::bfloat16{});
    CHECK(narrow.first > 8 * ulp);
    CHECK(narrow.first < terms / 16 * 17 * ulp);
    CHECK(narrow.second == 0);
    const auto exactly = of(tensor_cores<warps_tile, 4, kernels::tensor_precision::tf32x3>{}, 0.0f);
    CHECK(std::max(exactly.first, exactly.second) < 16 * ulp);
}
#endif

TEST_CASE("division by multiplication is exact") {
    for (std::uint32_t d : {1u, 2u, 3u, 5u, 7u, 48u, 150u, 641u, 2304u, 65535u, 65536u, 1000003u, 0x7FFFFFFFu}) {
        const kernels::divisor by(d);
        for (std::uint64_t base : {0ull, 1ull * d, 2ull * d, 1000ull * d, 0x7FFFFFFFull / d * d, 0x7FFFFFFFull})
            for (std::int64_t n = static_cast<std::int64_t>(base) - 2; n <= static_cast<std::int64_t>(base) + 2; ++n)
                if (n >= 0 && n <= 0x7FFFFFFF) CHECK(by.quotient(static_cast<std::uint32_t>(n)) == n / d);
    }
}

#if defined(TG_SIMT) && !defined(SIMT_TSAN)
TEST_CASE("convolution kernels: no barrier is there for nothing") {
    const auto g = geometry(2, 9, 9, 6, 3, 3, 40, 1, 1, 1, 1, 1, 1);
    const expected<float> e(g);
    const kernels::forward_problem<float> p(g, false, e.x.data(), e.w.data(), nullptr, false, nullptr);
    const auto count = static_cast<std::int64_t>(e.y.size());
    const auto check = [&](auto way, std::size_t barriers) {
        std::size_t found = 0;
        const auto unnoticed =
            simt::unnoticed_barriers([&] { return result_of<decltype(way)>(p, count, 1) == e.y; }, found);
        CHECK(unnoticed == std::vector<std::string>{});
        CHECK(found == barriers);
    };
    check(multiply_adds<small_tile, 1>{}, 1);
    check(multiply_adds<small_tile, 2>{}, 1);
    check(tensor_cores<warps_tile, 2>{}, 1);
}

TEST_CASE("convolution kernels: every register of a fragment is where it belongs, and an operand ends where it ends") {
    // 54 terms per sum: integers, so that sums are exact; the last step of the loop has fewer terms
    // than a fragment holds.
    const auto g = geometry(2, 9, 9, 6, 3, 3, 40, 1, 1, 1, 1, 1, 1);
    const auto check = [&]<class Way, class Element>(Way, Element, std::size_t calls) {
        const expected<float> e(g);
        const std::vector<Element> x(e.x.begin(), e.x.end()), w(e.w.begin(), e.w.end());
        const kernels::forward_problem<Element> p(g, false, x.data(), w.data(), nullptr, false, nullptr);
        const auto count = static_cast<std::int64_t>(e.y.size());
        const auto right = result_of<Way>(p, count, 1); // other tests compare it with the CPU's
        std::size_t found = 0;
        CHECK(simt::unnoticed_swaps([&] { return result_of<Way>(p, count, 1) == right; }, found) ==
              std::vector<std::string>{});
        CHECK(found == calls);
        CHECK(simt::unnoticed_ends([&] { return result_of<Way>(p, count, 1) == right; }, found) ==
              std::vector<std::string>{});
        CHECK(found > 0);
    };
    check(tensor_cores<warps_tile, 2>{}, 0.0f, 1);
    check(tensor_cores<warps_tile, 2>{}, tg::bfloat16{}, 1);
    check(tensor_cores<warps_tile, 2>{}, tg::half{}, 1);
}
#endif

#ifdef TG_SIMT // it runs the device's functions
namespace {

/// Whether the 128 bytes that some lanes of a warp read or write at once are in 32 different banks;
/// lane i accesses `place(i)`.
template <class T, class F>
bool in_different_banks(int lanes, int together, const F& place) {
    std::set<int> banks;
    for (int lane = 0; lane < lanes; ++lane)
        for (int i = 0; i < together; ++i) banks.insert((place(lane) + i) % (128 / static_cast<int>(sizeof(T))));
    return static_cast<int>(banks.size()) * static_cast<int>(sizeof(T)) == 128;
}

template <class Tile, int Lines, bool AlongK, int V>
void check_banks_of_copies() {
    using operand = kernels::staged_operand<Tile, float, Lines, AlongK, V>;
    for (int i = 0; i < operand::each; ++i)
        for (int first = 0; first < Tile::threads; first += 32 / V)
            CHECK(in_different_banks<float>(32 / V, V, [&](int lane) { return operand::copied_to(first + lane, i); }));
    for (int line = 0; line + 8 <= Lines; line += 8)
        for (int step = 0; step < Tile::BK; step += 4)
            CHECK(in_different_banks<float>(32, 1, [&](int lane) {
                const int at = operand::moved(operand::at(lane / 4, lane % 4), line, step);
                CHECK(at == operand::at(line + lane / 4, step + lane % 4));
                return at;
            }));
}
/// The writes of implicit_gemm across a tile's rows.
template <class T, class Tile, int V>
void check_banks_of_turned_lines() {
    using walk = kernels::loader<Tile::threads, Tile::BM, Tile::BK, true, V>;
    constexpr int lanes = 128 / static_cast<int>(sizeof(T));
    for (int first = 0; first < Tile::threads; first += lanes)
        CHECK(in_different_banks<T>(lanes, 1, [&](int lane) {
            const int step = walk::step(first + lane, 0), line = walk::line(first + lane, 0);
            return step * (Tile::BM + 4) + (line ^ kernels::exchanged<T, Tile::BK, true, V>(step));
        }));
}

} // namespace

TEST_CASE("convolution kernels: lanes meet in no bank") {
    using wide = kernels::tensor_tile<128, 160, 16, 2, 4, 4>;
    using narrow = kernels::tensor_tile<64, 64, 16, 2, 2, 4>;
    check_banks_of_copies<wide, 128, true, 4>();
    check_banks_of_copies<wide, 160, true, 2>();
    check_banks_of_copies<wide, 128, false, 4>();
    check_banks_of_copies<narrow, 64, true, 1>();
    check_banks_of_copies<narrow, 64, false, 2>();
    check_banks_of_copies<odd_tile, 104, true, 4>();
    check_banks_of_copies<kernels::tensor_tile<64, 64, 32, 2, 2, 2>, 64, true, 4>();
    using tile = kernels::tile_shape<64, 64, 16, 4, 8>;
    check_banks_of_turned_lines<float, tile, 1>();
    check_banks_of_turned_lines<float, tile, 2>();
    check_banks_of_turned_lines<float, tile, 4>();
    check_banks_of_turned_lines<double, tile, 1>();
    check_banks_of_turned_lines<double, tile, 2>();
    check_banks_of_turned_lines<float, small_tile, 4>();
}
#endif

} // namespace convolution_kernels_test
