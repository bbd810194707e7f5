#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

/// Taylor polynomials: values to the bit of double's code where no rule of their own changes them, derivatives of all
/// orders with those of nested jets, and with series that are known.

namespace taylor_test {

namespace tg = tapegraph;

template <int N>
struct nested_jet {
    using type = tg::jet<typename nested_jet<N - 1>::type, 1>;
    static type variable(double x) {
        type v(nested_jet<N - 1>::variable(x));
        v.derivative[0] = 1;
        return v;
    }
    static double derivative(const type& y) { return nested_jet<N - 1>::derivative(y.derivative[0]); }
};
template <>
struct nested_jet<0> {
    using type = double;
    static type variable(double x) { return x; }
    static double derivative(double y) { return y; }
};

// The third derivative by jets in jets, the orders below likewise; the fifth by differences of the fourth.
template <class F>
void check(const char* name, const F& f, double x) {
    INFO(std::string(name) << " at " << x);
    const auto d = tg::derivatives_up_to<5>(f, x);
    CHECK(d[0] == doctest::Approx(f(x)).epsilon(1e-15));
    const auto compare = [&]<int K>(std::integral_constant<int, K>) {
        using jets = nested_jet<K>;
        const double expected = jets::derivative(typename jets::type(f(jets::variable(x))));
        CHECK(d[K] == doctest::Approx(expected).epsilon(1e-10));
    };
    compare(std::integral_constant<int, 1>{});
    compare(std::integral_constant<int, 2>{});
    compare(std::integral_constant<int, 3>{});
    // Central differences: the error is step^2 / 6 of two orders more, about 1e-8 of it, and 1e-15 / step.
    const double step = 1e-4;
    for (std::size_t k : {3u, 4u}) {
        const double up = tg::derivatives_up_to<5>(f, x + step)[k], down = tg::derivatives_up_to<5>(f, x - step)[k];
        const double scale = 1 + std::fabs(d[k]) + std::fabs(d[k + 1]);
        CHECK(std::fabs(d[k + 1] - (up - down) / (2 * step)) < 1e-4 * scale);
    }
}
#define CHECK_SERIES(f, at)                                                                                            \
    check(                                                                                                             \
        #f,                                                                                                            \
        [](const auto& x) {                                                                                            \
            using namespace std;                                                                                       \
            return std::remove_cvref_t<decltype(x)>(f);                                                                \
        },                                                                                                             \
        at)

TEST_CASE("taylor: functions of <cmath>, and of the library") {
    for (double at : {0.31, -0.62}) {
        CHECK_SERIES(sin(x) * cos(2 * x) + tan(x), at);
        CHECK_SERIES(asin(x) + acos(x) * atan(x), at);
        CHECK_SERIES(sinh(x) + cosh(x) * tanh(x), at);
        CHECK_SERIES(asinh(x) + acosh(x + 3) + atanh(x / 2), at);
        CHECK_SERIES(exp(x) + exp2(x) * expm1(x), at);
        CHECK_SERIES(log(x + 2) + log2(x + 2) * log10(x + 2) + log1p(x), at);
        CHECK_SERIES(sqrt(x + 1) * cbrt(x + 2) / (x * x + 1), at);
        CHECK_SERIES(erf(x) + erfc(x) * x - x, at);
        CHECK_SERIES(lgamma(x + 3), at);
        CHECK_SERIES(pow(x + 2, 2.5) + pow(2, x) + pow(x + 2, x), at);
        CHECK_SERIES(hypot(x, 2) + atan2(x, 3) + fmax(x, 5) + fmin(x, 5) + fabs(x), at);
        CHECK_SERIES(fma(x, x, sin(x)) + ldexp(x * x, 2) + max(x, -x) * x + floor(x) * x + round(3 * x) * x, at);
        CHECK_SERIES(1 / (1 + exp(-x)) + (-x) * +x - 2 * x / 3, at);
    }
}

#undef CHECK_SERIES

TEST_CASE("taylor: loops and branches, assignment, comparisons") {
    const auto root = [](const auto& x) {
        using number = std::remove_cvref_t<decltype(x)>;
        number y = x;
        for (int i = 0; i < 30; ++i) {
            const number next = 0.5 * (y + x / y);
            if (abs(next - y) < 1e-15 * next && i > 12) break;
            y = next;
        }
        y += 1, y -= x, y *= x, y /= 2, ++y, y++, --y, y--;
        return y;
    };
    const auto d = tg::derivatives_up_to<4>(
        [&](const auto& x) {
            using std::abs;
            return root(x);
        },
        2.0);
    const auto expected = tg::derivatives_up_to<4>([](const auto& x) { return (sqrt(x) + 1 - x) * x / 2; }, 2.0);
    for (std::size_t k = 0; k < 5; ++k)
        CHECK(d[k] == doctest::Approx(expected[k]).epsilon(1e-9)); // Newton's iterations
    const tg::taylor<double, 2> x = tg::taylor<double, 2>::variable(2.75);
    CHECK(static_cast<int>(x) == 2);
    CHECK(lround(x) == 3);
    CHECK((x > 2 && 3 >= x && x == x && x != 1));
    std::ostringstream out;
    out << x * 2;
    CHECK(out.str() == "5.5");
    CHECK(std::numeric_limits<tg::taylor<double, 2>>::epsilon().value() == std::numeric_limits<double>::epsilon());
}

TEST_CASE("taylor: known coefficients, order 0, order 20, float") {
    const auto e = tg::derivatives_up_to<20>([](const auto& x) { return exp(x) * 1; }, 0);
    for (double each : e) CHECK(each == doctest::Approx(1));
    const auto geometric = tg::derivatives_up_to<12>([](const auto& x) { return 1 / (1 - x); }, 0);
    double factorial = 1;
    for (std::size_t k = 0; k < geometric.size(); ++k) {
        if (k > 0) factorial *= static_cast<double>(k);
        CHECK(geometric[k] == doctest::Approx(factorial));
    }
    CHECK(tg::derivatives_up_to<0>([](const auto& x) { return sin(x) + tanh(x); }, 0.5)[0] ==
          doctest::Approx(std::sin(0.5) + std::tanh(0.5)));
    CHECK(tg::derivatives_up_to<2>([](const auto& x) { return x * x * x; }, 2.0f) == std::array<float, 3>{8, 12, 12});
    CHECK(tg::derivatives_up_to<3>([](const auto&) { return 4.0; }, 2.0) == std::array<double, 4>{4, 0, 0, 0});
}

TEST_CASE("taylor: an infinite slope by what does not move adds nothing") {
    const auto d = tg::derivatives_up_to<3>(
        [](const auto& x) {
            using number = std::remove_cvref_t<decltype(x)>;
            return x + sqrt(number(0)) + asin(number(1)) + tg::where(x > 0, x * x, log(x - 2));
        },
        2.0);
    CHECK(d[1] == 5);
    CHECK(d[2] == 2);
    CHECK(d[3] == 0);
}

} // namespace taylor_test
