#include <cpu/convolution_check.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace convolution_test {

namespace {

struct padding {
    std::int64_t before, after;
};

std::int64_t extent(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation, padding p) {
    const std::int64_t room = in + p.before + p.after - (kernel - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
}

// The same geometry down and across would hide a mix-up of the two, so they always differ.
template <class T>
void matrix(std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups) {
    const padding paddings[] = {{0, 0}, {1, 1}, {0, 2}, {3, 1}, {5, 6}};
    for (const std::int64_t stride : {1, 2, 3})
        for (const std::int64_t dilation : {1, 2, 3})
            for (const auto& pad : paddings) {
                const std::int64_t kernel = 1 + (stride + dilation + pad.before) % 4;
                const std::int64_t stride_width = 1 + stride % 3, dilation_width = 1 + dilation % 2;
                const padding across{pad.after, pad.before};
                geometry g{};
                g.batch = (stride + dilation) % 2 == 0 ? 3 : 1;
                g.in_height = 7;
                g.in_width = 11;
                g.in_channels = in_channels;
                g.out_channels = out_channels;
                g.groups = groups;
                g.kernel_height = kernel;
                g.kernel_width = 4 - kernel / 2;
                g.stride_height = stride;
                g.stride_width = stride_width;
                g.dilation_height = dilation;
                g.dilation_width = dilation_width;
                g.pad_top = pad.before;
                g.pad_left = across.before;
                g.out_height = extent(g.in_height, g.kernel_height, stride, dilation, pad);
                g.out_width = extent(g.in_width, g.kernel_width, stride_width, dilation_width, across);
                check_everywhere<T>(g);
            }
}

} // namespace

TEST_CASE("convolution: strides, padding and dilation, float") {
    matrix<float>(1, 1, 1);
    matrix<float>(3, 17, 1);
    matrix<float>(5, 16, 1);
}
TEST_CASE("convolution: strides, padding and dilation, double") {
    matrix<double>(3, 5, 1);
    matrix<double>(2, 11, 1);
}
TEST_CASE("convolution: groups and depthwise") {
    matrix<float>(6, 4, 2);
    matrix<float>(5, 5, 5);
    matrix<float>(17, 17, 17);
    matrix<float>(3, 6, 3);
    matrix<double>(4, 6, 2);
    matrix<double>(3, 3, 3);
}
TEST_CASE("convolution: depthwise, several runs of outputs, strips of channels and parts of rows") {
    // batch, in height, width, channels, kernel, out height, width, channels, stride, padding, dilation, groups
    check_everywhere<float>({2, 9, 40, 35, 3, 3, 9, 40, 35, 1, 1, 1, 1, 1, 1, 35});
    check_everywhere<float>({1, 9, 41, 64, 5, 5, 5, 21, 64, 2, 2, 2, 2, 1, 1, 64});
    check_everywhere<float>({1, 11, 50, 40, 3, 4, 7, 41, 40, 1, 1, 0, 0, 2, 3, 40});
    // Steps from tap to tap that are those from output to output, by 3 and 5 taps in a row
    check_everywhere<float>({2, 6, 29, 37, 2, 5, 7, 29, 37, 1, 1, 1, 2, 1, 1, 37});
    check_everywhere<float>({1, 13, 47, 17, 5, 3, 5, 24, 17, 2, 2, 2, 2, 2, 2, 17});
    check_everywhere<float>({3, 1, 53, 6, 1, 5, 1, 49, 6, 1, 1, 0, 0, 1, 1, 6});
    check_everywhere<float>({70, 60, 3, 4, 3, 3, 60, 3, 4, 1, 1, 1, 1, 1, 1, 4});
    // Nine taps at once in the filter's gradient: one, two and parts of vectors of channels, taps and outputs apart
    check_everywhere<float>({2, 13, 23, 53, 3, 3, 6, 11, 53, 2, 2, 1, 1, 2, 2, 53});
    check_everywhere<float>({1, 5, 2, 80, 3, 3, 5, 4, 80, 1, 1, 1, 2, 1, 1, 80});
    check_everywhere<double>({3, 40, 60, 9, 3, 3, 40, 60, 9, 1, 1, 1, 1, 1, 1, 9});
}
TEST_CASE("convolution: depthwise, blocks of two rows") {
    // Images that are less than a block, one, and a block and a bit; padding by less than, as much as and more than a kernel
    for (const std::int64_t side : {1, 2, 7, 8, 17})
        for (const std::int64_t pad : {0, 1, 3, 4})
            for (const std::int64_t kernel : {3, 5, 7})
                for (const std::int64_t stride : {1, 2}) {
                    const std::int64_t width = side + 3, channels = 13 + 4 * pad + side % 3; // from 14 to 31
                    const padding same{pad, pad}, less{pad, std::max<std::int64_t>(0, pad - 1)};
                    const std::int64_t rows = extent(side, kernel, stride, 1, less);
                    const std::int64_t columns = extent(width, kernel, stride, 1, same);
                    check_everywhere<float>({2, side, width, channels, kernel, kernel, rows, columns, channels, stride,
                                             stride, pad, pad, 1, 1, channels});
                }
    // Blocks of the input's gradient that begin before the image: stride 2, first outputs at odd places
    check_everywhere<float>({1, 23, 23, 17, 3, 3, 14, 14, 17, 2, 2, 3, 3, 1, 1, 17});
    check_everywhere<float>({1, 8, 22, 40, 3, 3, 4, 11, 40, 2, 2, 0, 0, 1, 1, 40}); // same padding of an even image
    check_everywhere<float>({1, 9, 21, 33, 3, 3, 5, 10, 33, 2, 2, 1, 0, 1, 1, 33});
    check_everywhere<double>({2, 9, 21, 8, 3, 3, 5, 11, 8, 2, 2, 1, 1, 1, 1, 8});
    check_everywhere<double>({2, 9, 11, 13, 5, 5, 9, 11, 13, 1, 1, 2, 2, 1, 1, 13});
    // Channels for half a vector of AVX-512, and fewer
    for (const std::int64_t channels : {7, 8, 11, 15, 16})
        check_everywhere<float>({2, 7, 19, channels, 3, 3, 7, 19, channels, 1, 1, 1, 1, 1, 1, channels});
    for (const std::int64_t channels : {3, 4, 7})
        check_everywhere<double>({1, 5, 9, channels, 3, 3, 3, 8, channels, 1, 1, 0, 1, 1, 1, channels});
    // An output whose sum is of one tap, and one of none
    check_everywhere<float>({1, 1, 1, 16, 3, 3, 7, 5, 16, 1, 1, 4, 3, 1, 1, 16});
}

TEST_CASE("convolution: sizes") {
    // batch, in height, width, channels, kernel, out height, width, channels
    check_everywhere<float>({0, 5, 5, 3, 3, 3, 3, 3, 4});
    check_everywhere<float>({1, 1, 1, 1, 1, 1, 1, 1, 1});
    check_everywhere<float>({2, 2, 3, 4, 3, 5, 0, 0, 6}); // a kernel larger than the image: no output
    check_everywhere<double>({1, 23, 29, 3, 3, 3, 21, 27, 37});
    check_everywhere<float>({3, 24, 20, 150, 5, 5, 20, 16, 33});
    check_everywhere<float>({1, 10, 10, 31, 3, 3, 8, 8, 150});
    check_everywhere<float>({2, 50, 50, 3, 3, 3, 48, 48, 67});
    check_everywhere<float>({13, 3, 3, 17, 2, 2, 2, 2, 40}); // many images in one chunk of the filter gradient
    check_everywhere<float>({1153, 1, 1, 2, 1, 1, 1, 1, 1}); // the last chunk of the filter gradient is one number
    check_everywhere<double>({5, 4, 5, 150, 1, 1, 4, 5, 16});
    // Pixels of x a KiB apart and many panels of dy: the filter gradient gathers a tile's numbers
    check_everywhere<float>({3, 5, 7, 257, 1, 1, 5, 7, 131});
    check_everywhere<float>({2, 5, 4, 263, 3, 3, 3, 2, 70, 2, 2, 1, 1});
    check_everywhere<float>({1, 4, 6, 256, 2, 3, 4, 6, 129, 1, 1, 0, 2, 1, 2});
    check_everywhere<double>({1, 5, 5, 131, 1, 1, 3, 3, 67, 2, 2});
    // Several chunks, each of which fetches the next one: of rows, of images, of one part and of several, with padding
    check_everywhere<float>({1, 41, 37, 67, 1, 1, 41, 37, 131});
    check_everywhere<float>({5, 23, 19, 129, 1, 1, 23, 19, 3});
    check_everywhere<float>({2, 40, 33, 5, 3, 3, 40, 33, 7, 1, 1, 1, 1});
    check_everywhere<float>({1, 1, 1700, 64, 1, 1, 1, 1700, 70}); // chunks of a row
    // Same padding on an image smaller than the kernel.
    check_everywhere<float>({3, 2, 3, 5, 7, 5, 2, 3, 17, 1, 1, 3, 2});
}

TEST_CASE("convolution: kernel columns one by one, without the padding that they read") {
    // batch, in height, width, channels, kernel, out height, width, channels, stride, padding, dilation, groups
    check_everywhere<float>({2, 7, 7, 67, 3, 3, 7, 7, 37, 1, 1, 2, 2, 2, 2});
    check_everywhere<float>({1, 5, 9, 131, 3, 5, 5, 9, 67, 1, 1, 1, 2, 1, 1});    // contiguous kernel rows
    check_everywhere<float>({1, 6, 11, 64, 3, 3, 3, 6, 33, 2, 2, 3, 3, 3, 3});    // strides
    check_everywhere<float>({3, 6, 7, 114, 3, 3, 6, 7, 70, 1, 1, 2, 2, 2, 2, 2}); // groups, panels that end within them
    check_everywhere<float>({1, 4, 3, 100, 2, 4, 4, 3, 17, 1, 1, 1, 7, 1, 4});    // outputs of no, one and two columns,
    check_everywhere<float>({1, 3, 3, 90, 3, 3, 3, 11, 20, 1, 1, 1, 7, 1, 3});    // none that all outputs read
    check_everywhere<float>({1, 4, 300, 36, 3, 3, 4, 300, 5, 1, 1, 1, 90, 1, 90}); // rows of two blocks
    check_everywhere<float>({1, 5, 9, 500, 3, 3, 5, 9, 35, 1, 1, 2, 2, 2, 2});     // k in several chunks
    check_everywhere<double>({1, 6, 7, 70, 3, 3, 6, 7, 19, 1, 1, 2, 2, 2, 2});
    CHECK(cpu::detail::forward_plan({8, 14, 14, 256, 3, 3, 14, 14, 256, 1, 1, 2, 2, 2, 2}).by_columns);
    CHECK(!cpu::detail::forward_plan({8, 56, 56, 64, 3, 3, 56, 56, 64, 1, 1, 1, 1}).by_columns);
    // A last output of a row that a pooling ignores does not decide.
    for (const std::int64_t width : {4, 6, 8, 14, 20, 44, 46, 48}) {
        geometry even{1, 9, width + 1, 96, 3, 3, 9, width, 8, 1, 1, 2, 2, 2, 2}, odd = even;
        odd.out_width = width + 1;
        CHECK(cpu::detail::forward_plan(even).by_columns == cpu::detail::forward_plan(odd).by_columns);
    }
}

TEST_CASE("convolution: k in several chunks") {
    // One kernel row is 3 * 700 numbers and fills more than a panel's share of L2.
    check_everywhere<float>({1, 5, 7, 700, 5, 3, 1, 5, 35});
}

TEST_CASE("convolution: forward sums have the same bits on AVX2 and on AVX-512") {
    // batch, in height, width, channels, kernel, out height, width, channels, stride, padding, dilation, groups
    for (const geometry& g :
         {geometry{1, 9, 9, 500, 3, 3, 9, 9, 35, 1, 1, 2, 2, 2, 2}, // k in several chunks, by columns
          geometry{1, 11, 10, 500, 3, 3, 9, 8, 35},                 // and not
          geometry{2, 7, 7, 67, 3, 3, 7, 7, 37, 1, 1, 2, 2, 2, 2}}) {
        const expectation<float> inexact(g);
        std::vector<float> x = inexact.x, w = inexact.w;
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += 1.0f / static_cast<float>(i % 97 + 3);
        for (std::size_t i = 0; i < w.size(); ++i) w[i] += 1.0f / static_cast<float>(i % 89 + 3);
        std::vector<float> y[2];
        for (const int wide : {0, 1}) {
            cpu::set_instruction_set(wide == 1 ? cpu::instruction_set::avx512 : cpu::instruction_set::avx2);
            y[wide].resize(inexact.y.size());
            poisoned workspace(
                cpu::convolution_workspace_bytes<float>(g, convolution_pass::forward, tapegraph::thread_count()));
            cpu::convolution_forward(g, x.data(), w.data(), y[wide].data(), workspace.get());
        }
        CHECK(y[0] == y[1]);
    }
    cpu::set_instruction_set(cpu::supported_instruction_set());
}

TEST_CASE("convolution: one dimension, longer than a block") {
    check_everywhere<float>({2, 1, 1501, 3, 1, 7, 1, 1501, 5, 1, 1, 0, 3});
    check_everywhere<float>({1, 1, 2100, 2, 1, 3, 1, 1050, 9, 1, 2, 0, 1});
    check_everywhere<float>({2, 1, 1100, 20, 1, 5, 1, 1096, 33});
    check_everywhere<double>({1, 1, 1300, 4, 1, 3, 1, 1300, 4, 1, 1, 0, 64, 1, 64});
}

TEST_CASE("convolution: one line of few pixels, whose filters are read where they lie") {
    // In parts of 256 rows of k: less than one, one, one and a number, several; panels that are whole, and last ones that are not.
    check_everywhere<float>({1, 1, 1, 1, 1, 1, 1, 1, 1});
    check_everywhere<float>({1, 1, 30, 64, 1, 4, 1, 27, 64});
    check_everywhere<float>({1, 1, 11, 257, 1, 1, 1, 11, 32});
    check_everywhere<float>({1, 1, 17, 51, 1, 10, 1, 4, 101, 1, 2});
    check_everywhere<float>({1, 1, 52, 40, 1, 12, 1, 52, 48, 1, 1, 0, 5}); // same padding
    check_everywhere<float>({1, 1, 275, 7, 1, 20, 1, 256, 33});
    check_everywhere<float>({1, 1, 276, 7, 1, 20, 1, 257, 33}); // one pixel too many, and two lines
    check_everywhere<float>({2, 1, 52, 40, 1, 12, 1, 52, 48, 1, 1, 0, 5});
    check_everywhere<double>({1, 1, 40, 30, 1, 20, 1, 21, 37});
    check_everywhere<float>({1, 1, 20, 12, 1, 3, 1, 16, 8, 1, 1, 0, 0, 1, 2});    // taps apart
    check_everywhere<float>({1, 1, 20, 12, 1, 3, 1, 18, 8, 1, 1, 0, 0, 1, 1, 4}); // groups
}

// Numbers whose sums round: the tile kernel's bits for one pixel, too.
template <class T>
void check_one_pixel(std::int64_t k, std::int64_t n) {
    const geometry g{1, 1, 1, k, 1, 1, 1, 1, n};
    auto x = integers<T>(k, 1), w = integers<T>(k * n, 2), bias = integers<T>(n, 3);
    for (auto* values : {&x, &w, &bias})
        for (auto& value : *values) value *= T(0.1);
    poisoned packed(cpu::packed_filter_bytes<T>(g));
    cpu::pack_filters(g, w.data(), static_cast<T*>(packed.get()));
    for (const bool relu : {false, true})
        for (const T* const added : {static_cast<const T*>(nullptr), static_cast<const T*>(bias.data())})
            for (const int threads : {1, 2}) {
                tapegraph::set_thread_count(threads);
                poisoned workspace(cpu::convolution_workspace_bytes<T>(g, convolution_pass::forward, threads));
                std::vector<T> y(static_cast<std::size_t>(n)), by_tiles(y);
                cpu::convolution_forward(g, x.data(), w.data(), y.data(), workspace.get(), {added, relu});
                cpu::convolution_forward_packed(g, x.data(), static_cast<const T*>(packed.get()), by_tiles.data(),
                                                workspace.get(), {added, relu}, w.data());
                INFO("k " << k << " n " << n << " relu " << relu << " threads " << threads);
                CHECK(std::memcmp(y.data(), by_tiles.data(), y.size() * sizeof(T)) == 0);
            }
}

TEST_CASE("convolution: one pixel, rows of filters in the order in which they lie") {
    for (const auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        if (cpu::active_instruction_set() != set) continue;
        // Less than eight rows, parts of 256 and a bit; less than a vector, whole ones, more than a strip
        for (const std::int64_t k : {1, 7, 8, 255, 256, 257, 520})
            for (const std::int64_t n : {1, 15, 32, 67, 512, 1155}) check_one_pixel<float>(k, n);
        check_one_pixel<double>(300, 77);
    }
    tapegraph::set_thread_count(0);
    cpu::set_instruction_set(cpu::supported_instruction_set());
    check_everywhere<float>({1, 1, 1, 257, 1, 1, 1, 1, 515});
}

TEST_CASE("convolution: small images, which are unfolded while filters stay where they lie") {
    // batch, in height, width, channels, kernel, out height, width, channels, stride, padding, dilation
    check_everywhere<float>({1, 3, 3, 5, 3, 3, 1, 1, 256});               // one pixel
    check_everywhere<float>({1, 4, 4, 130, 3, 3, 4, 4, 257, 1, 1, 1, 1}); // k in two parts, a last panel of one number
    check_everywhere<float>({40, 4, 4, 5, 3, 3, 4, 4, 271, 1, 1, 1, 1});  // two blocks of images
    check_everywhere<float>({3, 8, 9, 35, 3, 2, 4, 4, 256, 2, 2, 1, 0});  // strides, and 35 channels to fold
    check_everywhere<float>({2, 9, 9, 3, 3, 3, 9, 9, 264, 1, 1, 2, 2, 2, 2}); // taps apart
    check_everywhere<float>({1, 3, 35, 4, 3, 3, 1, 33, 256});                 // rows longer than what is turned at once
    check_everywhere<float>({7, 9, 9, 40, 1, 1, 9, 9, 258});                  // x is its own unfolded form, two blocks
    check_everywhere<float>({1, 5, 7, 40, 1, 1, 5, 6, 258});                  // but not where columns are left out
    check_everywhere<float>({1, 10, 10, 4, 3, 3, 10, 10, 256, 1, 1, 1, 1});   // images that are too large,
    check_everywhere<float>({1, 4, 4, 4, 3, 3, 4, 4, 255, 1, 1, 1, 1});       // and too few channels
    check_everywhere<double>({2, 5, 4, 6, 3, 3, 5, 4, 261, 1, 1, 1, 1});
    matrix<float>(3, 259, 1);
}

TEST_CASE("convolution: an unfolded image has the same bits alone and among others") {
    constexpr std::int64_t out = 256, of_y = 4 * 5 * out, of_x = 4 * 5 * 30;
    const geometry many{40, 4, 5, 30, 3, 3, 4, 5, out, 1, 1, 1, 1};
    auto x = integers<float>(40 * of_x, 1), dy = integers<float>(40 * of_y, 2);
    auto w = integers<float>(3 * 3 * 30 * out, 3);
    for (auto* values : {&x, &dy, &w})
        for (auto& value : *values) value *= 0.1f;
    const auto run = [&](const geometry& g, const float* images, const float* gradients) {
        const int threads = tapegraph::thread_count();
        poisoned workspace(
            std::max(cpu::convolution_workspace_bytes<float>(g, convolution_pass::forward, threads),
                     cpu::convolution_workspace_bytes<float>(g, convolution_pass::input_gradient, threads)));
        std::vector<float> y(static_cast<std::size_t>(g.batch * of_y)), dx(static_cast<std::size_t>(g.batch * of_x));
        cpu::convolution_forward(g, images, w.data(), y.data(), workspace.get());
        cpu::convolution_input_gradient(g, gradients, w.data(), dx.data(), workspace.get());
        y.insert(y.end(), dx.begin(), dx.end());
        return y;
    };
    const auto all = run(many, x.data(), dy.data());
    geometry one = many;
    one.batch = 1;
    constexpr std::int64_t image = 39;
    const auto alone = run(one, x.data() + image * of_x, dy.data() + image * of_y);
    CHECK(std::equal(alone.begin(), alone.begin() + of_y, all.begin() + image * of_y));
    CHECK(std::equal(alone.begin() + of_y, alone.end(), all.begin() + 40 * of_y + image * of_x));
}

TEST_CASE("convolution: the workspace grows with the batch") {
    for (const auto pass :
         {convolution_pass::forward, convolution_pass::input_gradient, convolution_pass::filter_gradient}) {
        std::size_t last = 0;
        for (std::int64_t batch = 0; batch < 70; ++batch) {
            const std::size_t bytes =
                cpu::convolution_workspace_bytes<float>({batch, 10, 10, 3, 3, 3, 10, 10, 20, 1, 1, 1, 1}, pass, 2);
            CHECK(bytes >= last);
            last = bytes;
        }
        last = 0;
        for (std::int64_t batch = 0; batch < 70; ++batch) { // unfolded
            const std::size_t bytes =
                cpu::convolution_workspace_bytes<float>({batch, 9, 9, 3, 3, 3, 9, 9, 256, 1, 1, 1, 1}, pass, 16);
            CHECK(bytes >= last);
            last = bytes;
        }
    }
}

TEST_CASE("convolution: the same bits on one and on two threads") {
    const geometry g{4, 12, 13, 20, 3, 3, 12, 13, 40, 1, 1, 1, 1};
    auto x = integers<float>(4 * 12 * 13 * 20, 1), dy = integers<float>(4 * 12 * 13 * 40, 2);
    auto w = integers<float>(3 * 3 * 20 * 40, 3);
    for (auto* values : {&x, &dy, &w})
        for (auto& value : *values) value *= 0.1f;
    std::vector<float> y[2], dx[2], dw[2];
    for (const int threads : {1, 2}) {
        tapegraph::set_thread_count(threads);
        y[threads - 1].resize(dy.size());
        dx[threads - 1].resize(x.size());
        dw[threads - 1].resize(w.size());
        std::size_t bytes = 0;
        for (const auto pass :
             {convolution_pass::forward, convolution_pass::input_gradient, convolution_pass::filter_gradient})
            bytes = std::max(bytes, cpu::convolution_workspace_bytes<float>(g, pass, threads));
        poisoned workspace(bytes);
        cpu::convolution_forward(g, x.data(), w.data(), y[threads - 1].data(), workspace.get());
        cpu::convolution_input_gradient(g, dy.data(), w.data(), dx[threads - 1].data(), workspace.get());
        cpu::convolution_filter_gradient(g, x.data(), dy.data(), dw[threads - 1].data(), workspace.get());
    }
    tapegraph::set_thread_count(0);
    CHECK(y[0] == y[1]);
    CHECK(dx[0] == dx[1]);
    CHECK(dw[0] == dw[1]);
}

} // namespace convolution_test
