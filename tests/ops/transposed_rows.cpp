#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
/// Every input adds its multiple of the kernel to the output. x [n, h, w, in], k [kh, kw, out / groups, in]; `before` is what
/// the output lacks in front.
array transposed(const array& x, const array& k, extents size, extents stride, extents before, extents dilation = {1, 1},
                 std::int64_t groups = 1) {
    const std::int64_t in = x.dims[3], out = k.dims[2];
    array y({x.dims[0], size[0], size[1], out * groups});
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const extents at = unravel(i, x.dims);
        for (std::int64_t p = 0; p < k.dims[0]; ++p)
            for (std::int64_t q = 0; q < k.dims[1]; ++q)
                for (std::int64_t o = 0; o < out; ++o) {
                    const std::int64_t r = at[1] * stride[0] + p * dilation[0] - before[0];
                    const std::int64_t s = at[2] * stride[1] + q * dilation[1] - before[1];
                    if (r < 0 || r >= size[0] || s < 0 || s >= size[1]) continue;
                    y.at({at[0], r, s, at[3] / (in / groups) * out + o}) += x[i] * k.at({p, q, o, at[3]});
                }
    }
    return y;
}
array image(const array& x) {
    extents dims = x.dims;
    dims.insert(dims.begin() + (x.dims.size() == 3 ? 1 : 0), 1);
    return {dims, x.values};
}
array line(array y) {
    y.dims.erase(y.dims.begin() + 1);
    return y;
}
array kernel_of_height_one(const array& k) {
    extents dims = k.dims;
    dims.insert(dims.begin(), 1);
    return {dims, k.values};
}
std::int64_t half(std::int64_t v) { return v > 0 ? v / 2 : 0; }

// depthwise kernel [kh, kw, in, m] as one of `in` groups
array grouped(const array& k) { return {{k.dims[0], k.dims[1], 1, k.dims[2] * k.dims[3]}, k.values}; }
} // namespace

