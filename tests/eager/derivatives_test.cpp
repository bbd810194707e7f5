#include <support/messages.hpp>

#include <tapegraph/eager/derivatives.hpp>
#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace derivatives_test {

/// vjp, jvp, hvp, jacobian and hessian of eager tensors: closed forms, structures, nesting, captures, errors. That every
/// operation is right is tests/ops/forward_table_test.cpp's business.

namespace tg = tapegraph;
using tg::tensor;
using vector = std::vector<double>;
using support::message_of;

namespace {

void check_close(const tensor<double>& a, const tensor<double>& b, double tolerance) {
    REQUIRE(a.shape() == b.shape());
    for (std::int64_t i = 0; i < a.size(); ++i) CHECK(std::abs(a.data()[i] - b.data()[i]) <= tolerance);
}

} // namespace

TEST_CASE("jacobian of softmax: diag(p) - p p'") {
    const tensor<double> x{0.5, -1, 2, 0.25};
    const auto f = [](auto a) { return softmax(a); };
    const tensor<double> p = f(x), forward = tg::jacobian_forward(f)(x), reverse = tg::jacobian_reverse(f)(x);
    auto want = tensor<double>::uninitialized({4, 4});
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) want.set((i == j ? p(i) : 0) - p(i) * p(j), i, j);
    check_close(forward, want, 1e-15);
    check_close(reverse, want, 1e-15);
}

TEST_CASE("jacobian of a product: the matrix; shapes are [result..., argument...]") {
    const tensor<double> m({{1, 2, 3}, {4, 5, 6}}), x({{1, 0}, {2, 1}, {0, 3}});
    const auto f = [](auto a, auto b) { return matmul(a, b); };
    const auto check = [&](const auto& jacobian) {
        const auto [by_m, by_x] = jacobian(m, x);
        REQUIRE(by_m.shape() == tg::shape{2, 2, 2, 3});
        REQUIRE(by_x.shape() == tg::shape{2, 2, 3, 2});
        for (int i = 0; i < 2; ++i)
            for (int k = 0; k < 2; ++k)
                for (int a = 0; a < 3; ++a)
                    for (int b = 0; b < 2; ++b) {
                        CHECK(by_m(i, k, b, a) == (i == b ? x(a, k) : 0));
                        CHECK(by_x(i, k, a, b) == (k == b ? m(i, a) : 0));
                    }
    };
    check(tg::jacobian(f));
    check(tg::jacobian_forward(f));
    check(tg::jacobian_reverse(f));
}

TEST_CASE("hessian of a quadratic form: A + A'; hvp: (A + A') v") {
    const tensor<double> a({{2, -1, 0.5}, {3, 1, 4}, {0, -2, 1}}), x{1, -2, 3}, v{0.5, 1, -1};
    const auto f = [&](auto u) {
        const auto column = reshape(u, {3, 1});
        return sum(column * matmul(a, column));
    };
    const tensor<double> both = a + transpose(a);
    check_close(tg::hessian(f)(x), both, 1e-14);
    const auto r = tg::hvp(f)(x, v);
    check_close(r.product, reshape(matmul(both, reshape(v, {3, 1})), {3}), 1e-14);
    check_close(r.gradient, reshape(matmul(both, reshape(x, {3, 1})), {3}), 1e-14);
    CHECK(r.value.item() == f(x).item());
}

TEST_CASE("hessian of Rosenbrock's function in two arguments: blocks") {
    const auto f = [](auto x, auto y) { return sum(square(1 - x) + 100 * square(y - square(x))); };
    const tensor<double> x = 1.5, y = 2.0;
    const auto h = tg::hessian(f)(x, y);
    CHECK(std::get<0>(std::get<0>(h)).item() == doctest::Approx(2 - 400 * (2.0 - 3 * 2.25)).epsilon(1e-14));
    CHECK(std::get<1>(std::get<0>(h)).item() == doctest::Approx(-400 * 1.5).epsilon(1e-14));
    CHECK(std::get<0>(std::get<1>(h)).item() == doctest::Approx(-400 * 1.5).epsilon(1e-14));
    CHECK(std::get<1>(std::get<1>(h)).item() == doctest::Approx(200).epsilon(1e-14));
    const auto p = tg::hvp(f)(std::tuple{x, y}, std::tuple{tensor<double>(1.0), tensor<double>(2.0)}).product;
    CHECK(std::get<0>(p).item() == doctest::Approx(2 - 400 * (2.0 - 3 * 2.25) - 1200 * 1.0).epsilon(1e-14));
}

