#include <support/messages.hpp>

#include <tapegraph/number_tensor.hpp>
#include <tapegraph/tensor.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

/// Numbers that record and tensors in one program. References are the same functions in plain loops of numbers, whose
/// derivatives other tests check, and differences.

namespace number_tensor_test {

namespace tg = tapegraph;
using real = tg::real<>;
using reals = tg::real_tensor<>;
using jet1 = tg::jet<double, 1>;
using support::contains;
using support::message_of;

template <class N>
tg::number_tensor<N> product_in_loops(const tg::number_tensor<N>& a, const tg::number_tensor<N>& b) {
    const auto rows = a.shape()[0].value, inner = a.shape()[1].value, columns = b.shape()[1].value;
    tg::number_tensor<N> y(tg::shape{rows, columns});
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
            N sum = 0;
            for (std::int64_t k = 0; k < inner; ++k) sum += a(i, k) * b(k, j);
            y(i, j) = sum;
        }
    return y;
}
const auto product = tg::with_tensors([](const auto& a, const auto& b) { return matmul(a, b); });

tg::tensor<double> matrix(std::int64_t rows, std::int64_t columns, double phase) {
    auto t = tg::tensor<double>::uninitialized({rows, columns});
    double* to = t.mutable_data();
    for (std::int64_t i = 0; i < rows * columns; ++i) to[i] = std::sin(1.7 * static_cast<double>(i) + phase);
    return t;
}
// Numbers before and after the product; Tensors says whether it is a call of a function of tensors.
template <bool Tensors>
struct between {
    template <class A, class B>
    auto operator()(const A& a, const B& b) const {
        using N = std::remove_cvref_t<decltype(a[0])>;
        auto scaled = a;
        for (auto& each : scaled) each = exp(0.3 * each) - each * a[0];
        tg::number_tensor<N> second(b.shape());
        for (std::size_t i = 0; i < b.size(); ++i) second[i] = b[i] * b[i];
        tg::number_tensor<N> y;
        if constexpr (Tensors)
            y = product(scaled, second);
        else
            y = product_in_loops(scaled, second);
        N loss = 0;
        for (std::size_t i = 0; i < y.size(); ++i) loss += sin(y[i]) * (1.0 + static_cast<double>(i)) * a[0];
        return loss;
    }
};
// Sums of products in another order, of at most 17 numbers below 10, then a few operations.
constexpr double rounding = 1e-12;

template <class X, class Y>
void check_near(const X& x, const Y& y) {
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == doctest::Approx(y[i]).epsilon(rounding).scale(10));
}

TEST_CASE("with_tensors: a matrix product amid numbers, reverse, forward, and both in each other") {
    for (const auto& extents : {std::array{1, 1, 1}, std::array{3, 2, 4}, std::array{5, 17, 3}}) {
        const int m = extents[0], k = extents[1], n = extents[2];
        CAPTURE(k);
        const tg::number_tensor a(matrix(m, k, 0.3)), b(matrix(k, n, 1.1));
        const tg::number_tensor s(matrix(m, k, 2)), t(matrix(k, n, 4));
        constexpr between<true> f;
        constexpr between<false> g;
        CHECK(f(a, b) == doctest::Approx(g(a, b)).epsilon(rounding));
        const auto [fa, fb] = tg::gradient(f)(a, b);
        const auto [ga, gb] = tg::gradient(g)(a, b);
        CHECK(fa.shape() == a.shape());
        check_near(fa, ga);
        check_near(fb, gb);
        CHECK(tg::jvp(f)(a, b, s, t).tangent == doctest::Approx(tg::jvp(g)(a, b, s, t).tangent).epsilon(rounding));
        const auto [fv, fg, fp] = tg::hvp(f)(a, b, s, t).parts(); // real<jet>
        const auto [gv, gg, gp] = tg::hvp(g)(a, b, s, t).parts();
        check_near(std::get<0>(fg), std::get<0>(gg));
        check_near(std::get<0>(fp), std::get<0>(gp));
        check_near(std::get<1>(fp), std::get<1>(gp));
        const auto along_a = [&](const auto& x) {
            using N = std::remove_cvref_t<decltype(x[0])>;
            return f(x, tg::number_tensor<N>(b.values()));
        };
        const auto along_a_in_loops = [&](const auto& x) {
            using N = std::remove_cvref_t<decltype(x[0])>;
            return g(x, tg::number_tensor<N>(b.values()));
        };
        const auto fj = tg::jacobian_forward(along_a)(a), gj = tg::jacobian_reverse(along_a)(a);
        check_near(fj, tg::gradient(along_a_in_loops)(a));
        check_near(gj, fj);
    }
}

