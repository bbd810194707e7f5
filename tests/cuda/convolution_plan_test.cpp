#define TG_SIMT
#include <simt/words.hpp>

#include <tapegraph/cuda/kernels/operand_walk.cuh>
#include <tapegraph/cuda/ops/convolution/plans.hpp>

#include <cuda/convolution_reference.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace convolution_plan_test {

using namespace convolution_testing;
using namespace tapegraph::cuda;
namespace kernels = tapegraph::cuda::kernels;
using tapegraph::math_mode;

namespace {

constexpr convolution_pass passes[]{convolution_pass::forward, convolution_pass::input_gradient,
                                    convolution_pass::filter_gradient};
constexpr math_mode modes[]{math_mode::fp32, math_mode::tf32, math_mode::tf32x3};

// The layers of a network of 3 -> 150 -> 300 -> 200 channels on 50 x 50 pixels.
tg::convolution_geometry second_layer(int batch) { return geometry(batch, 24, 24, 150, 5, 5, 300); }
tg::convolution_geometry third_layer(int batch) { return geometry(batch, 10, 10, 300, 3, 3, 200); }

const product_tile& tile_of(const convolution_plan& p) {
    return (p.algorithm == convolution_algorithm::tensor_cores ? tensor_tiles : multiply_add_tiles)[p.tile];
}
std::int64_t blocks_of(const tg::convolution_geometry& g, convolution_pass pass, const convolution_plan& p) {
    const detail::product_extents e(g, pass);
    const product_tile& t = tile_of(p);
    return (e.m + t.rows - 1) / t.rows * ((e.n + t.columns - 1) / t.columns) * g.groups * p.splits;
}

} // namespace

TEST_CASE("convolution plans: tensor cores only for floats, where requested and available") {
    for (auto pass : passes)
        for (auto mode : modes)
            for (bool cores : {false, true})
                for (std::size_t element : {sizeof(float), sizeof(double)}) {
                    const auto p = choose_convolution(second_layer(32), pass, element, mode, {132, cores});
                    const bool tensor = cores && mode != math_mode::fp32 && element == 4;
                    CHECK((p.algorithm != convolution_algorithm::winograd || element == 4));
                    if (is_whole(p.algorithm)) { // in TF32 our kernels are never slower
                        CHECK((!tensor || mode == math_mode::tf32x3));
                        continue;
                    }
                    CHECK((p.algorithm == convolution_algorithm::tensor_cores) == tensor);
                    CHECK(p.exact == (tensor && mode == math_mode::tf32x3));
                    CHECK((element == 4 || p.tile == 0));
                    CHECK((!p.exact || tile_of(p).exact));
                }
}

TEST_CASE("convolution plans: vectors divide the channels that are read along") {
    const auto vector = [](int in, int out, convolution_pass pass, std::size_t element = sizeof(float),
                           int groups = 1) {
        const auto p = choose_convolution(geometry(8, 9, 9, in, 3, 3, out, 1, 1, 0, 0, 0, 0, 1, 1, groups), pass,
                                          element, math_mode::tf32, {}, 0); // no room for windows
        CHECK(p.vector >= (element == 4 ? tile_of(p).vector : 1));
        return p.vector;
    };
    CHECK(vector(150, 300, convolution_pass::forward) == 2);
    CHECK(vector(150, 300, convolution_pass::input_gradient) == 4); // reads dy and w along the 300 channels
    CHECK(vector(150, 300, convolution_pass::filter_gradient) == 2);
    CHECK(vector(300, 200, convolution_pass::forward) == 4);
    CHECK(vector(300, 200, convolution_pass::forward, sizeof(double)) == 2);
    CHECK(vector(33, 64, convolution_pass::forward) == 1);
    CHECK(vector(24, 40, convolution_pass::forward, sizeof(float), 2) == 4);
    CHECK(vector(20, 40, convolution_pass::forward, sizeof(float), 2) == 2);
}

