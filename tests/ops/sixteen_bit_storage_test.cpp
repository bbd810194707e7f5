#include <support/storage.hpp>

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace sixteen_bit_storage_test {

/// 16-bit elements in both modes: the same bits of values and gradients, whatever is fused. The two types differ in their
/// conversions only, so most functions are compiled for one of them.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

// Formulas, broadcast operands with several adjoints to add, a product, reductions.
constexpr auto dense = [](auto x, auto w, auto b) { // [n, 6], [6, 5], [5]
    return tg::value_and_gradient([](auto a, auto u, auto c) {
        const auto h = tg::eval(tanh(tg::matmul(a, u) + c));
        const auto k = tg::eval(relu(h * c - 0.3) + sigmoid(h) * h);
        return tg::eval(sum(square(k)) + sum(exp(-h) * c) + mean(sum(k * h, 1)));
    })(x, w, b);
};

// Convolution, bias and relu become one kernel in graph mode; pooling, layout, softmax.
constexpr auto image = [](auto x, auto w, auto b) { // [n, 6, 6, 2], [3, 3, 2, 4], [4]
    return tg::value_and_gradient([](auto a, auto u, auto c) {
        const auto h = tg::eval(relu(tg::conv2d(a, u, {.padding = tg::padding::same()}) + c));
        const auto p = max_pooling2d(h);
        const auto q = average_pooling2d(transpose(p, {0, 2, 1, 3}), {.pool_size = {3, 3}});
        return tg::eval(sum(square(softmax(q) + 0.5)));
    })(x, w, b);
};
// The same without a gradient: nothing else reads the convolution, so bias and relu join it.
constexpr auto image_forward = [](auto x, auto w, auto b) {
    return tg::eval(relu(tg::conv2d(x, w, {.padding = tg::padding::same()}) + b));
};

// Products that take bias and relu into their kernel: batches, a single column.
constexpr auto product_forward = [](auto x, auto w, auto b) { // [n, 6], [6, 5], [5]
    const auto h = tg::eval(relu(tg::matmul(x, w) + b));
    const auto u = tg::eval(slice(w, {{0, 5}, {0, 1}}));
    const auto batched = tg::eval(tg::matmul(reshape(h, {-1, 1, 5}), slice(w, {{1, 6}, {}})) + b);
    return std::tuple{h, tg::eval(tg::matmul(h, u) + slice(b, {{2, 3}})), batched};
};

// Weights and loss in float, the product in 16 bits.
template <class T>
constexpr auto mixed = [](auto x, auto w) {
    return tg::value_and_gradient([](auto a, auto u) {
        const auto h = tg::matmul(tg::cast<T>(a), tg::cast<T>(u));
        return tg::eval(mean(square(tg::cast<float>(h) - 1.0)) + sum(tg::cast<float>(tanh(h * 0.5)) * u));
    })(x, w);
};

// Once and twice differentiated.
constexpr auto second = [](auto x, auto y) {
    const auto f = [](auto a, auto b) { return sum(tanh(a * b) * a + exp(-square(b))); };
    return tg::value_and_gradient([=](auto a, auto b) {
        const auto [da, db] = tg::gradient(f)(a, b);
        const auto first = sum(square(da));
        const auto rest = sum(db * b);
        return tg::eval(first + rest);
    })(x, y);
};

template <class T>
std::vector<real> numbers(const std::vector<tg::any_tensor>& all) {
    std::vector<real> result;
    for (const tg::any_tensor& t : all)
        for (const real v : plain(tg::tensor<T>(t)).values) result.push_back(v);
    return result;
}

// What a trace computes without passes and fusion.
template <class F, class... Specs>
struct untouched {
    static constexpr void build(tg::ir::trace& t, tg::ir::schedule& s) {
        tg::detail::function_trace<F, Specs...>::build(t);
        s = tg::ir::make_schedule(t, false);
    }
};

template <class T, class F>
void check_unfused(const F&) {
    using builder = untouched<F, tg::spec<T, tg::dyn, 6>, tg::spec<T, 6, 5>, tg::spec<T, 5>>;
    tg::ir::program raw(tg::ir::lowered<tg::ir::compile_stage<builder>>::view);
    auto fused = tg::function<tg::graph>(F{}, tg::spec<T, tg::dyn, 6>{}, tg::spec<T, 6, 5>{}, tg::spec<T, 5>{});
    CHECK(fused.view().steps.size() < raw.view().steps.size());
    for (const std::int64_t n : {3, 700}) {
        const auto x = drawn<T>({n, 6}, 1), w = drawn<T>({6, 5}, 2), b = drawn<T>({5}, 3);
        const auto want = flattened(fused(x, w, b));
        raw.set_input(0, x.view());
        raw.set_input(1, w.view());
        raw.set_input(2, b.view());
        raw.run({});
        for (std::size_t k = 0; k < want.size(); ++k)
            CHECK(std::memcmp(want[k].read(), raw.output(static_cast<int>(k)).data,
                              raw.output(static_cast<int>(k)).bytes()) == 0);
    }
}

} // namespace

