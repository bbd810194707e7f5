#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace transposed_convolution_test {

/// Transposed and depthwise convolution and the further poolings in graph mode: the same bits as in eager mode.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto total = [](auto first, auto... parts) {
    auto sum_of_parts = sum(square(first));
    ((sum_of_parts = tg::eval(sum_of_parts + sum(square(parts)))), ...);
    return sum_of_parts;
};

constexpr auto windows = [](auto x, auto w, auto d) { // [n, h, v, 4], [3, 2, 5, 4], [2, 2, 4, 2]
    return std::apply(
        total,
        std::tuple{
            conv2d_transpose(x, w, {.stride = {2, 3}}),
            conv2d_transpose(x, w, {.stride = {2, 1}, .padding = tg::padding::same()}),
            depthwise_conv2d(x, d, {.padding = tg::padding::same()}),
            max_pooling2d(x,
                          {.pool_size = {2, 2}, .stride = {1, 1}, .padding = tg::padding::same(), .dilation = {2, 1}}),
            average_pooling2d(
                x, {.pool_size = {2, 1}, .padding = tg::padding::amounts(1, 1, 0, 0), .count_include_pad = true}),
            global_average_pooling2d(x), global_max_pooling2d(x, {.keepdims = true})});
};
constexpr auto curvature = [](auto x, auto w) {
    const auto g = tg::value_and_gradient([](auto a, auto b) {
                       return sum(square(conv2d_transpose(a, b, {.stride = {2, 3}, .padding = tg::padding::same()})));
                   })(x, w)
                       .gradient;
    return std::apply(total, g);
};
constexpr auto lines = [](auto x, auto w) { // [n, t, 3], [4, 2, 3]
    return std::apply(total, std::tuple{conv1d_transpose(x, w, {.stride = 2}),
                                        max_pooling1d(x, {.pool_size = 3, .stride = 1, .padding = tg::padding::same()}),
                                        average_pooling1d(x, {.pool_size = 2, .padding = tg::padding::same()}),
                                        global_average_pooling1d(x)});
};

} // namespace

TEST_CASE("both modes: transposed and depthwise convolution, pooling") {
    both_modes wide(tg::value_and_gradient(windows), tg::spec<double, tg::dyn, tg::dyn, tg::dyn, 4>{},
                    tg::spec<double, 3, 2, 5, 4>{}, tg::spec<double, 2, 2, 4, 2>{});
    both_modes narrow(tg::value_and_gradient(windows), tg::spec<float, tg::dyn, 5, 6, 4>{}, tg::spec<float, 3, 2, 5, 4>{},
                      tg::spec<float, 2, 2, 4, 2>{});
    for (auto [n, h, w] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{2, 5, 6}, {1, 3, 2}, {5, 7, 7}}) {
        const std::string a = wide.compare(drawn<double>({n, h, w, 4}, 1), drawn<double>({3, 2, 5, 4}, 2),
                                           drawn<double>({2, 2, 4, 2}, 3));
        CHECK_MESSAGE(a.empty(), a);
        const std::string b = narrow.compare(drawn<float>({n, 5, 6, 4}, 1), drawn<float>({3, 2, 5, 4}, 2),
                                             drawn<float>({2, 2, 4, 2}, 3));
        CHECK_MESSAGE(b.empty(), b);
    }
}

TEST_CASE("both modes: second derivatives of a transposed convolution over symbolic extents") {
    both_modes modes(tg::value_and_gradient(curvature), tg::spec<double, tg::dyn, tg::dyn, tg::dyn, 2>{},
                     tg::spec<double, 3, 3, 2, 2>{});
    // The interpreter of derivatives of derivatives adds in another order than fused kernels do.
    CHECK(modes.distance(drawn<double>({2, 3, 4, 2}, 1), drawn<double>({3, 3, 2, 2}, 2)) < 1e-12);
    CHECK(modes.distance(drawn<double>({1, 1, 2, 2}, 1), drawn<double>({3, 3, 2, 2}, 2)) < 1e-12);
}

TEST_CASE("both modes: windows along one axis") {
    both_modes modes(tg::value_and_gradient(lines), tg::spec<double, tg::dyn, tg::dyn, 3>{}, tg::spec<double, 4, 2, 3>{});
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{2, 9}, {1, 1}, {3, 8}}) {
        const std::string text = modes.compare(drawn<double>({n, t, 3}, 1), drawn<double>({4, 2, 3}, 2));
        CHECK_MESSAGE(text.empty(), text);
    }
}

} // namespace transposed_convolution_test