TEST_CASE("convolution plans: tiles suit awkward channels") {
    const auto columns = [](const tg::convolution_geometry& g, convolution_pass pass, math_mode mode) {
        // Floats without room for windows, so that the library cannot compute them.
        const std::size_t limit = mode == math_mode::fp32 ? 1000 : convolution_workspace_limit;
        return tile_of(choose_convolution(g, pass, sizeof(float), mode, {132, true}, limit)).columns;
    };
    CHECK(columns(third_layer(128), convolution_pass::forward, math_mode::tf32) == 104);
    for (int batch : {128, 1024}) {
        CHECK(columns(second_layer(batch), convolution_pass::forward, math_mode::tf32) == 160);
        CHECK(columns(second_layer(batch), convolution_pass::input_gradient, math_mode::tf32) >= 104);
        CHECK(columns(second_layer(batch), convolution_pass::forward, math_mode::fp32) == 160);
        CHECK(columns(geometry(batch, 28, 28, 64, 3, 3, 128), convolution_pass::forward, math_mode::fp32) == 128);
    }
}

TEST_CASE("convolution plans: small products are split until nearly all of the device is busy") {
    for (auto mode : modes)
        for (auto pass : passes) {
            const auto p = choose_convolution(second_layer(1), pass, sizeof(float), mode, {132, true});
            if (!is_whole(p.algorithm)) CHECK(blocks_of(second_layer(1), pass, p) >= 120);
        }
    // Few results of many pixels each.
    const auto wide = geometry(64, 64, 64, 16, 3, 3, 16);
    const detail::tiled_products tiled(wide, convolution_pass::filter_gradient, sizeof(float), math_mode::fp32,
                                       {132, true}, convolution_workspace_limit);
    CHECK(blocks_of(wide, convolution_pass::filter_gradient, tiled.plan_of(tiled.best())) >= 132);
    // A pass that fills the device alone is not split.
    CHECK(choose_convolution(second_layer(1024), convolution_pass::forward, 4, math_mode::fp32, {132, true}).splits ==
          1);
}

TEST_CASE("convolution plans: scratch memory stays below its limit") {
    for (auto mode : modes)
        for (auto pass : passes)
            for (int batch : {1, 7, 128}) {
                const auto g = third_layer(batch);
                const detail::product_extents e(g, pass);
                const auto bytes = static_cast<std::size_t>(e.m * e.n) * sizeof(float);
                for (std::size_t limit : {std::size_t{0}, bytes, 2 * bytes, 5 * bytes, convolution_workspace_limit}) {
                    const auto p = choose_convolution(g, pass, sizeof(float), mode, {132, true}, limit);
                    CHECK(p.workspace <= limit);
                    CHECK(p.workspace == (p.algorithm == convolution_algorithm::product
                                              ? detail::chunk_bytes(g, 4, limit)
                                          : p.algorithm == convolution_algorithm::winograd
                                              ? detail::winograd_chunks(g, pass, limit).workspace()
                                          : p.splits > 1 ? static_cast<std::size_t>(p.splits) * bytes
                                                         : 0));
                    if (limit < 2 * bytes) CHECK(p.splits == 1);
                }
            }
}

TEST_CASE("convolution plans: batches of more pixels than kernels count are cut") {
    const auto most = [](int batch) { return geometry(batch, 1000, 1000, 8, 3, 3, 8); };
    for (auto pass : passes) {
        CHECK(choose_convolution(most(2147), pass, 4, math_mode::fp32, {}).algorithm ==
              convolution_algorithm::multiply_adds);
        const auto p = choose_convolution(most(2148), pass, 4, math_mode::fp32, {});
        CHECK(p.algorithm == convolution_algorithm::product);
        CHECK(p.workspace == detail::chunk_bytes(most(2148), 4, convolution_workspace_limit));
    }
    // Windows so small that they would all fit into the memory.
    const auto thin = geometry(3000, 1000, 1000, 1, 1, 1, 1);
    const std::int64_t images = detail::images_of_chunk(thin, 4, std::size_t{1} << 40);
    CHECK(images * 1000000 <= 0x7FFFFFFF);
    CHECK((images + 1) * 1000000 > 0x7FFFFFFF);
}