TEST_CASE("both modes, 16-bit elements: dense") {
    using T = tg::bfloat16;
    both_modes modes(dense, tg::spec<T, tg::dyn, 6>{}, tg::spec<T, 6, 5>{}, tg::spec<T, 5>{});
    for (std::int64_t n : {7, 1, 131, 2, 3001}) {
        const std::string text = modes.compare(drawn<T>({n, 6}, 1, -0.5, 0.5), drawn<T>({6, 5}, 2), drawn<T>({5}, 3));
        CHECK_MESSAGE(text.empty(), "batch " << n << ": " << text);
    }
    // Against double: rounding errors of a dozen operations on numbers of order one, in units of 2^-8 or 2^-11.
    auto exact = tg::function<tg::eager>(dense, tg::spec<double, tg::dyn, 6>{}, tg::spec<double, 6, 5>{}, tg::spec<double, 5>{});
    const auto x = drawn<T>({7, 6}, 1, -0.5, 0.5), w = drawn<T>({6, 5}, 2), b = drawn<T>({5}, 3);
    static_cast<void>(modes.compare(x, w, b));
    const auto got = numbers<T>(modes.results());
    const auto want = numbers<double>(flattened(exact(tg::cast<double>(x), tg::cast<double>(w), tg::cast<double>(b))));
    REQUIRE(got.size() == want.size());
    real largest = 0, worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        largest = std::max(largest, std::abs(want[i]));
        worst = std::max(worst, std::abs(got[i] - want[i]));
    }
    CHECK(worst <= 12 * std::ldexp(largest, -std::numeric_limits<T>::digits));
}

TEST_CASE("both modes, 16-bit elements: images") {
    using T = tg::half;
    both_modes modes(image, tg::spec<T, tg::dyn, 6, 6, 2>{}, tg::spec<T, 3, 3, 2, 4>{}, tg::spec<T, 4>{});
    both_modes forward(image_forward, tg::spec<T, tg::dyn, 6, 6, 2>{}, tg::spec<T, 3, 3, 2, 4>{}, tg::spec<T, 4>{});
    for (std::int64_t n : {3, 1, 0, 40, 2}) {
        const auto x = drawn<T>({n, 6, 6, 2}, 1), w = drawn<T>({3, 3, 2, 4}, 2), b = drawn<T>({4}, 3);
        const std::string text = modes.compare(x, w, b), forward_text = forward.compare(x, w, b);
        CHECK_MESSAGE(text.empty(), "batch " << n << ": " << text);
        CHECK_MESSAGE(forward_text.empty(), "batch " << n << ": " << forward_text);
    }
}

TEST_CASE_TEMPLATE("both modes, 16-bit elements: products with bias and relu", T, tg::bfloat16, tg::half) {
    both_modes modes(product_forward, tg::spec<T, tg::dyn, 6>{}, tg::spec<T, 6, 5>{}, tg::spec<T, 5>{});
    for (std::int64_t n : {3, 1, 0, 1500, 2}) {
        const std::string text = modes.compare(drawn<T>({n, 6}, 1), drawn<T>({6, 5}, 2), drawn<T>({5}, 3));
        CHECK_MESSAGE(text.empty(), "batch " << n << ": " << text);
    }
}

TEST_CASE("both modes: float weights, products in 16 bits") {
    both_modes modes(mixed<tg::bfloat16>, tg::spec<float, tg::dyn, 6>{}, tg::spec<float, 6, 6>{});
    const std::string text = modes.compare(drawn<float>({6, 6}, 1), drawn<float>({6, 6}, 2));
    CHECK_MESSAGE(text.empty(), text);
    REQUIRE(modes.results().size() == 3);
    CHECK(modes.results()[2].type() == tg::dtype::f32); // the gradient of float weights is float
}

TEST_CASE("16-bit elements: fused or node by node, the same bits") { check_unfused<tg::bfloat16>(dense); }

TEST_CASE("both modes, 16-bit elements: gradient of a gradient") {
    using T = tg::half;
    both_modes modes(second, tg::spec<T, tg::dyn, 5>{}, tg::spec<T, 5>{});
    auto exact = tg::function<tg::graph>(second, tg::spec<double, tg::dyn, 5>{}, tg::spec<double, 5>{});
    auto eager = tg::function<tg::eager>(second, tg::spec<T, tg::dyn, 5>{}, tg::spec<T, 5>{});
    for (std::int64_t n : {3, 1, 40}) {
        const auto x = drawn<T>({n, 5}, 1, -0.7, 0.7), y = drawn<T>({5}, 2, -0.7, 0.7);
        static_cast<void>(modes.compare(x, y));
        const auto want = numbers<double>(flattened(exact(tg::cast<double>(x), tg::cast<double>(y))));
        real largest = 1;
        for (const real v : want) largest = std::max(largest, std::abs(v));
        // The modes add adjoints in another order here (see the test in double), so each is compared with double.
        for (const auto& got : {numbers<T>(modes.results()), numbers<T>(flattened(eager(x, y)))}) {
            REQUIRE(got.size() == want.size());
            for (std::size_t i = 0; i < got.size(); ++i)
                CHECK(std::abs(got[i] - want[i]) <= 8 * std::ldexp(largest, -std::numeric_limits<T>::digits));
        }
    }
}

TEST_CASE_TEMPLATE("16-bit elements: tapes, checks, constants of a graph", T, tg::bfloat16, tg::half) {
    tg::tensor<T> x{0.5f, -2, 3};
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x);
    const tg::tensor<T> y = x * x * 0.25 + x;
    const auto dx = tape.gradient(sum(y), x);
    for (std::int64_t i = 0; i < 3; ++i)
        CHECK(static_cast<float>(dx(i)) == 0.5f * static_cast<float>(x(i)) + 1); // exact in both types
    {
        const tg::detail::numeric_check check(true);
        CHECK_THROWS_AS(tg::tensor<T>(x / (x - x)), tg::numeric_error);
        CHECK_NOTHROW(tg::tensor<T>(x * 2));
    }
    // The derivative is made of numbers alone, which graph mode multiplies while it compiles.
    constexpr auto folds = [](auto v) {
        return tg::value_and_gradient([](auto s) { return tg::eval(s * 0.3 * 0.7 / 0.9 - 0.1); })(v);
    };
    both_modes modes(folds, tg::spec<T>{});
    CHECK(modes.compare(tg::tensor<T>(T(1.3))).empty());
}

} // namespace sixteen_bit_storage_test
