#include <support/graph_runner.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

namespace custom_gradient_test {

/// Functions with derivatives of the user's own, in both modes.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using tg::tensor;

namespace {

// Values pass unchanged, derivatives are clipped.
constexpr auto clipped = tg::custom_gradient([](auto x) { return x; },
                                             [](auto dy, auto) { return tg::minimum(tg::maximum(dy, -0.5), 0.5); });

// Straight-through estimator: steps whose derivative is taken for one.
constexpr auto stepped = tg::custom_gradient([](auto x) { return tg::where(x > 0, 1 + 0 * x, -1 + 0 * x); },
                                             [](auto dy, auto) { return dy; });

constexpr auto reversed = tg::custom_gradient([](auto x) { return x; }, [](auto dy, auto) { return -dy; });

// log(1 + exp(x)) whose derivative does not overflow: the textbook example.
constexpr auto log1pexp = tg::custom_gradient([](auto x) { return tg::log(1 + tg::exp(x)); },
                                              [](auto dy, auto x) { return dy * (1 - 1 / (1 + tg::exp(x))); });

// Three arguments, one of them without derivative; backward looks at the value.
constexpr auto scaled_product = tg::custom_gradient(
    [](auto x, auto w, auto index) { return tg::exp(tg::gather(x, index)) * w; },
    [](auto dy, auto y, auto x, auto w, auto index) {
        return std::tuple{tg::scatter_add(dy * y, index, tg::shape_of(x)), dy * y / w, tg::no_gradient};
    });

constexpr auto cube = tg::custom_gradient([](auto x) { return x * x * x; },
                                          [](auto dy, auto x) { return 3 * dy * tg::square(x); });

// Terms in statements of their own: C++ leaves open which operand of a plus is evaluated first.
constexpr auto losses = [](auto x) {
    const auto a = sum(clipped(x * x) * x);
    const auto b = sum(square(stepped(x - 0.25)));
    const auto c = sum(stepped(x) * x);
    const auto d = sum(reversed(tanh(x)) * x);
    const auto e = sum(log1pexp(x));
    const auto f = sum(cube(2 * x));
    return tg::eval(a + b + c + d + e + f);
};
constexpr auto first_order = [](auto x) { return tg::value_and_gradient(losses)(x); };
constexpr auto second_order = [](auto x) {
    return tg::gradient([](auto v) { return sum(square(tg::gradient(losses)(v))); })(x);
};
// What forward captures has no derivative through it.
constexpr auto capturing = [](auto x, auto w) {
    return tg::value_and_gradient([](auto a, auto b) {
        const auto f = tg::custom_gradient([b](auto v) { return tg::exp(v) * b; }, [](auto dy, auto v) { return dy * v; });
        return sum(f(a) + b * b);
    })(x, w);
};
constexpr auto several = [](auto x, auto w, auto index) {
    return tg::value_and_gradient([index](auto a, auto b) { return sum(square(scaled_product(a, b, index))); })(x, w);
};

} // namespace

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("custom_gradient: values and derivatives are the given ones") {
    tensor<double> x{-3, 0.2, 1.5};
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x);
    CHECK(tg::to_string(clipped(x)) == tg::to_string(x));
    CHECK(tg::to_string(tape.gradient(clipped(x) * 2, x)) == "[0.5 0.5 0.5]");
    CHECK(tg::to_string(tape.gradient(0.25 * clipped(x), x)) == "[0.25 0.25 0.25]");
    CHECK(tg::to_string(tg::tensor<double>(stepped(x))) == "[-1.  1.  1.]");
    CHECK(tg::to_string(tape.gradient(stepped(x) * x, x)) == "[-4.   1.2  2.5]");
    CHECK(tg::to_string(tape.gradient(reversed(x), x)) == "[-1. -1. -1.]");
    // Far out the plain derivative is inf / inf.
    tensor<double> far{1000};
    tape.watch(far);
    CHECK(std::isnan(tape.gradient(tg::log(1 + tg::exp(far)), far).item()));
    CHECK(tape.gradient(log1pexp(far), far).item() == 1);
}