TEST_CASE("convolution plans: outputs that see one pixel are the library's products, without scratch memory") {
    const auto pixels = geometry(32, 56, 56, 64, 1, 1, 256);
    for (auto pass : passes)
        for (auto mode : modes)
            for (std::size_t element : {sizeof(float), sizeof(double)}) {
                const auto p = choose_convolution(pixels, pass, element, mode, {132, true}, 0);
                CHECK(p.algorithm == convolution_algorithm::product);
                CHECK(p.workspace == 0);
                CHECK(p.splits == 1);
            }
    CHECK(detail::images_of_chunk(pixels, 4, 1) == 32); // all at once
    // The images are not their own windows: a stride, padding, taps, groups.
    for (const auto& g : {geometry(2, 9, 9, 8, 1, 1, 8, 2, 2), geometry(2, 9, 9, 8, 1, 1, 8, 1, 1, 1, 1, 1, 1),
                          geometry(2, 9, 9, 8, 1, 2, 8), geometry(2, 9, 9, 16, 1, 1, 16, 1, 1, 0, 0, 0, 0, 1, 1, 2)})
        CHECK_FALSE(detail::is_pixelwise(g));
}

TEST_CASE("convolution plans: windows begin at multiples of 16 bytes") {
    CHECK(detail::window_pitch(second_layer(1), sizeof(float)) == 3752); // rounded up from 3750
    CHECK(detail::window_pitch(second_layer(1), sizeof(double)) == 3750);
    CHECK(detail::window_pitch(third_layer(1), sizeof(float)) == 2700);
    CHECK(detail::window_pitch(geometry(1, 9, 9, 3, 1, 1, 8), sizeof(float)) == 3); // the image's own
}

TEST_CASE("convolution plans: windows are written out where the library is thought to be sooner done") {
    // Large products of floats: cuBLAS reaches more of the peak than our tiles do, and gains more
    // than writing windows costs.
    auto g = second_layer(32);
    g.algorithm = tg::convolution_algorithm::direct; // Winograd's would be chosen
    const auto planned = [&](math_mode mode, std::size_t limit) {
        return choose_convolution(g, convolution_pass::input_gradient, 4, mode, {132, true}, limit);
    };
    const auto p = planned(math_mode::fp32, convolution_workspace_limit);
    CHECK(p.algorithm == convolution_algorithm::product);
    CHECK(p.workspace == detail::chunk_bytes(g, 4, convolution_workspace_limit));
    // The library is not used without room for windows, nor on tensor cores, nor where a few
    // launches take as long as the rest.
    CHECK(planned(math_mode::fp32, 1000).algorithm == convolution_algorithm::multiply_adds);
    CHECK(planned(math_mode::tf32, convolution_workspace_limit).algorithm == convolution_algorithm::tensor_cores);
    CHECK(choose_convolution(third_layer(1), convolution_pass::forward, 4, math_mode::fp32, {132, true}).algorithm ==
          convolution_algorithm::multiply_adds);
    // It is never used for groups.
    for (auto pass : passes)
        CHECK(choose_convolution(geometry(8, 24, 24, 150, 5, 5, 300, 1, 1, 0, 0, 0, 0, 1, 1, 2), pass, 4,
                                 math_mode::fp32, {132, true})
                  .algorithm == convolution_algorithm::multiply_adds);
}