// Lengths are Keras's: in * stride + max(span - stride, 0) for valid, in * stride for same; with output_padding
// (in - 1) * stride + span - 2 * pad + output_padding, pad = span / 2 for same.
std::vector<row> transposed_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<extents>> shapes) {
        r.shapes = std::move(shapes);
        r.ulps = 32;
        r.floor = 4;
        r.why = "sums of products";
        rows.push_back(std::move(r));
    };
    put(make_row<2>(
            "conv2d_transpose", [](auto x, auto w) { return conv2d_transpose(x, w, {.stride = {2, 3}}); }, {},
            [](const std::vector<array>& x) {
                const auto length = [&](std::size_t i, std::int64_t s) {
                    return x[0].dims[i + 1] * s + std::max<std::int64_t>(x[1].dims[i] - s, 0);
                };
                return transposed(x[0], x[1], {length(0, 2), length(1, 3)}, {2, 3}, {0, 0});
            }),
        {{{1, 2, 3, 1}, {2, 2, 1, 1}},
         {{2, 3, 2, 3}, {3, 4, 2, 3}},
         {{1, 1, 1, 5}, {1, 1, 7, 5}},
         {{2, 5, 6, 7}, {3, 3, 11, 7}},
         {{0, 2, 3, 2}, {3, 3, 2, 2}}});
    put(make_row<2>(
            "conv2d_transpose same",
            [](auto x, auto w) {
                return conv2d_transpose(x, w, {.stride = {2, 1}, .padding = padding::same()});
            },
            {},
            [](const std::vector<array>& x) {
                const std::int64_t h = x[0].dims[1], w = x[0].dims[2], kh = x[1].dims[0], kw = x[1].dims[1];
                return transposed(x[0], x[1], {2 * h, w}, {2, 1}, {half(kh - 2), half(kw - 1)});
            }),
        {{{1, 2, 3, 2}, {3, 3, 2, 2}}, {{2, 3, 2, 1}, {2, 4, 3, 1}}, {{1, 3, 4, 2}, {1, 1, 1, 2}}});
    put(make_row<2, false>(
            "conv2d_transpose same, output_padding",
            [](auto x, auto w) {
                return conv2d_transpose(x, w, {.stride = {2, 3}, .padding = padding::same(), .output_padding = {0, 2}});
            },
            {},
            [](const std::vector<array>& x) { // 3 x 3 kernels: pad 1
                const std::int64_t h = (x[0].dims[1] - 1) * 2 + 1, w = (x[0].dims[2] - 1) * 3 + 3;
                return transposed(x[0], x[1], {h, w}, {2, 3}, {1, 0});
            }),
        {{{1, 2, 3, 2}, {3, 3, 2, 2}}, {{2, 1, 1, 3}, {3, 3, 1, 3}}});
    put(make_row<2, false>(
            "conv2d_transpose dilated, groups, amounts",
            [](auto x, auto w) {
                return conv2d_transpose(x, w,
                                        {.stride = {2, 1},
                                         .padding = padding::amounts(1, 0, 0, 2),
                                         .output_padding = {1, 0},
                                         .dilation = {1, 2},
                                         .groups = 2});
            },
            {},
            [](const std::vector<array>& x) {
                const std::int64_t h = (x[0].dims[1] - 1) * 2 + x[1].dims[0] - 1 + 1;
                const std::int64_t w = x[0].dims[2] - 1 + (x[1].dims[1] - 1) * 2 + 1 - 2;
                return transposed(x[0], x[1], {h, w}, {2, 1}, {1, 0}, {1, 2}, 2);
            }),
        {{{1, 2, 3, 2}, {3, 2, 1, 2}}, {{2, 3, 4, 4}, {2, 3, 3, 4}}});
    put(make_row<2>(
            "conv1d_transpose", [](auto x, auto w) { return conv1d_transpose(x, w, {.stride = 2, .dilation = 2}); }, {},
            [](const std::vector<array>& x) {
                const std::int64_t span = (x[1].dims[0] - 1) * 2 + 1;
                const std::int64_t w = x[0].dims[1] * 2 + std::max<std::int64_t>(span - 2, 0);
                return line(transposed(image(x[0]), kernel_of_height_one(x[1]), {1, w}, {1, 2}, {0, 0}, {1, 2}));
            }),
        {{{1, 3, 2}, {3, 2, 2}}, {{2, 5, 3}, {1, 1, 3}}, {{1, 1, 1}, {4, 5, 1}}});
    put(make_row<2, false>(
            "conv1d_transpose, groups, amounts, output_padding",
            [](auto x, auto w) {
                return conv1d_transpose(
                    x, w, {.stride = 2, .padding = padding::amounts(0, 0, 1, 2), .output_padding = 1, .groups = 2});
            },
            {},
            [](const std::vector<array>& x) {
                const std::int64_t w = (x[0].dims[1] - 1) * 2 + x[1].dims[0] - 3 + 1;
                return line(transposed(image(x[0]), kernel_of_height_one(x[1]), {1, w}, {1, 2}, {0, 1}, {1, 1}, 2));
            }),
        {{{1, 3, 2}, {3, 2, 2}}, {{2, 4, 4}, {4, 1, 4}}});
    put(make_row<2, false>(
            "conv2d_transpose by default", [](auto x, auto w) { return conv2d_transpose(x, w); }, {},
            [](const std::vector<array>& x) {
                const extents &d = x[0].dims, &k = x[1].dims;
                return transposed(x[0], x[1], {d[1] + k[0] - 1, d[2] + k[1] - 1}, {1, 1}, {0, 0});
            }),
        {{{1, 3, 2, 2}, {2, 3, 2, 2}}});
    put(make_row<2, false>(
            "conv1d_transpose by default", [](auto x, auto w) { return conv1d_transpose(x, w); }, {},
            [](const std::vector<array>& x) {
                const std::int64_t w = x[0].dims[1] + x[1].dims[0] - 1;
                return line(transposed(image(x[0]), kernel_of_height_one(x[1]), {1, w}, {1, 1}, {0, 0}));
            }),
        {{{1, 3, 2}, {2, 2, 2}}});
    put(make_row<2>(
            "depthwise_conv2d",
            [](auto x, auto w) {
                return depthwise_conv2d(x, w, {.stride = {2, 2}, .padding = padding::same()});
            },
            {},
            [](const std::vector<array>& x) {
                return convolution(x[0], grouped(x[1]), {2, 1, 0, 0, true}, {2, 1, 0, 0, true}, x[1].dims[2]);
            }),
        {{{1, 3, 4, 1}, {2, 2, 1, 1}}, {{2, 4, 3, 3}, {3, 3, 3, 2}}, {{1, 5, 5, 17}, {3, 3, 17, 1}}});
    put(make_row<2, false>(
            "depthwise_conv1d", [](auto x, auto w) { return depthwise_conv1d(x, w, {.padding = padding::causal()}); },
            {},
            [](const std::vector<array>& x) {
                const array k = kernel_of_height_one(x[1]);
                return line(convolution(image(x[0]), grouped(k), {}, {1, 1, 2, 0}, k.dims[2]));
            }),
        {{{1, 4, 3}, {3, 3, 2}}});
    put(make_row<3, false>(
            "separable_conv2d", [](auto x, auto w, auto p) { return separable_conv2d(x, w, p, {.padding = padding::same()}); },
            {},
            [](const std::vector<array>& x) {
                const array each =
                    convolution(x[0], grouped(x[1]), {1, 1, 0, 0, true}, {1, 1, 0, 0, true}, x[1].dims[2]);
                return convolution(each, x[2], {}, {});
            }),
        {{{1, 3, 3, 2}, {2, 3, 2, 2}, {1, 1, 4, 3}}});
    put(make_row<3, false>(
            "separable_conv1d", [](auto x, auto w, auto p) { return separable_conv1d(x, w, p); }, {},
            [](const std::vector<array>& x) {
                const array each = convolution(image(x[0]), grouped(kernel_of_height_one(x[1])), {}, {}, x[1].dims[1]);
                return line(convolution(each, kernel_of_height_one(x[2]), {}, {}));
            }),
        {{{1, 4, 2}, {2, 2, 1}, {1, 2, 3}}});
    return rows;
}

} // namespace tapegraph::testing