TEST_CASE("custom_gradient: both modes give the same bits, first and second derivatives") {
    both_modes first(first_order, tg::spec<double, tg::dyn, 3>{});
    both_modes narrow(first_order, tg::spec<float, tg::dyn, 3>{});
    both_modes second(second_order, tg::spec<double, tg::dyn, 3>{});
    for (std::int64_t n : {4, 1, 0, 301}) {
        TG_SAME(first.compare(drawn<double>({n, 3}, 1)));
        TG_SAME(narrow.compare(drawn<float>({n, 3}, 2)));
        // Unfused eager and fused graph add in other orders: a few roundings of sums of magnitude ~100.
        CHECK(second.distance(drawn<double>({n, 3}, 3)) < 1e-13);
    }
    both_modes three(several, tg::spec<double, 5>{}, tg::spec<double, 4>{}, tg::spec<std::int32_t, 4>{});
    both_modes captured(capturing, tg::spec<double, 4>{}, tg::spec<double, 4>{});
    const auto x = drawn<double>({4}, 1), w = drawn<double>({4}, 2);
    TG_SAME(captured.compare(x, w));
    CHECK(tg::to_string(tensor<double>(captured.results()[1])) == tg::to_string(x));
    CHECK(tg::to_string(tensor<double>(captured.results()[2])) == tg::to_string(tensor<double>(2 * w)));
    TG_SAME(three.compare(drawn<double>({5}, 1), drawn<double>({4}, 2, 0.5, 2), tensor<std::int32_t>{3, 0, 3, 1}));
}

TEST_CASE("custom_gradient: backward is differentiated") {
    const tensor_function<double> f = [](const tensors<double>& x) { return tensor<double>(cube(x[0]) + log1pexp(x[0])); };
    const tensors<double> x{drawn<double>({7}, 5)};
    const auto value = [&](const tensors<double>& at) {
        const tensor<double> y = f(at);
        return dot(y, weights_like(y, 9));
    };
    for (const slope& s : element_slopes(value, x, 0, tape_gradient(f, x, 1, 9)[0])) CHECK(s.agrees(1e-7));
    const auto derivative = [&](const tensors<double>& at) {
        const tensor<double> g = tape_gradient(f, at, 1, 9)[0];
        return dot(g, weights_like(g, 10));
    };
    for (const slope& s : element_slopes(derivative, x, 0, nested_gradient(f, x, 1, 9)[0])) CHECK(s.agrees(1e-7));
}

TEST_CASE("custom_gradient: nothing inside forward is differentiated") {
    tensor<double> x{1, 2}, w{3, 4};
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x, w);
    const auto f = tg::custom_gradient([w](auto v) { return v * w; }, [](auto dy, auto) { return dy; });
    const tensor<double> y = f(x);
    const auto [dx, dw] = tape.gradient(y, x, w);
    CHECK(tg::to_string(dx) == "[1. 1.]");
    CHECK(tg::to_string(dw) == "[0. 0.]");
    // A captured value of the backward function is kept with it.
    const auto g = tg::custom_gradient([](auto v) { return 2 * v; }, [w](auto dy, auto) { return dy * w; });
    CHECK(tg::to_string(tape.gradient(g(x), x)) == "[3. 4.]");
}

namespace {
// The lower layers learn to hide what the upper one learns to see: the gradient of their output is reversed.
struct adversary {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::eval(tanh(tg::dense(scope / "features", x, {.units = 4})));
        return tg::dense(scope / "judge", reversed(h), {.units = 1});
    }
};
} // namespace

TEST_CASE("custom_gradient: in a model, whose gradient is traced later") {
    const auto x = drawn<float>({8, 3}, 1);
    const tensor<float> y = tg::cast<float>(drawn<float>({8, 1}, 2) > 0);
    const auto train = [&]<class Mode>(Mode) {
        auto model = tg::compile<Mode>(adversary{}, tg::spec<float, tg::dyn, 3>{}, tg::sigmoid_cross_entropy{}, tg::sgd{0.5});
        std::vector<tg::any_tensor> values;
        for (int step = 0; step < 3; ++step) model.train_step(x.view(), y.view());
        for (const tg::variable& v : model.variables()) values.push_back(v.data().viewed(v.shape()));
        return values;
    };
    TG_SAME(difference(train(tg::graph{}), train(tg::eager{})));
}

TEST_CASE("custom_gradient: a derivative of another shape is refused") {
    tensor<double> x{1, 2};
    tg::gradient_tape tape;
    tape.watch(x);
    const auto f = tg::custom_gradient([](auto v) { return 2 * v; }, [](auto dy, auto) { return sum(dy); });
    const tensor<double> y = f(x);
    CHECK_THROWS_WITH_AS(tape.gradient(y, x),
                         "custom_gradient: a derivative has another shape or type than its argument: f64[], f64[2]",
                         tg::shape_error);
}

} // namespace custom_gradient_test