TEST_CASE("convolution plans: a plan is cached, and for its own shape only") {
    known_convolution_plans known;
    const auto check = [&](const tg::convolution_geometry& g, convolution_pass pass, std::size_t element,
                           const convolution_device& device) {
        const convolution_plans& plans = known.of(g, pass, element, device);
        std::size_t most = 0;
        for (auto mode : modes) {
            const auto p = choose_convolution(g, pass, element, mode, device);
            const convolution_plan& k = plans[mode];
            CHECK(std::tuple(k.algorithm, k.tile, k.vector, k.splits, k.batch_innermost, k.exact, k.workspace) ==
                  std::tuple(p.algorithm, p.tile, p.vector, p.splits, p.batch_innermost, p.exact, p.workspace));
            most = std::max(most, p.workspace);
        }
        CHECK(plans.workspace == most);
    };
    // More shapes than there are entries, each requested twice in a row and again later.
    std::int64_t shapes = 0;
    for (int time = 0; time < 2; ++time)
        for (int batch = 1; batch <= 50; ++batch)
            for (auto pass : passes)
                for (int multiprocessors : {20, 132}) {
                    const std::int64_t before = known.made();
                    for (int again = 0; again < 2; ++again) {
                        check(third_layer(batch), pass, sizeof(float), {multiprocessors, true});
                        if (again == 1) CHECK(known.made() - before <= 1);
                    }
                    shapes += 1;
                }
    CHECK(known.made() >= shapes / 2); // each of them at least once
    const std::int64_t before = known.made();
    check(second_layer(3), convolution_pass::forward, sizeof(float), {132, true});
    check(second_layer(3), convolution_pass::forward, sizeof(double), {132, true});
    check(second_layer(3), convolution_pass::forward, sizeof(float), {132, false});
    CHECK(known.made() == before + 3);
    // After the extents follow the algorithm and bytes that may hold anything.
    tg::convolution_geometry same = second_layer(3);
    std::fill(reinterpret_cast<unsigned char*>(&same.algorithm + 1), reinterpret_cast<unsigned char*>(&same + 1), 1);
    check(same, convolution_pass::forward, sizeof(float), {132, false});
    CHECK(known.made() == before + 3);
    same.algorithm = tg::convolution_algorithm::direct;
    check(same, convolution_pass::forward, sizeof(float), {132, false});
    CHECK(known.made() == before + 4);
}

TEST_CASE("convolution plans: first layers") {
    const auto first = geometry(32, 50, 50, 3, 3, 3, 150);
    for (auto mode : modes) {
        const auto forward = choose_convolution(first, convolution_pass::forward, 4, mode, {132, true});
        const bool on_cores = mode == math_mode::tf32;
        CHECK(forward.algorithm ==
              (on_cores ? convolution_algorithm::few_channels_tensor_cores : convolution_algorithm::few_channels));
        CHECK(forward.workspace == 0);
        const auto filter = choose_convolution(first, convolution_pass::filter_gradient, 4, mode, {132, true});
        CHECK(filter.algorithm !=
              convolution_algorithm::few_channels); // a fifth to a third of the others' speed on an H200
        CHECK((filter.algorithm == convolution_algorithm::few_channels_tensor_cores) == on_cores);
        CHECK(filter.workspace <= convolution_workspace_limit);
    }
    for (const auto pass : {convolution_pass::forward, convolution_pass::filter_gradient}) {
        const auto older = choose_convolution(first, pass, 4, math_mode::tf32, {132, false});
        CHECK(older.algorithm != convolution_algorithm::few_channels_tensor_cores);
        const auto on_cores = detail::few_channels_tiling::on_tensor_cores(first, pass);
        CHECK(on_cores.columns == 160);
        CHECK(on_cores.tiles * on_cores.pixels == 32 * 48 * 48);
        CHECK(detail::few_channels_tiling::on_tensor_cores(geometry(1, 32, 32, 3, 3, 3, 64), pass).columns == 64);
    }
    const detail::few_channels_tiling t(first, convolution_pass::forward, 4);
    CHECK(t.columns == 160);
    CHECK(t.shared <= 48 * 1024);
    // A 48 x 48 output divides into tiles without waste.
    CHECK(t.tiles * t.pixels == 32 * 48 * 48);
    // A kernel whose weights fit into no block.
    const auto large = geometry(1, 64, 64, 3, 31, 31, 16);
    CHECK(!detail::few_channels_tiling(large, convolution_pass::forward, 4).valid);
}

TEST_CASE("convolution plans: the part of a product that meets the image") {
    for (const auto& g : geometries) {
        std::int64_t meet = 0, forward = 0, gradient = 0;
        for_each_product(g, [&](std::int64_t, std::int64_t, std::int64_t) { ++meet; });
        const std::int64_t each = g.kernel_height * g.kernel_width * g.group_in() * g.out_channels * g.batch;
        forward = g.out_height * g.out_width * each;
        gradient = g.in_height * g.in_width * each;
        CHECK(detail::useful_part(g, convolution_pass::forward) ==
              doctest::Approx(static_cast<double>(meet) / static_cast<double>(forward)));
        CHECK(detail::useful_part(g, convolution_pass::input_gradient) ==
              doctest::Approx(static_cast<double>(meet) / static_cast<double>(gradient)));
    }
}

