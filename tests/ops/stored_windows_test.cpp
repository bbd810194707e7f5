#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace stored_windows_test {

/// Values computed by PyTorch 2.15, of whole numbers that both sides make alike. Each comment is the PyTorch expression, with
///
///     def seq(*s): return ((torch.arange(prod(s), dtype=torch.float64) * 7 + 3) % 11 - 5).reshape(*s)
///     nchw = lambda x: x.permute(0, 3, 1, 2);  nhwc = lambda y: y.permute(0, 2, 3, 1)
///     oihw = lambda w: w.permute(3, 2, 0, 1);  x = seq(1, 5, 4, 2);  w = seq(3, 2, 2, 2)
///
/// TensorFlow's "same" is spelled out as padding before and after: total = max((ceil(n / s) - 1) s + k - n, 0), with the odd
/// one after.

namespace tg = tapegraph;
using tg::tensor;
using vector = std::vector<double>;

namespace {

tensor<double> seq(const tg::shape& dims) {
    auto t = tensor<double>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = static_cast<double>((i * 7 + 3) % 11 - 5);
    return t;
}

bool near(const tensor<double>& got, const vector& want) {
    if (got.size() != static_cast<std::int64_t>(want.size())) return false;
    for (std::int64_t i = 0; i < got.size(); ++i) // stored to ten digits
        if (!(std::abs(got.data()[i] - want[static_cast<std::size_t>(i)]) <= 1e-9 * (1 + std::abs(got.data()[i])))) return false;
    return true;
}

} // namespace

TEST_CASE("stored: convolutions") {
    const auto x = seq({1, 5, 4, 2}), w = seq({3, 2, 2, 2});
    // nhwc(F.conv2d(F.pad(nchw(x), (0, 0, 1, 1)), oihw(w), stride=2))
    CHECK(near(conv2d(x, w, {.stride = {2, 2}, .padding = tg::padding::same()}),
               {5, -8, -23, -19, -6, 18, -29, 59, 27, 17, 50, -53}));
    // nhwc(F.conv2d(F.pad(nchw(x), (0, 1, 1, 1)), oihw(w)))[:, 0]: the odd column of padding comes last
    const auto whole = conv2d(x, w, {.padding = tg::padding::same()});
    CHECK(near(slice(whole, {{0, 1}, {0, 1}}), {5, -8, -20, 14, -23, -19, 22, 22}));
    // nhwc(F.conv2d(nchw(x), oihw(w), dilation=(2, 3)))
    CHECK(near(conv2d(x, w, {.dilation = {2, 3}}), {-50, -16}));
    // nhwc(F.conv2d(nchw(x), oihw(seq(3, 2, 1, 4)), groups=2))
    CHECK(near(conv2d(x, seq({3, 2, 1, 4}), {.groups = 2}),
               {4, 3, 3, -23, 62, -22, -17, 28, -34, 8, -26, 46, 5, 2, -11, 16, 8, -34,
                -20, 34, -22, 62, -7, -3, 6, 1, -14, 22, -35, -35, -23, 40, 1, 6, 23, -41}));
    // F.conv1d(F.pad(seq(1, 5, 2).permute(0, 2, 1), (4, 0)), seq(3, 2, 1).permute(2, 1, 0), dilation=2)
    CHECK(near(conv1d(seq({1, 5, 2}), seq({3, 2, 1}), {.padding = tg::padding::causal(), .dilation = 2}),
               {-8, 4, -1, -6, 29}));
    // d = seq(2, 2, 2, 2).reshape(2, 2, 1, 4)
    // nhwc(F.conv2d(F.conv2d(nchw(x), oihw(d), groups=2), oihw(seq(1, 1, 4, 1))))
    CHECK(near(separable_conv2d(x, seq({2, 2, 2, 2}), seq({1, 1, 4, 1})),
               {26, -135, -43, -101, -97, 193, -118, -26, 22, -135, -43, 148}));
}