TEST_CASE("jvp and vjp of several results; what does not depend on an argument is zero") {
    const tensor<double> x{1, 2}, t{10, 20}, u{1, 1};
    const auto f = [&](auto a) { return std::tuple{a * a, u * 3, argmax(a), std::tuple{sum(a)}}; };
    const auto r = tg::jvp(f)(x, t);
    CHECK(std::get<0>(r.tangent).to_vector() == vector{20, 80});
    CHECK(std::get<1>(r.tangent).to_vector() == vector{0, 0});
    CHECK(std::get<2>(r.value).item() == 1);
    CHECK(std::get<2>(r.tangent).item() == 0); // positions have no tangent
    CHECK(std::get<0>(std::get<3>(r.tangent)).item() == 30);
    const tensor<std::int32_t> nothing = 0;
    const auto g = tg::vjp(f)(std::tuple{u, u, nothing, std::tuple{2.0}}, x);
    CHECK(g.gradient.to_vector() == vector{4, 6});
    const auto constant = tg::jacobian([&](auto) { return u; })(x);
    CHECK(constant.shape() == tg::shape{2, 2});
    CHECK(constant.to_vector() == vector{0, 0, 0, 0});
    CHECK(tg::jacobian([](auto a) { return a; })(x).to_vector() == vector{1, 0, 0, 1}); // its own argument
}

TEST_CASE("what a function captures is a constant, also on an outer tape") {
    tensor<double> x{1, 2};
    const tensor<double> t{1, 10};
    CHECK(tg::jvp([&](auto a) { return a * x; })(x, t).tangent.to_vector() == vector{1, 20});
    tg::gradient_tape tape;
    tape.watch(x);
    const auto f = [&](auto a) { return a * x; }; // by a: x; of x where a = x: x^2
    CHECK(tg::jvp(f)(x, t).tangent.to_vector() == vector{1, 20});
    CHECK(tg::vjp(f)(t, x).gradient.to_vector() == vector{1, 20});
    CHECK(tg::gradient(f)(x).to_vector() == vector{1, 2});
    // The outer tape sees both uses: d(x t)/dx = t, d(x^2)/dx = 2 x
    const tensor<double> slope = tg::jvp(f)(x, t).tangent, value = tg::jvp(f)(x, t).value;
    const tensor<double> total = slope + value;
    CHECK(tape.gradient(total, x).to_vector() == vector{3, 14});
}

TEST_CASE("derivatives in derivatives") {
    const tensor<double> x{1, 2}, one{1, 1};
    const auto f = [](auto a) { return a * a * a; };
    const auto slope = [&](auto a) { return tg::jvp(f)(a, one).tangent; }; // 3 x^2
    CHECK(slope(x).to_vector() == vector{3, 12});
    CHECK(tg::gradient(slope)(x).to_vector() == vector{6, 12});
    CHECK(tg::jvp(slope)(x, one).tangent.to_vector() == vector{6, 12});
    const auto curvature = [&](auto a) { return tg::jvp(slope)(a, one).tangent; };
    CHECK(tg::gradient(curvature)(x).to_vector() == vector{6, 6});
    CHECK(tg::jvp(curvature)(x, one).tangent.to_vector() == vector{6, 6});
    // Third derivatives as the gradient of a Hessian, and a Hessian of a Hessian's trace.
    const auto number = [](auto a) { return sum(a * a * a * a); };
    CHECK(tg::gradient(tg::hessian(number))(x).to_vector() == vector{24, 48});
    CHECK(tg::hessian([&](auto a) { return sum(tg::hessian(number)(a)); })(x).to_vector() == vector{24, 0, 0, 24});
    // Through an operation whose tangent is found by transposing its vjp.
    const tensor<double> image = tg::from_range<double>(vector{1, 4, 2, 3, 9, 5, 6, 8, 7}, {1, 3, 3, 1});
    const auto pooled = [](auto a) { return sum(square(max_pooling2d(a, {.pool_size = {2, 2}, .stride = {1, 1}}))); };
    const tensor<double> h = tg::hessian(pooled)(image);
    CHECK(h(0, 1, 1, 0, 0, 1, 1, 0) == 8); // the largest of four windows
    CHECK(sum(h).item() == 8);
}

TEST_CASE("second derivatives of formulas with integers and answers in them") {
    const tensor<double> x{0.5, 2, -1}, one{1, 1, 1};
    const tensor<std::int32_t> label{0, 1, 1};
    const auto f = [&](auto a) {
        const auto inside = logical_and(a > -2, a < 1); // first and last
        return sum(where(inside, a * a, a * a * a) * tg::cast<double>(label) + where(label == 0, a * a * a, 0));
    };
    CHECK(tg::hvp(f)(x, one).product.to_vector() == vector{3, 12, 2});
    const auto nested = tg::gradient([&](auto a) { return sum(tg::gradient(f)(a)); });
    CHECK(nested(x).to_vector() == vector{3, 12, 2});
}

