#include <support/function_of_numbers.hpp>

#include <tapegraph/number_program.hpp>
#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

/// Recorded programs: values to the bit of double's code, derivatives with the tape's and with finite differences, alone
/// and in lanes, at other inputs than the recorded one.

namespace number_program_test {

namespace tg = tapegraph;
using program = tg::number_program<>;
using vector = std::vector<double>;

bool same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

// The last numbers are those of the Hessian's products.
using function =
    support::function_of_numbers<support::one_number, double, tg::real<>, tg::symbol<>, tg::real<tg::jet<double, 1>>>;

// f recorded at x, and run at other points.
void check(const char* name, const function& f, const vector& x) {
    INFO(std::string(name));
    const program p = tg::record(f, x), with_gradient = p.with_gradient(), hessian = p.hessian();
    REQUIRE(p.inputs() == x.size());
    const std::size_t n = x.size();
    std::mt19937 random(7);
    vector all, one_by_one;
    for (int point = 0; point < 11; ++point) {
        vector at = x;
        for (double& each : at) each *= point == 0 ? 1 : std::uniform_real_distribution<>(0.97, 1.03)(random);
        CHECK(same(p.value(at), f(at))); // the standard library's functions in the order of the code
        const vector result = with_gradient(at);
        CHECK(same(result[0], f(at)));
        // The tape's derivatives, the same rules in another order of sums: a few roundings of 1e-16.
        const auto expected = tg::gradient(f)(at);
        for (std::size_t i = 0; i < n; ++i) CHECK(result[i + 1] == doctest::Approx(expected[i]).epsilon(1e-12));
        const vector h = hessian(at);
        for (std::size_t i = 0; i < n; ++i) {
            vector along(n);
            along[i] = 1;
            const vector second = tg::hvp(f)(at, along).product;
            for (std::size_t j = 0; j < n; ++j) CHECK(h[i * n + j] == doctest::Approx(second[j]).epsilon(1e-10));
        }
        // Central differences: step^2 1e-12 and 1e-16 / step 1e-10, of derivatives below 1e3.
        for (std::size_t i = 0; i < n; ++i) {
            vector up = at, down = at;
            up[i] += 1e-6, down[i] -= 1e-6;
            CHECK(result[i + 1] == doctest::Approx((f(up) - f(down)) / 2e-6).epsilon(1e-6));
        }
        all.insert(all.end(), at.begin(), at.end());
        one_by_one.insert(one_by_one.end(), result.begin(), result.end());
    }
    vector batch(one_by_one.size());
    with_gradient.run_batch(11, all, batch);
    // The library's functions in lanes are within 4 units in the last place of the standard library's.
    for (std::size_t i = 0; i < batch.size(); ++i) CHECK(batch[i] == doctest::Approx(one_by_one[i]).epsilon(1e-11));
}
#define CHECK_1(f, ...)                                                                                                \
    check(                                                                                                             \
        #f,                                                                                                            \
        [](const auto& v) {                                                                                            \
            using namespace std;                                                                                       \
            const auto x = v[0];                                                                                       \
            return std::remove_cvref_t<decltype(v[0])>(f);                                                             \
        },                                                                                                             \
        vector{__VA_ARGS__})
#define CHECK_2(f, ...)                                                                                                \
    check(                                                                                                             \
        #f,                                                                                                            \
        [](const auto& v) {                                                                                            \
            using namespace std;                                                                                       \
            const auto x = v[0], y = v[1];                                                                             \
            return std::remove_cvref_t<decltype(v[0])>(f);                                                             \
        },                                                                                                             \
        vector{__VA_ARGS__})

TEST_CASE("number_program: functions of one number") {
    for (double at : {0.31, -0.72}) {
        CHECK_1(sin(x) + cos(2 * x) + tan(x), at);
        CHECK_1(asin(x) + acos(x) * atan(x), at);
        CHECK_1(sinh(x) + cosh(x) * tanh(x), at);
        CHECK_1(asinh(x) + acosh(x + 2) + atanh(x), at);
        CHECK_1(exp(x) + exp2(x) * expm1(x), at);
        CHECK_1(log(x + 1) + log2(x + 1) * log10(x + 1) + log1p(x), at);
        CHECK_1(sqrt(x + 1) * cbrt(x), at);
        CHECK_1(erf(x) + erfc(x) * x, at);
        CHECK_1(tgamma(x) + lgamma(x), at);
        CHECK_1(fabs(x) * x + abs(x * x - 1), at);
        CHECK_1(ldexp(x, 3) * x + scalbn(x, -2), at);
        CHECK_1(floor(x * 3) * x + ceil(x * 3) * x * x + trunc(x * 3) * x, at);
        CHECK_1(round(x * 3) * x + rint(x * 3) * x + nearbyint(x * 3) * x * x + logb(x) * x, at);
        CHECK_1(-x + +x - 2 * x + x / 2 + 3 / (x + 2) - x * -1.0 + -x * -x + x / -4.0, at);
        CHECK_1(x * 1.0 + 1.0 * x - 0.0 + (x - -x) + (-x + x * x) + -(-(x)), at);
    }
}

TEST_CASE("number_program: functions of several numbers") {
    CHECK_2(pow(x, y), 1.3, 2.7);
    CHECK_2(pow(x, 3) + pow(2, y) + pow(x, 0.5) * pow(y, 1) + pow(x, 0), 1.3, 2.7);
    CHECK_2(atan2(x, y) + hypot(x, y), 0.4, -1.2);
    CHECK_2(hypot(x, y, x * y), 0.4, -1.2);
    CHECK_2(fmod(x, y) * y + remainder(x, y) * x, 7.3, 2.1);
    CHECK_2(fmax(x, y) * x + fmin(2 * x, y) * y, 0.4, 1.2);
    CHECK_2(max(x, y) * x + 3 * min(x, y) * y, 0.4, 1.2);
    CHECK_2(max(x, 0.1) * x + 3 * min(2.0, y) * y, 0.4, 1.2);
    CHECK_2(fdim(x, y) * x + fdim(y, x) * y, 0.4, 1.2);
    CHECK_2(copysign(x, y) * x, 0.4, -1.2);
    CHECK_2(fma(x, y, x * x), 0.4, -1.2);
    CHECK_2((x + y) * (x - y) / (x * y + 1), 0.4, -1.2);
    CHECK_2((x + y) - x * y + ((x - y) + x) * y - (x + y * y) + (x * y) * x + (x - x * y) * y + (x * x + y * y + x),
            0.4, -1.2);
}

#undef CHECK_1
#undef CHECK_2

TEST_CASE("number_program: the library's functions, and conditions without branches") {
    const auto f = [](const auto& v) {
        const auto x = v[0], y = v[1];
        return tg::sigmoid(x) * tg::softplus(y) + tg::relu(x) * x + tg::square(y) + tg::pow<3>(x) + tg::pow<-2>(y) +
               tg::where(x > y, x * x, y * y) + tg::where(tg::logical_and(x < 2, y < 2), x * y, 0) +
               tg::maximum(x, y) * x + tg::clip(x, 0.1, y) * y + tg::rsqrt(x) + tg::reciprocal(y);
    };
    check("library", f, {0.4, 1.2});
    const program p = tg::record(f, vector{0.4, 1.2});
    CHECK(p.comparisons() == 0);
    for (const vector& at : {vector{1.9, 0.3}, vector{2.5, 3.5}, vector{0.05, 0.2}}) // the other sides
        CHECK(p.value(at) == doctest::Approx(f(at)).epsilon(1e-14));
}

TEST_CASE("number_program: assignment, counting, conversions to integers") {
    const auto f = [](const auto& v) {
        using number = std::remove_cvref_t<decltype(v[0])>;
        number x = v[0], y = v[1], s = x;
        s += y * x;
        s -= y;
        s *= x + 1;
        s /= y;
        s += 2;
        number old = s++;
        ++s;
        old -= s--;
        --s;
        if (s > old && !(s <= y) && x == x && x != y && 1.0 > x) s = s * s;
        number tied = s > 3 ? number(x * y) : x;
        return number(s + tied * static_cast<int>(y) + static_cast<double>(static_cast<bool>(x)) * s);
    };
    check("code", f, {0.7, 3.4});
    const program p = tg::record(f, vector{0.7, 3.4});
    CHECK(p.check(vector{0.7, 3.9}) == std::nullopt);
    CHECK(p.check(vector{0.7, 4.1})); // static_cast<int>(y) is another constant
    const auto integers = [](const auto& v) {
        using std::lround, std::ilogb, std::fpclassify, std::frexp, std::modf, std::nextafter;
        using number = std::remove_cvref_t<decltype(v[0])>;
        int exponent = 0;
        number whole = 0;
        const number fraction = frexp(v[0], &exponent), rest = modf(v[0], &whole);
        return number(fraction * exponent + rest * whole + v[0] * static_cast<double>(lround(v[0])) + ilogb(v[0]) +
                      nextafter(v[0], 1e9) * (fpclassify(v[0]) == FP_NORMAL ? 2 : 1));
    };
    check("integers", integers, {5.7});
    const program q = tg::record(integers, vector{5.7});
    CHECK(q.check(vector{6.1}) == std::nullopt);
    CHECK(q.check(vector{5.4}));
    CHECK(q.check(vector{8.1}));
    CHECK(q.check(vector{0.0}));
}

TEST_CASE("number_program: equal operations are one, and what is not needed is left out") {
    const program p = tg::record(
        [](const auto& v) {
            using std::exp;
            const auto unused = exp(v[1]) * 3;
            static_cast<void>(unused);
            return exp(v[0] * v[1]) + exp(v[1] * v[0]) * exp(v[0] * v[1]);
        },
        vector{0.5, 0.25});
    CHECK(p.instructions() == 3); // multiply, exp, and e + e e as one
    const program constant = tg::record([](const auto& v) { return 0 * v[0].value() + 3; }, vector{1});
    CHECK(constant.instructions() == 0);
    CHECK(constant.value(vector{5}) == 3);
    CHECK(constant.gradient()(vector{5}) == vector{0});
}

TEST_CASE("number_program: several arguments and results; products with derivatives") {
    const auto f = [](const auto& a, const auto& b, const auto& c) {
        using std::sin;
        return std::tuple{a[0] * b[1] + c, std::vector{sin(a[1]), b[0] * b[0] * c}};
    };
    const std::array<double, 2> a{0.5, 0.3};
    const vector b{1.5, -2};
    const program p = tg::record(f, a, b, 0.7);
    REQUIRE(p.inputs() == 5);
    REQUIRE(p.results() == 3);
    const vector x{0.6, 0.2, 1.1, -1.7, 0.9};
    CHECK(p(x) == vector{0.6 * -1.7 + 0.9, std::sin(0.2), 1.1 * 1.1 * 0.9});
    const vector expected{-1.7, 0, 0, 0.6, 1, 0, std::cos(0.2), 0, 0, 0, 0, 0, 2 * 1.1 * 0.9, 0, 1.1 * 1.1};
    const vector j = p.jacobian()(x);
    for (std::size_t i = 0; i < 15; ++i) CHECK(j[i] == doctest::Approx(expected[i]));
    const vector t{1, -2, 0.5, 3, 0.25}, u{2, -1, 0.5};
    vector xt = x, xu = x;
    xt.insert(xt.end(), t.begin(), t.end());
    xu.insert(xu.end(), u.begin(), u.end());
    const vector forward = p.jvp()(xt), backward = p.vjp()(xu);
    for (std::size_t i = 0; i < 3; ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < 5; ++k) sum += expected[i * 5 + k] * t[k];
        CHECK(forward[i] == doctest::Approx(sum));
    }
    for (std::size_t k = 0; k < 5; ++k) {
        double sum = 0;
        for (std::size_t i = 0; i < 3; ++i) sum += u[i] * expected[i * 5 + k];
        CHECK(backward[k] == doctest::Approx(sum));
    }
    CHECK_THROWS_WITH_AS(p.gradient(), doctest::Contains("3 results"), tg::argument_error);
    const program single = tg::record([](const auto& v) { return v[0] * v[0] * v[1]; }, vector{1, 2});
    CHECK(single.hvp()(vector{3, 5, 1, 0}) == vector{10, 6});
    // A result that is an input, one that is a constant, one that is there twice.
    const program plain = tg::record(
        [](const auto& v) {
            return std::vector{v[1], v[0] * 2, v[1], v[0] * 0 + 4, v[0] * 2};
        },
        vector{1, 2});
    CHECK(plain(vector{3, 5}) == vector{5, 6, 5, 4, 6});
    CHECK(plain.jacobian()(vector{3, 5}) == vector{0, 1, 2, 0, 0, 1, 0, 0, 2, 0});
    CHECK(plain.vjp()(vector{3, 5, 1, 10, 100, 1000, 10000}) == vector{20020, 101});
}