TEST_CASE("stored: transposed convolutions") {
    const auto x = seq({1, 2, 3, 2}), w = seq({3, 2, 1, 2});
    // nhwc(F.conv_transpose2d(nchw(seq(1, 2, 3, 2)), oihw(seq(3, 2, 1, 2)), stride=2))
    const auto y = conv2d_transpose(x, w, {.stride = {2, 2}});
    CHECK(y.shape() == tg::shape{1, 5, 6, 1});
    CHECK(near(y, {29, -17, -17, 10, -8, 4, -8, 23, 4, -13, 16, -16, 0, -27, -9,
                   22, -18, 16, -16, 25, -4, -11, 8, -14, -11, -14, 26, 8, 8, 8}));
    // the same with padding=(1, 0), output_padding=(1, 1): what Keras's same makes of a 3 x 2 kernel, but for the last column
    const auto z =
        conv2d_transpose(x, w, {.stride = {2, 2}, .padding = tg::padding::amounts(1, 1, 0, 0), .output_padding = {1, 1}});
    CHECK(z.shape() == tg::shape{1, 4, 7, 1});
    CHECK(near(z, {-8, 23, 4, -13, 16, -16, 0, 0, -27, -9, 22, -18, 16, 0,
                   -16, 25, -4, -11, 8, -14, 0, -11, -14, 26, 8, 8, 8, 0}));
    // F.conv_transpose1d(seq(1, 3, 2).permute(0, 2, 1), seq(3, 2, 2).permute(2, 1, 0), stride=2, dilation=2).permute(0, 2, 1)
    CHECK(near(conv1d_transpose(seq({1, 3, 2}), seq({3, 2, 2}), {.stride = 2, .dilation = 2}),
               {29, -17, 0, 0, -25, 33, 0, 0, -27, -23, 0, 0, 30, -8, 0, 0, -4, 8}));
}

TEST_CASE("stored: pooling") {
    const auto x = seq({1, 3, 4, 1});
    const tg::pool2d_options window{.pool_size = {2, 3}, .stride = {1, 2}, .padding = tg::padding::amounts(1, 1, 1, 1)};
    // nhwc(F.avg_pool2d(nchw(seq(1, 3, 4, 1)), (2, 3), (1, 2), padding=1, count_include_pad=...))
    CHECK(near(average_pooling2d(x, window), {1.5, 1, 1.75, 0.3333333333, -0.5, -1, -3, -1.666666667}));
    tg::pool2d_options counted = window;
    counted.count_include_pad = true;
    CHECK(near(average_pooling2d(x, counted), {0.5, 0.5, 1.166666667, 0.3333333333, -0.3333333333, -1, -1, -0.8333333333}));
    // nhwc(F.max_pool2d(nchw(seq(1, 3, 4, 1)), 2, 1, dilation=(1, 2)))
    CHECK(near(max_pooling2d(x, {.pool_size = {2, 2}, .stride = {1, 1}, .dilation = {1, 2}}), {4, 5, 4, 3}));
    // F.max_pool2d(p, 2, 1).sum().backward(); p.grad
    tensor<double> p = x;
    tg::gradient_tape tape;
    tape.watch(p);
    const auto grad = tape.gradient(max_pooling2d(p, {.stride = {1, 1}}), p);
    CHECK(near(grad, {0, 2, 0, 0, 1, 0, 0, 2, 0, 0, 1, 0}));
    // F.max_pool1d(seq(1, 7, 1).permute(0, 2, 1), 3, 2, padding=1)
    CHECK(
        near(max_pooling1d(seq({1, 7, 1}), {.pool_size = 3, .stride = 2, .padding = tg::padding::amounts(0, 0, 1, 1)}),
             {5, 5, 4, 0}));
}

TEST_CASE("stored: sums over products and squares") {
    const auto x = seq({1, 5, 4, 2});
    // torch.var(x, dim=(0, 1, 2), unbiased=False)
    CHECK(near(variance(x, {0, 1, 2}), {9.29, 10.7475}));
    // nhwc(F.batch_norm(nchw(x), None, None, training=True, eps=1e-3))[0, 0]
    const tensor<double> normed = (x - mean(x, {0, 1, 2})) / sqrt(variance(x, {0, 1, 2}) + 1e-3);
    CHECK(near(slice(normed, {{0, 1}, {0, 1}}), {-0.6889505714, 1.54034303, 0.2952645306, -0.8998043442, 1.279479633,
                                                 0.01525092109, -1.345093973, 0.9303061864}));
    const auto a = seq({2, 3, 2}), b = seq({2, 2, 3});
    // torch.einsum("bij,bjk->bki", a, b)
    CHECK(near(einsum("bij,bjk->bki", a, b), {-11, 7, -8, 10, -7, 20, -2, 1, 4, 1, 29, 2, -6, -13, 2, -2, 11, 2}));
    // torch.einsum("bij,cjk->cbk", a, b)
    CHECK(near(einsum("bij,cjk->cbk", a, b), {-12, 23, 3, 18, -31, -3, -22, 13, -7, 32, -17, 11}));
    // torch.tensordot(a, b, dims=([1, 0], [2, 0]))
    CHECK(near(tensordot(a, b, {{1, 0}, {2, 0}}), {24, 24, -50, -48}));
}

} // namespace stored_windows_test