TEST_CASE("with_tensors: jets of jets, and floats") {
    using deep = tg::jet<jet1, 2>;
    tg::number_tensor<deep> a(tg::shape{2, 3}), b(tg::shape{3, 1});
    double at = 0.1;
    const auto fill = [&](auto& numbers) {
        for (deep& x : numbers)
            for (jet1* part : {&x.value, &x.derivative[0], &x.derivative[1]})
                part->value = std::sin(at += 0.7), part->derivative[0] = std::cos(at);
    };
    fill(a), fill(b);
    const auto found = product(a, b), expected = product_in_loops(a, b);
    for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].value.value == doctest::Approx(expected[i].value.value).epsilon(rounding));
        for (int k = 0; k < 2; ++k) {
            CHECK(found[i].derivative[k].value == doctest::Approx(expected[i].derivative[k].value).epsilon(rounding));
            CHECK(found[i].derivative[k].derivative[0] ==
                  doctest::Approx(expected[i].derivative[k].derivative[0]).epsilon(rounding));
        }
    }
    tg::real_tape<float> tape;
    tg::real<float> x = 3;
    tape.watch(x);
    const std::vector<tg::real<float>> v{x, 2 * x};
    const auto y = tg::with_tensors([](const auto& numbers) { return sum(numbers * numbers); })(v);
    CHECK(y.rank() == 0);
    CHECK(y.item() == 45.0f);
    CHECK(tape.gradient(y.item(), x) == 30.0f); // 10 x: exact in float
}

TEST_CASE("with_tensors: all kinds of arguments and results") {
    tg::real_tape<> tape;
    real x = 2;
    std::array<real, 2> pair{1, 3};
    std::vector<real> list{1, 2, 4};
    tape.watch(x);
    tape.watch(pair);
    tape.watch(list);
    const tg::tensor<double> weights{{1, 2}, {3, 4}, {5, 6}};
    const tg::tensor<std::int32_t> places{2, 0};
    // A formula of numbers, a tensor, an integer tensor, a formula of tensors, an array, a vector, a plain number
    const auto f = tg::with_tensors([](const auto& scale, const auto& w, const auto& at, const auto& twice,
                                       const auto& p, const auto& v, const auto& plain) {
        CHECK(scale.rank() == 0);
        CHECK(p.shape() == tg::shape{2});
        return std::tuple{scale * matmul(v, w) + plain, sum(gather(v, at) * p) + 0 * sum(twice)};
    });
    const auto [rows, total] = f(x * x, weights, places, 2 * weights, pair, list, 0.5);
    CHECK(rows.shape() == tg::shape{2});
    CHECK(rows[0].value() == 4 * (1 + 6 + 20) + 0.5);
    CHECK(total.item().value() == 4 * 1 + 1 * 3);
    const real loss = rows(1) * total.item();
    // rows[1] = x^2 (2 v0 + 4 v1 + 6 v2) + 1/2 = 4 * 34 + 1/2; total = v2 p0 + v0 p1 = 7
    const auto dv = tape.gradient(loss, list);
    CHECK(dv == std::vector<double>{8 * 7 + 136.5 * 3, 16 * 7, 24 * 7 + 136.5});
    CHECK(tape.adjoint(x) == 2 * 2 * 34 * 7);
    CHECK(tape.adjoint(pair[0]) == 136.5 * 4);
    // Without numbers it is the function itself; with plain numbers nothing is recorded.
    CHECK(tg::with_tensors([](const auto& w) { return sum(w); })(weights).item() == 21);
    const std::size_t before = tape.statements();
    const auto constant = tg::with_tensors([](const auto& w) { return square(w); })(std::vector<double>{3, 4});
    CHECK(constant[1] == 16.0);
    CHECK(tape.statements() == before);
    // Empty
    const auto none = tg::with_tensors([](const auto& w) {
        return std::tuple{square(w), sum(w)};
    })(std::vector<real>{});
    CHECK(std::get<0>(none).size() == 0);
    CHECK(std::get<1>(none).item().value() == 0);
}

TEST_CASE("with_tensors: constants, pauses, several sweeps, lanes") {
    int runs = 0;
    const auto squares = tg::with_tensors([&runs](const auto& v) {
        ++runs;
        return v * v;
    });
    tg::real_tape<> tape;
    std::vector<real> v{1, 2, 3};
    CHECK(squares(v)[2].value() == 9);
    CHECK(tape.statements() == 0);
    tape.watch(v);
    tape.pause();
    CHECK_FALSE(squares(v)[2].on_a_tape());
    tape.resume();
    const auto y = squares(v);
    runs = 0;
    CHECK(tape.gradient(y[2], v) == std::vector<double>{0, 0, 6});
    CHECK(tape.gradient(y[1] * v[0], v) == std::vector<double>{4, 4, 0});
    CHECK(runs == 2);
    tg::adjoint_lanes<double, 2> lanes(tape);
    lanes.add(y[0], 0);
    lanes.add(y[2], 1);
    lanes.sweep();
    CHECK(lanes(v[0], 0) == 2);
    CHECK(lanes(v[2], 1) == 6);
    CHECK(lanes(v[0], 1) == 0);
    const auto here = tape.position();
    (void)squares(v);
    tape.rewind(here);
    CHECK(tape.gradient(y[0], v[0]) == 2);
}

