#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

/// tg::real in the place of double: values to the bit, and derivatives with finite differences.

namespace number_test {

namespace tg = tapegraph;
using real = tg::real<>;

// f's value and derivatives by the tape, at x.
template <class F, std::size_t N>
std::array<double, N + 1> taped(const F& f, const std::array<double, N>& x) {
    tg::real_tape<> tape;
    std::array<real, N> v;
    for (std::size_t i = 0; i < N; ++i) tape.watch(v[i] = x[i]);
    const real y = std::apply(f, v);
    tape.backward(y);
    std::array<double, N + 1> all{y.value()};
    for (std::size_t i = 0; i < N; ++i) all[i + 1] = tape.adjoint(v[i]);
    return all;
}

// The value has double's bits; derivatives agree with central differences of long double's function.
template <class F, std::size_t N>
void check(const char* name, const F& f, const std::array<double, N>& x, double tolerance = 1e-7) {
    const auto all = taped(f, x);
    INFO(std::string(name));
    const double value = std::apply(f, x);
    CHECK((all[0] == value || (std::isnan(all[0]) && std::isnan(value))));
    for (std::size_t i = 0; i < N; ++i) {
        std::array<long double, N> up, down;
        for (std::size_t k = 0; k < N; ++k) up[k] = down[k] = static_cast<long double>(x[k]);
        const long double step = 1e-6L * (1 + std::fabs(up[i]));
        up[i] += step, down[i] -= step;
        const long double slope = (std::apply(f, up) - std::apply(f, down)) / (2 * step);
        CHECK(std::fabs(static_cast<double>(slope) - all[i + 1]) <= tolerance * (1 + std::fabs(all[i + 1])));
    }
}
#define CHECK_1(f, ...)                                                                                                \
    check(                                                                                                             \
        #f,                                                                                                            \
        [](auto x) {                                                                                                   \
            using namespace std;                                                                                       \
            return decltype(x)(f);                                                                                     \
        },                                                                                                             \
        std::array{__VA_ARGS__})
#define CHECK_2(f, ...)                                                                                                \
    check(                                                                                                             \
        #f,                                                                                                            \
        [](auto x, auto y) {                                                                                           \
            using namespace std;                                                                                       \
            return decltype(x)(f);                                                                                     \
        },                                                                                                             \
        std::array{__VA_ARGS__})
#define CHECK_3(f, ...)                                                                                                \
    check(                                                                                                             \
        #f,                                                                                                            \
        [](auto x, auto y, auto z) {                                                                                   \
            using namespace std;                                                                                       \
            return decltype(x)(f);                                                                                     \
        },                                                                                                             \
        std::array{__VA_ARGS__})

TEST_CASE("real: every function of <cmath> of one number") {
    for (double at : {0.3, -0.7, 0.9}) {
        CHECK_1(sin(x), at);
        CHECK_1(cos(x), at);
        CHECK_1(tan(x), at);
        CHECK_1(asin(x), at);
        CHECK_1(acos(x), at);
        CHECK_1(atan(x), at);
        CHECK_1(sinh(x), at);
        CHECK_1(cosh(x), at);
        CHECK_1(tanh(x), at);
        CHECK_1(asinh(x), at);
        CHECK_1(acosh(x + 2), at);
        CHECK_1(atanh(x), at);
        CHECK_1(exp(x), at);
        CHECK_1(exp2(x), at);
        CHECK_1(expm1(x), at);
        CHECK_1(log(x + 1), at);
        CHECK_1(log2(x + 1), at);
        CHECK_1(log10(x + 1), at);
        CHECK_1(log1p(x), at);
        CHECK_1(sqrt(x + 1), at);
        CHECK_1(cbrt(x), at);
        CHECK_1(erf(x), at);
        CHECK_1(erfc(x), at);
        CHECK_1(tgamma(x), at);
        CHECK_1(lgamma(x), at);
        CHECK_1(lgamma(x * 20.3), at);
        CHECK_1(fabs(x), at);
        CHECK_1(abs(x), at);
        CHECK_1(ldexp(x, 3) + scalbn(x, -2), at);
        CHECK_1(floor(x * 3) * x + ceil(x * 3) * x + trunc(x * 3) * x, at);
        CHECK_1(round(x * 3) * x + rint(x * 3) * x + nearbyint(x * 3) * x + logb(x) * x, at);
        CHECK_1(-x + +x - 2 * x + x / 2 + 3 / (x + 2), at);
    }
}

TEST_CASE("real: every function of <cmath> of several numbers") {
    CHECK_2(pow(x, y), 1.3, 2.7);
    CHECK_2(pow(x, 3) + pow(2, y) + pow(x, 0.5), 1.3, 2.7);
    CHECK_2(atan2(x, y), 0.4, -1.2);
    CHECK_2(hypot(x, y), 0.4, -1.2);
    CHECK_3(hypot(x, y, z), 0.4, -1.2, 2.0);
    CHECK_2(fmod(x, y), 7.3, 2.1);
    CHECK_2(fmod(x, y), -7.3, 2.1);
    CHECK_2(remainder(x, y), 7.3, 2.1);
    CHECK_2(fmax(x, y) + fmin(2 * x, y), 0.4, 1.2);
    CHECK_2(max(x, y) + 3 * min(x, y), 0.4, 1.2);
    CHECK_2(fdim(x, y) + fdim(y, x), 0.4, 1.2);
    CHECK_2(copysign(x, y), 0.4, -1.2);
    CHECK_3(fma(x, y, z), 0.4, -1.2, 2.0);
    CHECK_2((x + y) * (x - y) / (x * y + 1), 0.4, -1.2);
}

#undef CHECK_1
#undef CHECK_2
#undef CHECK_3

TEST_CASE("real: assignment, counting, comparisons, conversions") {
    const auto f = [](auto x, auto y) {
        using number = decltype(x);
        number s = x;
        s += y * x;
        s -= y;
        s *= x + 1;
        s /= y;
        s += 2;
        s *= 0.5f;
        number old = s++;
        ++s;
        old -= s--;
        --s;
        if (s > old && !(s <= y) && x == x && x != y && 1.0 > x) s = s * s;
        number copy = s, tied = s > 3 ? x * y : x;
        return number(copy + tied * static_cast<int>(y));
    };
    check("code", f, std::array{0.7, 3.4});
    const real x = 2.75;
    CHECK(static_cast<int>(x) == 2);
    CHECK(static_cast<float>(x * 2) == 5.5f);
    CHECK(static_cast<bool>(x));
    if (x) CHECK(x.value() == 2.75);
    CHECK(sizeof(real) == 16);
    CHECK(lround(x) == 3);
    CHECK(ilogb(x) == 1);
    CHECK(isfinite(x));
    CHECK(isnormal(x));
    CHECK_FALSE(isnan(x));
    CHECK_FALSE(isinf(x));
    CHECK_FALSE(signbit(x));
    CHECK(fpclassify(x) == FP_NORMAL);
}

TEST_CASE("real: frexp, modf, nextafter have the standard library's values and exact derivatives") {
    for (double at : {0.3, -17.5, 1e300, -3e-320}) {
        tg::real_tape<> tape;
        real x = at, whole;
        tape.watch(x);
        int own = 0, expected = 0;
        double part = 0;
        const real fraction = frexp(x, &own), rest = modf(x, &whole), next = nextafter(x, 1000.0);
        CHECK(fraction.value() == std::frexp(at, &expected));
        CHECK(own == expected);
        CHECK(rest.value() == std::modf(at, &part));
        CHECK(whole.value() == part);
        CHECK(next.value() == std::nextafter(at, 1000.0));
        CHECK(tape.gradient(rest, x) == 1);
        CHECK(tape.gradient(next, x) == 1);
        if (at > -1e-300) continue;
        CHECK(tape.gradient(fraction, x) == std::ldexp(1.0, -expected));
    }
}

TEST_CASE("real: limits and streams") {
    using limits = std::numeric_limits<real>;
    static_assert(limits::is_specialized && limits::digits == 53);
    CHECK(limits::max() == std::numeric_limits<double>::max());
    CHECK(isinf(limits::infinity()));
    CHECK(std::max(real(1), limits::epsilon()) == 1);
    std::ostringstream out;
    out << real(0.5) << ' ' << real(2) * 3;
    CHECK(out.str() == "0.5 6");
    std::istringstream in("1.25 x");
    real x;
    in >> x;
    CHECK(x.value() == 1.25);
    in >> x;
    CHECK(in.fail());
    CHECK(x.value() == 1.25);
}

TEST_CASE("real: kinks as documented") {
    const double inf = std::numeric_limits<double>::infinity();
    CHECK(taped([](real x) { return real(abs(x)); }, std::array{0.0})[1] == 0);
    CHECK(taped([](real x) { return real(fmax(x, 0)); }, std::array{0.0})[1] == 0.5);
    CHECK(taped([](real x, real y) { return real(maximum(x, y)); }, std::array{2.0, 2.0})[2] == 0.5);
    CHECK(taped([](real x) { return real(relu(x)); }, std::array{0.0})[1] == 0);
    CHECK(taped([](real x, real y) { return real(hypot(x, y)); }, std::array{0.0, 0.0})[1] == 0);
    CHECK(taped([](real x) { return real(sqrt(x)); }, std::array{0.0})[1] == inf);
    CHECK(taped([](real x) { return real(pow(x, 0)); }, std::array{0.0})[1] == 0);
    CHECK(taped([](real x) { return real(pow(x, 2)); }, std::array{0.0})[1] == 0);
    CHECK(taped([](real x) { return real(pow(x, 1)); }, std::array{0.0})[1] == 1);
    CHECK(taped([](real x, real y) { return real(pow(x, y)); }, std::array{0.0, 2.0})[2] == 0);
    CHECK(taped([](real x) { return real(fmax(x, NAN)); }, std::array{2.0})[1] == 1);
    // An infinite slope of what nothing depends on adds nothing.
    CHECK(taped(
              [](real x) {
                  const real unused = sqrt(x);
                  return real(x * 3 + 0 * unused.value());
              },
              std::array{0.0})[1] == 3);
}

TEST_CASE("real: the library's functions of plain numbers") {
    const auto all =
        taped([](real x) { return real(sigmoid(x) + softplus(x) + square(x) + tg::pow<3>(x)); }, std::array{0.4});
    const double s = 1 / (1 + std::exp(-0.4));
    CHECK(all[1] == doctest::Approx(s * (1 - s) + s + 0.8 + 3 * 0.16));
    CHECK(taped([](real x) { return real(where(x > 0, x * x, -x)); }, std::array{3.0})[1] == 6);
    CHECK(taped([](real x) { return real(clip(x, 0, 2)); }, std::array{3.0})[1] == 0);
}

TEST_CASE("real: formulas kept by auto stay right") {
    tg::real_tape<> tape;
    real x = 3;
    tape.watch(x);
    const auto square = [&] { return x * x; }();
    real y = square;
    x = 5;
    y += square;
    CHECK(y.value() == 18);
}

TEST_CASE("real: of float") {
    tg::real_tape<float> tape;
    tg::real<float> x = 0.5f;
    tape.watch(x);
    const tg::real<float> y = sin(x) * 2 + x;
    CHECK(y.value() == std::sin(0.5f) * 2 + 0.5f);
    CHECK(tape.gradient(y, x) == std::cos(0.5f) * 2 + 1);
}

} // namespace number_test