TEST_CASE("float, empty tensors, many elements") {
    const tensor<float> x{1, 2}, t{1, 0.5f};
    CHECK(tg::jvp([](auto a) { return square(a); })(x, t).tangent.to_vector() == std::vector<float>{2, 2});
    const tensor<double> none = tg::zeros<double>({0, 3});
    CHECK(tg::jvp([](auto a) { return tanh(a); })(none, none).tangent.shape() == tg::shape{0, 3});
    CHECK(tg::jacobian([](auto a) { return tanh(a); })(none).shape() == tg::shape{0, 3, 0, 3});
    CHECK(tg::jacobian([](auto a) { return sum(a, 0); })(none).shape() == tg::shape{3, 0, 3});
    // More rows than a graph would unroll.
    const tensor<double> wide = tg::arange<double>(150, 0.0, 0.01);
    const tensor<double> diagonal = tg::jacobian([](auto a) { return square(a); })(wide);
    CHECK(diagonal(149, 149) == 2 * wide(149));
    CHECK(diagonal(149, 148) == 0);
    // A cast between: tangents take the type of what they are tangents of.
    const auto widened = tg::jvp([](auto a) { return tg::cast<double>(a) * 3; })(x, t);
    CHECK(widened.tangent.to_vector() == vector{3, 1.5});
}

TEST_CASE("errors name what does not fit") {
    const tensor<double> x{1, 2}, t{1, 2, 3};
    const auto f = [](auto a) { return a * a; };
    CHECK(message_of<tg::shape_error>([&] { tg::jvp(f)(x, t); }) ==
          "jvp: shape or element type of a direction differs: direction 0 is f64[3], expected f64[2]");
    CHECK(message_of<tg::shape_error>([&] { tg::vjp(f)(t, x); }) ==
          "vjp: shape or element type of a cotangent differs: cotangent 0 is f64[3], expected f64[2]");
    CHECK(message_of<tg::argument_error>([&] {
              tg::vjp(f)(std::tuple{x, x}, x);
          }) == "vjp: as many cotangents as results: 2 given, 1 expected");
    const tensor<double> deep = tg::ones<double>({1, 1, 1, 1, 2});
    CHECK(message_of<tg::shape_error>([&] { tg::jacobian(f)(deep); }).find("jacobian: rank above 8") !=
          std::string::npos);
}

TEST_CASE("sweeps give their memory back") {
    const tensor<double> x = tg::ones<double>({64});
    const auto f = [](auto a) { return sum(tanh(a * a) * softmax(a)); };
    const auto work = [&] {
        const auto r = tg::hvp(f)(x, x);
        return r.product(0) + tg::jacobian(f)(x)(0) + tg::jvp(f)(x, x).tangent.item();
    };
    const double first = work();
    work();
    const auto before = tg::eager_memory();
    CHECK(work() == first);
    CHECK(tg::eager_memory().in_use == before.in_use);
    CHECK(tg::eager_memory().cached == before.cached);
}

TEST_CASE("forward mode goes through checkpoints, custom gradients and lists of operands") {
    const tensor<double> x{0.3, 1.7, -0.4}, v{1, -2, 0.5};
    const auto inner = [](auto a) { return tg::eval(tanh(a) * a); };
    const auto direct = tg::jvp(inner)(x, v), kept = tg::jvp(tg::checkpoint(inner))(x, v);
    CHECK(kept.tangent.to_vector() == direct.tangent.to_vector());

    // round, with the derivative of the identity (twice that, to tell it from the function's own)
    const auto rounded =
        tg::custom_gradient([](auto a) { return round(a); }, [](auto dy, auto, auto) { return 2 * dy; });
    const auto r = tg::jvp([&](auto a) { return tg::eval(3 * rounded(a)); })(x, v);
    CHECK(r.value.to_vector() == vector{0, 6, 0});
    CHECK(r.tangent.to_vector() == vector{6, -12, 3});

    const auto listed = tg::jvp([&](auto a) { return tg::concat({a, tg::tensor<double>(a * a), x}); })(x, v);
    const auto square = tg::jvp([](auto a) { return tg::eval(a * a); })(x, v).tangent.to_vector();
    vector want = v.to_vector();
    want.insert(want.end(), square.begin(), square.end());
    want.insert(want.end(), {0, 0, 0});
    CHECK(listed.tangent.to_vector() == want);
}

} // namespace derivatives_test