TEST_CASE("number_program: wide and tall Jacobians") {
    // By reverse mode and by forward mode.
    const auto wide = [](const auto& v) {
        using number = std::remove_cvref_t<decltype(v[0])>;
        number sum = v[0] * v[0];
        for (std::size_t i = 1; i < v.size(); ++i) sum += v[i] * v[i - 1];
        return std::vector<number>{sum, sum * v[2]};
    };
    const auto tall = [](const auto& v) {
        std::vector<std::remove_cvref_t<decltype(v[0])>> all;
        for (int i = 0; i < 17; ++i) all.push_back(v[0] * i + v[1] * v[1]);
        return all;
    };
    vector x(23);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
    const auto check_jacobian = [](const auto& f, const vector& at) {
        const vector j = tg::record(f, at).jacobian()(at);
        const auto expected = tg::jacobian(f)(at);
        for (std::size_t i = 0; i < expected.size(); ++i)
            for (std::size_t k = 0; k < at.size(); ++k)
                CHECK(j[i * at.size() + k] == doctest::Approx(expected[i][k]).epsilon(1e-13));
    };
    check_jacobian(wide, x);
    check_jacobian(tall, vector{0.3, 0.7});
}

TEST_CASE("number_program: what nothing depends on adds nothing; infinities and NaN pass") {
    const auto f = [](const auto& v) {
        using std::sqrt, std::log;
        return tg::where(v[0] > 0, sqrt(v[0]) * log(v[0]), 0) + v[1];
    };
    const program p = tg::record(f, vector{4, 1}), g = p.gradient();
    CHECK(p.value(vector{0, 1}) == 1);
    CHECK(g(vector{0, 1}) == vector{0, 1}); // the slopes of sqrt and log at 0 are infinite
    CHECK(g(vector{4, 1})[0] == doctest::Approx(std::log(4.0) / 4 + 0.5));
    // An adjoint that is 0 at this input still has derivatives.
    const auto product = [](const auto& v) {
        using std::sqrt;
        return v[0] * sqrt(v[1]);
    };
    CHECK(tg::record(product, vector{1, 4}).hessian()(vector{0, 4}) == vector{0, 0.25, 0.25, 0});
    const double inf = std::numeric_limits<double>::infinity();
    const program plain = tg::record([](const auto& v) { return v[0] * 2 + v[1]; }, vector{1, 1});
    CHECK(plain.value(vector{inf, 1}) == inf);
    CHECK(std::isnan(plain.value(vector{inf, -inf})));
    const program zero = tg::record([](const auto& v) { return v[0] * 0 + -0.0; }, vector{1});
    CHECK(std::isnan(zero.value(vector{inf}))); // 0 x is no 0
    CHECK(std::signbit(zero.value(vector{-1.0})));
}

