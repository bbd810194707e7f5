#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
// conv1d is conv2d of height 1.
array flat(const array& x) {
    extents dims = x.dims;
    dims.insert(dims.begin() + 1, 1);
    return {dims, x.values};
}
array convolution1d(const array& x, const array& k, const window& w, std::int64_t groups = 1) {
    extents dims = k.dims;
    dims.insert(dims.begin(), 1);
    array y = convolution(flat(x), {dims, k.values}, {}, w, groups);
    y.dims.erase(y.dims.begin() + 1);
    return y;
}
} // namespace

// Sums of some hundred products of order one. Convolution's full matrix of strides, paddings, dilations and groups, with
// integers, is tests/cpu/convolution_test.cpp; here each geometry also goes through tape, first and second derivative.
std::vector<row> convolution_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 32;
        r.floor = 4;
        r.why = "sums of products";
        rows.push_back(std::move(r));
    };
    put(make_row<2>(
            "conv2d", [](auto x, auto w) { return conv2d(x, w); }, {},
            [](const std::vector<array>& x) { return convolution(x[0], x[1], {}, {}); }),
        {{{1, 3, 3, 1}, {2, 2, 1, 1}},
         {{2, 4, 3, 2}, {3, 2, 2, 1}},
         {{1, 1, 1, 3}, {1, 1, 3, 2}},
         {{2, 7, 11, 5}, {3, 3, 5, 17}},
         {{0, 3, 3, 1}, {2, 2, 1, 1}}});
    put(make_row<2>(
            "conv2d same, strides 2 1",
            [](auto x, auto w) {
                return conv2d(x, w, {.stride = {2, 1}, .padding = padding::same()});
            },
            {},
            [](const std::vector<array>& x) {
                return convolution(x[0], x[1], {2, 1, 0, 0, true}, {1, 1, 0, 0, true});
            }),
        {{{1, 4, 3, 1}, {3, 2, 1, 2}}, {{1, 5, 3, 1}, {2, 2, 1, 1}}, {{1, 2, 2, 1}, {5, 5, 1, 1}}});
    put(make_row<2, false>(
            "conv2d dilated, groups, uneven padding",
            [](auto x, auto w) {
                return conv2d(
                    x, w, {.stride = {1, 2}, .padding = padding::amounts(1, 0, 0, 2), .dilation = {2, 1}, .groups = 2});
            },
            {},
            [](const std::vector<array>& x) {
                return convolution(x[0], x[1], {1, 2, 1, 0}, {2, 1, 0, 2}, 2);
            }),
        {{{1, 4, 3, 2}, {2, 2, 1, 4}}, {{2, 5, 4, 6}, {3, 2, 3, 4}}});
    put(make_row<2, false>(
            "conv2d depthwise", [](auto x, auto w) { return conv2d(x, w, {.padding = padding::same(), .groups = 3}); },
            {},
            [](const std::vector<array>& x) {
                return convolution(x[0], x[1], {1, 1, 0, 0, true}, {1, 1, 0, 0, true}, 3);
            }),
        {{{1, 3, 3, 3}, {3, 3, 1, 3}}, {{2, 3, 2, 3}, {2, 2, 1, 6}}});
    put(make_row<2>(
            "conv1d", [](auto x, auto w) { return conv1d(x, w); }, {},
            [](const std::vector<array>& x) { return convolution1d(x[0], x[1], {}); }),
        {{{1, 5, 1}, {2, 1, 1}}, {{2, 7, 3}, {3, 3, 2}}, {{3, 37, 5}, {4, 5, 9}}});
    put(make_row<2, false>(
            "conv1d causal, dilation 2",
            [](auto x, auto w) { return conv1d(x, w, {.padding = padding::causal(), .dilation = 2}); }, {},
            [](const std::vector<array>& x) {
                return convolution1d(x[0], x[1], {1, 2, 4, 0});
            }),
        {{{1, 6, 2}, {3, 2, 2}}, {{2, 2, 1}, {3, 1, 1}}});
    put(make_row<2, false>(
            "conv1d causal, stride 3, groups",
            [](auto x, auto w) { return conv1d(x, w, {.stride = 3, .padding = padding::causal(), .groups = 2}); }, {},
            [](const std::vector<array>& x) {
                return convolution1d(x[0], x[1], {3, 1, 3, 0}, 2);
            }),
        {{{2, 7, 4}, {4, 2, 6}}, {{1, 1, 2}, {4, 1, 2}}, {{1, 9, 2}, {4, 1, 4}}});
    put(make_row<2, false>(
            "conv1d same, stride 3",
            [](auto x, auto w) { return conv1d(x, w, {.stride = 3, .padding = padding::same()}); }, {},
            [](const std::vector<array>& x) {
                return convolution1d(x[0], x[1], {3, 1, 0, 0, true});
            }),
        {{{1, 8, 2}, {5, 2, 1}}, {{1, 1, 1}, {2, 1, 1}}});

    // Kernels larger than the image, single taps, primes of channels, strides beyond the kernel.
    put(make_row<2>(
            "conv2d 1x1, stride 3", [](auto x, auto w) { return conv2d(x, w, {.stride = {3, 3}}); }, {},
            [](const std::vector<array>& x) { return convolution(x[0], x[1], {3}, {3}); }),
        {{{2, 7, 4, 3}, {1, 1, 3, 5}}, {{1, 1, 1, 1}, {1, 1, 1, 1}}, {{0, 7, 4, 3}, {1, 1, 3, 5}}});
    put(make_row<2, false>(
            "conv2d, image smaller than the kernel",
            [](auto x, auto w) {
                return conv2d(x, w, {.stride = {2, 1}, .padding = padding::amounts(3, 2, 1, 4)});
            },
            {},
            [](const std::vector<array>& x) {
                return convolution(x[0], x[1], {2, 1, 3, 2}, {1, 1, 1, 4});
            }),
        {{{2, 2, 1, 2}, {5, 4, 2, 3}}, {{1, 1, 2, 1}, {6, 7, 1, 1}}, {{2, 6, 5, 13}, {3, 3, 13, 7}}});
    put(make_row<2, false>(
            "conv2d same, dilated",
            [](auto x, auto w) {
                return conv2d(x, w, {.stride = {1, 2}, .padding = padding::same(), .dilation = {3, 2}});
            },
            {},
            [](const std::vector<array>& x) {
                return convolution(x[0], x[1], {1, 3, 0, 0, true}, {2, 2, 0, 0, true});
            }),
        {{{1, 5, 6, 2}, {2, 3, 2, 3}}, {{1, 1, 1, 1}, {3, 3, 1, 2}}});
    put(make_row<2, false>(
            "conv1d groups, stride 2", [](auto x, auto w) { return conv1d(x, w, {.stride = 2, .groups = 2}); }, {},
            [](const std::vector<array>& x) { return convolution1d(x[0], x[1], {2}, 2); }),
        {{{2, 7, 6}, {3, 3, 4}}, {{1, 2, 2}, {2, 1, 2}}});
    return rows;
}

} // namespace tapegraph::testing