TEST_CASE("with_tensors: random numbers are the same in each run") {
    const auto noisy = tg::with_tensors([](const auto& v) { return v * tg::random::normal_like(v); });
    tg::real_tape<> tape;
    std::vector<real> v{1, 1, 1, 1};
    tape.watch(v);
    const auto y = noisy(v);
    const auto z = noisy(v);
    CHECK(y[0].value() != z[0].value());
    for (std::size_t i = 0; i < 4; ++i) CHECK(tape.gradient(y[i], v)[i] == y[i].value());
    using deep = tg::jet<jet1, 2>;
    std::vector<deep> numbers{deep(jet1(1, 0), 0), deep(jet1(1, 0), 1)};
    const auto moved = noisy(numbers);
    CHECK(moved[0].derivative[0].value == moved[0].value.value);
    CHECK(moved[1].derivative[1].value == moved[1].value.value);
}

TEST_CASE("with_tensors: errors name the culprit") {
    tg::real_tape<> tape;
    reals a(matrix(2, 3, 0)), b(matrix(2, 3, 1));
    tape.watch(a);
    const std::string extents = message_of([&] { (void)product(a, b); });
    CHECK(contains(extents, "matmul"));
    CHECK(contains(extents, "[2, 3]"));
    real ended = 1;
    {
        tg::real_tape<> inner;
        inner.watch(ended);
        std::vector<real> two{1, ended};
        const auto f = tg::with_tensors([](const auto& s, const auto& v) { return s * v; });
        CHECK(contains(message_of([&] { (void)f(2.0, a); }), "another tape"));
        CHECK(contains(message_of([&] { (void)f(a[0], two); }), "argument 1 was recorded by another tape"));
    }
    const auto identity = tg::with_tensors([](const auto& v) { return v + 1; });
    CHECK(contains(message_of([&] { (void)identity(ended); }), "another tape than the active one"));
    std::thread([&] { CHECK(contains(message_of([&] { (void)identity(a); }), "a tape that has ended")); }).join();
    tape.clear();
    CHECK(contains(message_of([&] { (void)identity(a); }), "before this one was cleared"));
    // A tensor that the tape of tensors follows
    tg::tensor<double> w{1, 2, 3};
    tg::gradient_tape outer;
    outer.watch(w);
    std::vector<real> v{1, 2, 3};
    tape.watch(v);
    const auto times = tg::with_tensors([](const auto& x, const auto& y) { return x * y; });
    CHECK(contains(message_of([&] { (void)times(v, w); }), "a gradient_tape follows a result of shape [3]"));
    CHECK(times(v, w.detach())[2].value() == 9);
    // Thrown in the sweep, it passes through the tape, which stays.
    int left = 1;
    const auto failing = tg::with_tensors([&left](const auto& x) {
        if (left-- == 0) throw std::runtime_error("no more");
        return x + 1;
    });
    const auto y = failing(v);
    CHECK_THROWS_WITH_AS(tape.backward(y[0]), "no more", std::runtime_error);
    CHECK(tape.gradient(v[0] * v[0], v)[0] == 2);
    CHECK(contains(message_of([&] { (void)reals({2, 2}, {1, 2, 3}); }), "3 numbers for shape [2, 2]"));
    CHECK(contains(message_of([&] { (void)reals(tg::shape{2, 2})(1); }), "1 indices for shape [2, 2]"));
    CHECK(contains(message_of([&] { (void)reals(tg::shape{2, 2})(1, 2); }), "index 2 on axis 1"));
    CHECK(contains(message_of([&] { (void)reals(tg::shape{2, 2}).item(); }), "[2, 2]"));
}

TEST_CASE("a tensor's elements as numbers that record") {
    const tg::tensor<double> w = matrix(3, 4, 0.2);
    tg::real_tape<> tape;
    reals x(w);
    tape.watch(x);
    real loss = 0;
    for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 4; ++j)
            if (x(i, j) > 0) loss += x(i, j) * x(i, (j + 1) % 4);
    tape.backward(loss);
    const tg::tensor<double> slopes = tg::adjoints(tape, x);
    CHECK(slopes.shape() == w.shape());
    const auto f = [&](const tg::tensor<double>& at) {
        double sum = 0;
        for (std::int64_t i = 0; i < 3; ++i)
            for (std::int64_t j = 0; j < 4; ++j)
                if (at(i, j) > 0) sum += at(i, j) * at(i, (j + 1) % 4);
        return sum;
    };
    for (std::int64_t i = 0; i < 12; ++i) {
        tg::tensor<double> up = w,
                           down = w; // of a square: the central difference is exact but for rounding, 1e-16 / 1e-4
        up.mutable_data()[i] += 1e-4, down.mutable_data()[i] -= 1e-4;
        CHECK(slopes.data()[i] == doctest::Approx((f(up) - f(down)) / 2e-4).epsilon(1e-9).scale(1));
    }
    CHECK(x.values().to_vector() == w.to_vector());
}

} // namespace number_tensor_test