namespace {
// The members that the walk along k needs of a problem.
struct walked_problem {
    kernels::convolution_shape s;
    int splits = 1;
    int taps() const { return s.taps(); }
    int kernel_width() const { return s.columns.taps; }
    int inner() const { return s.group_out; }
};
// The ratio of the steps of k that the tiles of an input gradient execute to those that meet an
// output.
double executed(const tg::convolution_geometry& g, bool batch_innermost, int rows, int depth) {
    const walked_problem p{kernels::convolution_shape(g, batch_innermost)};
    const int m = p.s.in_pixels.count(), k = p.s.taps() * p.s.group_out;
    double steps = 0;
    for (int first = 0; first < m; first += rows) {
        const auto needed = p.s.taps_of_inputs(first, std::min(first + rows, m) - 1);
        kernels::k_walk walk(p, depth, 0);
        for (walk.skip(p, needed, depth); walk.left > 0; ++steps)
            if (walk.next(p, depth)) walk.skip(p, needed, depth);
    }
    return steps * rows * depth /
           (detail::useful_part(g, convolution_pass::input_gradient) * static_cast<double>(m) * k);
}
} // namespace

// 5x5 taps over the 24 x 24 inputs of 20 x 20 outputs: 1.44 times the necessary work, by (24 /
// 20)^2. The 4 of 304 channels that are padding, and tiles that cover two pixels, cost a little.
// The steps of all splits together are those of all taps, once each and in order, whichever taps
// are skipped.
TEST_CASE("convolution plans: splits walk along all of k") {
    for (int channels : {1, 7, 16, 33})
        for (int splits : {1, 2, 3, 7, 50}) {
            walked_problem p{kernels::convolution_shape(geometry(2, 9, 8, 3, 3, 2, channels)), splits};
            for (const unsigned rows : {7u, 5u, 2u}) {
                const kernels::needed_taps needed{rows, 3u};
                std::vector<std::tuple<int, int, int>> got, want;
                for (int u = 0; u < 3; ++u)
                    for (int v = 0; v < 2; ++v)
                        for (int at = 0; at < channels; at += 16)
                            if (needed(u, v)) want.emplace_back(u, v, at);
                for (int split = 0; split < splits; ++split) {
                    kernels::k_walk walk(p, 16, split);
                    for (walk.skip(p, needed, 16); walk.left > 0;) {
                        got.emplace_back(walk.u, walk.v, walk.at);
                        if (walk.next(p, 16)) walk.skip(p, needed, 16);
                    }
                }
                CHECK(got == want);
            }
        }
}

TEST_CASE("convolution plans: batch innermost, input gradients skip what sees padding only") {
    for (int batch : {128, 1024}) {
        const auto g = second_layer(batch);
        CHECK(executed(g, false, 128, 16) > 1.2);
        CHECK(executed(g, true, 128, 16) < 1.03);
        CHECK(choose_convolution(g, convolution_pass::input_gradient, 4, math_mode::fp32, {}, 1000).batch_innermost);
        CHECK(!choose_convolution(g, convolution_pass::forward, 4, math_mode::fp32, {}).batch_innermost);
    }
    const auto same = geometry(64, 14, 14, 32, 3, 3, 64, 1, 1, 1, 1, 1, 1);
    CHECK(choose_convolution(same, convolution_pass::forward, 4, math_mode::fp32, {}).batch_innermost);
    // With a stride of 2 three of four taps meet no output.
    const auto strided = geometry(128, 16, 16, 32, 4, 4, 64, 2, 2, 1, 1, 1, 1);
    CHECK(executed(strided, false, 128, 16) > 3);
    CHECK(executed(strided, true, 128, 16) < 1.03);
}

} // namespace convolution_plan_test
