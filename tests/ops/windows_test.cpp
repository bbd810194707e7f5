#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace windows_test {

/// Convolution and pooling in graph mode: the same bits as in eager mode, values and gradients.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

// In braces, because C++ orders what stands in them; the operands of + could be traced in another order than they run in,
// and adjoints would then add up in another order.
constexpr auto total = [](auto... parts) {
    auto sum_of_parts = tg::eval(sum(square(std::get<0>(std::tuple{parts...}))) * 0);
    ((sum_of_parts = tg::eval(sum_of_parts + sum(square(parts)))), ...);
    return sum_of_parts;
};

constexpr auto images = [](auto x, auto w, auto g) { // [n, 7, 6, 4], [3, 2, 4, 5], [2, 2, 2, 6]
    const auto y = conv2d(x, w);
    return std::apply(
        total,
        std::tuple{y, conv2d(x, w, {.stride = {2, 1}, .padding = tg::padding::same(), .dilation = {1, 2}}),
                   conv2d(relu(x), g, {.padding = tg::padding::amounts(1, 0, 0, 2), .groups = 2}), max_pooling2d(y),
                   average_pooling2d(x, {.pool_size = {3, 2}, .stride = {2, 1}, .padding = tg::padding::same()})});
};

constexpr auto lines = [](auto x, auto w) { // [n, t, 3], [4, 3, 2]
    return std::apply(total, std::tuple{conv1d(x, w, {.stride = 3, .padding = tg::padding::causal(), .dilation = 2}),
                                        conv1d(tanh(x), w, {.stride = 2, .padding = tg::padding::same()})});
};

} // namespace

TEST_CASE("both modes: convolution and pooling") {
    both_modes wide(tg::value_and_gradient(images), tg::spec<double, tg::dyn, 7, 6, 4>{},
                    tg::spec<double, 3, 2, 4, 5>{}, tg::spec<double, 2, 2, 2, 6>{});
    both_modes narrow(tg::value_and_gradient(images), tg::spec<float, tg::dyn, 7, 6, 4>{},
                      tg::spec<float, 3, 2, 4, 5>{}, tg::spec<float, 2, 2, 2, 6>{});
    for (std::int64_t n : {3, 1, 17}) {
        const std::string a = wide.compare(drawn<double>({n, 7, 6, 4}, 1), drawn<double>({3, 2, 4, 5}, 2),
                                           drawn<double>({2, 2, 2, 6}, 3));
        const std::string b =
            narrow.compare(drawn<float>({n, 7, 6, 4}, 1), drawn<float>({3, 2, 4, 5}, 2), drawn<float>({2, 2, 2, 6}, 3));
        CHECK_MESSAGE(a.empty(), "batch " << n << ": " << a);
        CHECK_MESSAGE(b.empty(), "batch " << n << ": " << b);
    }
}

TEST_CASE("both modes: conv1d over two symbolic extents") {
    both_modes modes(tg::value_and_gradient(lines), tg::spec<double, tg::dyn, tg::dyn, 3>{},
                     tg::spec<double, 4, 3, 2>{});
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{2, 9}, {1, 1}, {5, 33}, {3, 8}}) {
        const std::string text = modes.compare(drawn<double>({n, t, 3}, 1), drawn<double>({4, 3, 2}, 2));
        const std::string shape = "batch " + std::to_string(n) + " length " + std::to_string(t) + ": ";
        CHECK_MESSAGE(text.empty(), shape << text);
    }
}

TEST_CASE("a symbolic extent that a window does not fit is refused when it is bound") {
    const auto taps = drawn<double>({4, 3, 2}, 1);
    both_modes valid([](auto x, auto w) { return conv1d(x, w, {.stride = 2}); },
                     tg::spec<double, tg::dyn, tg::dyn, 3>{}, tg::spec<double, 4, 3, 2>{});
    CHECK(valid.compare(drawn<double>({2, 5, 3}, 2), taps) == "");
    CHECK_THROWS_WITH_AS(valid.compare(drawn<double>({2, 3, 3}, 2), taps),
                         "convolution: extent (axis 1 of 'argument 1' - 4) / 2 + 1 is 0, at least 1 is needed",
                         tg::shape_error);
    CHECK_THROWS_WITH_AS(valid.compare(drawn<double>({2, 0, 3}, 2), taps),
                         "convolution: extent (axis 1 of 'argument 1' - 4) / 2 + 1 is -1, at least 1 is needed",
                         tg::shape_error);
    CHECK(valid.compare(drawn<double>({2, 4, 3}, 2), taps) == ""); // it goes on working

    // With "same" padding every window has a place, and what is empty stays empty.
    both_modes same([](auto x, auto w) { return conv1d(x, w, {.padding = tg::padding::same()}); },
                    tg::spec<double, tg::dyn, tg::dyn, 3>{}, tg::spec<double, 4, 3, 2>{});
    CHECK(same.compare(drawn<double>({2, 1, 3}, 2), taps) == "");
    CHECK(same.compare(drawn<double>({2, 0, 3}, 2), taps) == "");

    both_modes pooled([](auto x) { return max_pooling1d(x, {.pool_size = 3}); },
                      tg::spec<double, tg::dyn, tg::dyn, 3>{});
    CHECK(pooled.compare(drawn<double>({2, 7, 3}, 2)) == "");
    CHECK_THROWS_WITH_AS(pooled.compare(drawn<double>({2, 2, 3}, 2)),
                         "pooling: extent (axis 1 of 'argument 1' - 3) / 3 + 1 is 0, at least 1 is needed",
                         tg::shape_error);
}

} // namespace windows_test