TEST_CASE("number_program: batches of any length, of float, and of nothing") {
    const auto f = [](const auto& v) {
        using std::exp;
        return exp(v[0]) * v[1] - v[1] / v[0];
    };
    const tg::number_program<float> p = tg::record(f, std::vector<float>{1, 2});
    for (std::size_t count : {0u, 1u, 7u, 15u, 16u, 17u, 64u, 101u}) {
        std::vector<float> x, y(count);
        for (std::size_t i = 0; i < 2 * count; ++i) x.push_back(0.5f + 0.01f * static_cast<float>(i));
        p.run_batch(count, x, y);
        for (std::size_t i = 0; i < count; ++i)
            CHECK(y[i] == doctest::Approx(p.value(std::span(x).subspan(2 * i, 2))).epsilon(1e-5)); // floats
    }
    const program none = tg::record([](const auto&) { return 3.0; }, vector{});
    CHECK(none.value(vector{}) == 3);
    CHECK(none.gradient()(vector{}).empty());
    const program nothing = tg::record([](const auto&) { return vector{}; }, vector{1});
    CHECK(nothing(vector{1}).empty());
}

TEST_CASE("number_program: in several threads, and of nested recordings") {
    const program p = tg::record([](const auto& v) { return v[0] * v[0]; }, vector{1});
    std::vector<std::thread> all;
    std::array<double, 4> sums{};
    for (std::size_t t = 0; t < 4; ++t)
        all.emplace_back([&, t] {
            for (int i = 0; i < 1000; ++i) sums[t] += p.value(vector{static_cast<double>(t)});
        });
    for (auto& each : all) each.join();
    for (std::size_t t = 0; t < 4; ++t) CHECK(sums[t] == 1000.0 * static_cast<double>(t * t));
    const program outer = tg::record(
        [](const auto& v) {
            const program inner = tg::record([](const auto& w) { return w[0] * 3; }, vector{1});
            return v[0] * inner.value(vector{2});
        },
        vector{1});
    CHECK(outer.value(vector{5}) == 30);
}

TEST_CASE("number_program: bad input is refused") {
    const program p = tg::record([](const auto& v) { return v[0] + v[1]; }, vector{1, 2});
    CHECK_THROWS_WITH_AS(p(vector{1}), doctest::Contains("run: inputs of 1 numbers, expected 2"), tg::shape_error);
    vector y(2);
    CHECK_THROWS_WITH_AS(p.run(vector{1, 2}, y), doctest::Contains("results of 2 numbers, expected 1"),
                         tg::shape_error);
    CHECK_THROWS_WITH_AS(p.run_batch(3, vector{1, 2}, y), doctest::Contains("expected 6"), tg::shape_error);
    tg::symbol<> kept;
    tg::record(
        [&](const auto& v) {
            kept = v[0] * 2;
            return kept;
        },
        vector{1});
    CHECK_THROWS_WITH_AS(kept + 1, doctest::Contains("another recording"), tg::argument_error);
    CHECK_THROWS_WITH_AS(static_cast<void>(static_cast<bool>(kept > 1)), doctest::Contains("another recording"),
                         tg::argument_error);
    CHECK_THROWS_AS(tg::record([&](const auto& v) { return v[0] * kept; }, vector{1}), tg::argument_error);
    CHECK_THROWS_AS(tg::record([&](const auto&) { return kept; }, vector{1}), tg::argument_error);
    CHECK(kept.value() == 2);
    struct stopped {};
    CHECK_THROWS_AS(
        tg::record([](const auto& v) -> std::remove_cvref_t<decltype(v[0])> { throw stopped{}; }, vector{1}), stopped);
    CHECK(tg::record([](const auto& v) { return v[0]; }, vector{1}).value(vector{4}) == 4); // after the exception
}

} // namespace number_program_test
