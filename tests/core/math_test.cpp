#include <doctest/doctest.h>

#include <tapegraph/core/math.hpp>
#include <tapegraph/cpu/isa.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

namespace math = tapegraph::math;
namespace cpu = tapegraph::cpu;

template <class T>
constexpr T inf = std::numeric_limits<T>::infinity();
template <class T>
constexpr T quiet_nan = std::numeric_limits<T>::quiet_NaN();

// Constant evaluation runs the same code.
static_assert(math::exp(0.0f) == 1 && math::exp(0.0) == 1);
static_assert(math::log(1.0f) == 0 && math::log(1.0) == 0);
static_assert(math::sqrt(2.0f) == 1.41421354f && math::sqrt(2.0) == 1.4142135623730951);
static_assert(math::sqrt(0x1p-149f) == 0x1.6a09e6p-75f && math::sqrt(0x1p-1074) == 0x1p-537);
static_assert(math::sqrt(9.0) == 3 && math::sqrt(0.0f) == 0);
static_assert(math::tanh(100.0f) == 1 && math::sigmoid(0.0) == 0.5);
static_assert(math::sin(0.0) == 0 && math::cos(0.0f) == 1);
static_assert(math::pow(2.0, 10.0) == 1024 && math::pow(-2.0f, 3.0f) == -8);
static_assert(math::round(2.5f) == 2 && math::round(3.5) == 4 && math::floor(-0.5) == -1 && math::ceil(0.25f) == 1);
static_assert(math::exp2(-3.0f) == 0.125f && math::log2(0x1p-1074) == -1074 && math::log10(1.0f) == 0);
static_assert(math::cbrt(-27.0) == -3 && math::hypot(0x3p600, 0x4p600) == 0x5p600 && math::erfc(0.0f) == 1);
static_assert(math::asinh(0.0) == 0 && math::acosh(1.0f) == 0 && math::atanh(0.0f) == 0);
static_assert(math::remainder(-5.5f, 2.0f) == 0.5f && math::floor_divide(-5.5, 2.0) == -3);
static_assert(math::erf(0.0) == 0 && math::atan2(0.0f, 1.0f) == 0);

template <class T>
struct wider;
template <>
struct wider<float> {
    using type = double;
};
template <>
struct wider<double> {
    using type = long double;
};

template <class T>
double ulps(T value, typename wider<T>::type reference) {
    const T rounded = static_cast<T>(reference);
    if (rounded != rounded) return value != value ? 0 : 1e30;
    if (std::isinf(rounded)) return value == rounded ? 0 : 1e30;
    int exponent = 0;
    std::frexp(reference, &exponent);
    if (exponent < std::numeric_limits<T>::min_exponent) exponent = std::numeric_limits<T>::min_exponent;
    const auto error = std::ldexp(value - reference, std::numeric_limits<T>::digits - exponent);
    return static_cast<double>(error < 0 ? -error : error);
}

// Uniform steps in the value and in the bits, so that small magnitudes count as much as large ones.
template <class T>
std::vector<T> sweep(double low, double high, int count = 20000) {
    using bits = math::detail::bits_t<T>;
    std::vector<T> x;
    for (int i = 0; i < count; ++i) x.push_back(static_cast<T>(low + (high - low) * i / count));
    const double bound = std::fmax(std::fabs(low), std::fabs(high));
    const bits top = std::bit_cast<bits>(static_cast<T>(bound)), step = top / static_cast<bits>(count);
    for (bits b = 1; b < top - step; b += step) {
        const T value = std::bit_cast<T>(b);
        if (value >= low && value <= high) x.push_back(value);
        if (-value >= low && -value <= high) x.push_back(-value);
    }
    return x;
}

template <class T, class F, class R>
double worst(F f, R reference, double low, double high) {
    double error = 0;
    for (const T x : sweep<T>(low, high)) error = std::fmax(error, ulps<T>(f(x), reference(typename wider<T>::type(x))));
    return error;
}

#define CHECK_ULPS(name, limit, low, high)                                                                             \
    CHECK_MESSAGE((worst<T>([](T x) { return math::name(x); }, [](auto x) { return std::name(x); }, low, high)) <=     \
                      limit,                                                                                           \
                  #name)

// All vectorised unary functions by number, so that one kernel body tests each of them.
template <int Function, class T>
TG_INLINE T apply(T x) {
    if constexpr (Function == 0) return math::exp(x);
    if constexpr (Function == 1) return math::expm1(x);
    if constexpr (Function == 2) return math::log(x);
    if constexpr (Function == 3) return math::log1p(x);
    if constexpr (Function == 4) return math::tanh(x);
    if constexpr (Function == 5) return math::sigmoid(x);
    if constexpr (Function == 6) return math::softplus(x);
    if constexpr (Function == 7) return math::erf(x);
    if constexpr (Function == 8) return math::sin(x);
    if constexpr (Function == 9) return math::cos(x);
    if constexpr (Function == 10) return math::tan(x);
    if constexpr (Function == 11) return math::asin(x);
    if constexpr (Function == 12) return math::acos(x);
    if constexpr (Function == 13) return math::atan(x);
    if constexpr (Function == 14) return math::atan2(x, T(1.5) - x);
    if constexpr (Function == 15) return math::sinh(x);
    if constexpr (Function == 16) return math::cosh(x);
    if constexpr (Function == 17) return math::rsqrt(x);
    if constexpr (Function == 18) return math::pow(x, T(3.7) - x);
    if constexpr (Function == 19) return math::floor(x) + math::ceil(x) * T(3) + math::round(x) * T(7) + math::trunc(x);
    if constexpr (Function == 20) return math::minimum(x, T(1)) - math::maximum(x, T(-1));
    if constexpr (Function == 21) return math::exp2(x);
    if constexpr (Function == 22) return math::log2(x) + math::log10(math::abs(x));
    if constexpr (Function == 23) return math::erfc(x);
    if constexpr (Function == 24) return math::asinh(x) + math::acosh(math::abs(x) + T(1));
    if constexpr (Function == 25) return math::atanh(x * T(0.0031));
    if constexpr (Function == 26) return math::cbrt(x) + math::hypot(x, T(1.5) - x);
    if constexpr (Function == 27) return math::remainder(x, T(0.7)) - math::floor_divide(x, T(1.3) - x);
}
constexpr int function_count = 28;

template <int Function>
struct apply_body {
    template <class Isa, class T>
    TG_INLINE static void run(const T* x, T* y, std::int64_t n) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) y[i] = apply<Function>(x[i]);
    }
};

template <class T>
bool same_bits(T a, T b) {
    return std::bit_cast<math::detail::bits_t<T>>(a) == std::bit_cast<math::detail::bits_t<T>>(b) || (a != a && b != b);
}

template <class T, int Function = 0>
void check_same_bits(const std::vector<T>& x) {
    if constexpr (Function < function_count) {
        const auto before = cpu::active_instruction_set();
        for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
            cpu::set_instruction_set(set);
            std::vector<T> y(x.size());
            cpu::dispatch<apply_body<Function>>(static_cast<const T*>(x.data()), y.data(),
                                                static_cast<std::int64_t>(x.size()));
            int different = 0;
            for (std::size_t i = 0; i < x.size(); ++i) different += !same_bits(y[i], apply<Function>(x[i]));
            CHECK_MESSAGE(different == 0, "function " << Function << ", set " << static_cast<int>(set));
        }
        cpu::set_instruction_set(before);
        check_same_bits<T, Function + 1>(x);
    }
}

} // namespace

// Limits: the measured maxima of docs/accuracy.md, rounded up; 2 ulp is promised for the first group.
TEST_CASE_TEMPLATE("math: errors stay within their bounds over the whole range", T, float, double) {
    constexpr bool single = sizeof(T) == 4;
    const double largest = single ? 88.7 : 709.7, angle = single ? 524288 : 1073741824;
    CHECK_ULPS(exp, 1.0, single ? -104 : -746, largest);
    CHECK_ULPS(log, 1.0, 0, 1e38);
    CHECK_ULPS(log, 1.0, 0.5, 2);
    CHECK_ULPS(tanh, 1.5, -25, 25);
    CHECK_ULPS(erf, 1.5, -7, 7);
    CHECK_ULPS(sin, 1.5, -angle, angle);
    CHECK_ULPS(cos, 1.5, -angle, angle);
    CHECK((worst<T>([](T x) { return math::sigmoid(x); },
                    [](auto x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
                    single ? -104 : -746, 40)) <= 2);
    CHECK_ULPS(expm1, 1.5, -40, largest);
    CHECK_ULPS(log1p, 1.0, -1, 1e38);
    CHECK_ULPS(log1p, 1.0, -1, 1);
    CHECK_ULPS(tan, 2.0, -angle, angle);
    CHECK_ULPS(asin, 1.5, -1, 1);
    CHECK_ULPS(acos, 1.5, -1, 1);
    CHECK_ULPS(atan, 2.0, -1e30, 1e30);
    CHECK_ULPS(exp2, 1.0, single ? -150 : -1075, single ? 127.9 : 1023.9);
    CHECK_ULPS(log2, 2.0, 0, 1e38);
    CHECK_ULPS(log2, 2.0, 0.5, 2);
    CHECK_ULPS(log10, 2.0, 0, 1e38);
    CHECK_ULPS(log10, 2.0, 0.5, 2);
    CHECK_ULPS(erfc, 2.5, -7, single ? 10.2 : 27.3);
    CHECK_ULPS(asinh, 2.0, -1e38, 1e38);
    CHECK_ULPS(asinh, 2.0, -2, 2);
    CHECK_ULPS(acosh, 2.1, 1, 1e38);
    CHECK_ULPS(acosh, 2.1, 1, 3);
    CHECK_ULPS(atanh, 2.0, -1, 1);
    CHECK_ULPS(cbrt, 1.0, -1e38, 1e38);
    CHECK_ULPS(sinh, 2.0, -largest, largest);
    CHECK_ULPS(cosh, 1.5, -largest, largest);
    CHECK_ULPS(sqrt, 0.5, 0, 1e38);
    CHECK((worst<T>([](T x) { return math::softplus(x); },
                    [](auto x) { return std::fmax(x, 0 * x) + std::log1p(std::exp(-std::fabs(x))); },
                    single ? -104 : -746, 100)) <= 2);
}

TEST_CASE_TEMPLATE("math: pow and atan2 on a grid", T, float, double) {
    using W = typename wider<T>::type;
    double power = 0, angle = 0;
    for (int i = 1; i < 400; ++i)
        for (int j = -100; j <= 100; ++j) {
            const T x = static_cast<T>(i) * T(0.037), y = static_cast<T>(j) * T(0.171);
            power = std::fmax(power, ulps<T>(math::pow(x, y), std::pow(W(x), W(y))));
            for (const T s : {T(1), T(-1)}) angle = std::fmax(angle, ulps<T>(math::atan2(y, s * x), std::atan2(W(y), W(s * x))));
        }
    CHECK(power <= 1);
    CHECK(angle <= 2);
}

TEST_CASE_TEMPLATE("math: the exponential of negative numbers has the bits of exp", T, float, double) {
    constexpr bool single = sizeof(T) == sizeof(float);
    const double lowest = single ? -110 : -760; // beyond the smallest denormal number
    for (int i = 0; i <= 200'003; ++i) {
        const T x = static_cast<T>(lowest * i / 200'003);
        CHECK(std::bit_cast<math::detail::bits_t<T>>(math::detail::falling_exp(x)) ==
              std::bit_cast<math::detail::bits_t<T>>(math::exp(x)));
    }
    constexpr T infinity = std::numeric_limits<T>::infinity();
    for (const T x : {T(-0.0), T(1e-9), T(0.5), -std::numeric_limits<T>::max(), -infinity})
        CHECK(math::detail::falling_exp(x) == math::exp(x));
    CHECK(std::isnan(math::detail::falling_exp(std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("math: the exponential of positive numbers has the bits of exp", T, float, double) {
    constexpr bool single = sizeof(T) == sizeof(float);
    const double most = single ? 88.3 : 709.3; // a little less than where it becomes infinite
    for (int i = 0; i <= 200'003; ++i) {
        const T x = static_cast<T>(most * i / 200'003);
        CHECK(std::bit_cast<math::detail::bits_t<T>>(math::detail::rising_exp(x)) ==
              std::bit_cast<math::detail::bits_t<T>>(math::exp(x)));
    }
    CHECK(math::detail::rising_exp(math::detail::rising_exp_most<T>) == std::numeric_limits<T>::infinity());
    CHECK(std::isnan(math::detail::rising_exp(std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE("math: the normal distribution's tail, scaled") {
    for (int i = 0; i <= 20'011; ++i) {
        const double x = 38.0 * i / 20'011;
        const long double wide = x, expected = std::erfc(wide / std::sqrt(2.0L)) / 2 * std::exp(wide * wide / 2);
        // Roundings of a + c, its inverse, q, whose error counts 2.3 times, the polynomial and the product.
        CHECK(std::abs(static_cast<long double>(math::detail::scaled_normal_tail(x)) / expected - 1) <
              5 * static_cast<long double>(std::numeric_limits<double>::epsilon()));
    }
    CHECK(math::detail::scaled_normal_tail(std::numeric_limits<double>::max()) < 0.06); // e^(-a^2 / 2) is 0 there
}

TEST_CASE_TEMPLATE("math: special values", T, float, double) {
    const T values[] = {T(0), T(-0.0), T(1), T(-1), T(0.5), T(-0.5), T(2), T(-2), T(3), T(-3), T(2.5), T(1e6), T(-1e30),
                        inf<T>, -inf<T>, quiet_nan<T>, std::numeric_limits<T>::denorm_min(), -std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::max(), -std::numeric_limits<T>::max()};
    // Signs of zeros and infinities must be those of libm, finite values near to its.
    const auto agrees = [](T a, T b) {
        if (b != b) return a != a;
        if (b == 0 || std::isinf(b)) return same_bits(a, b);
        return std::fabs(a - b) <= std::fabs(b) * 4 * std::numeric_limits<T>::epsilon() + std::numeric_limits<T>::denorm_min();
    };
    for (const T x : values) {
        CAPTURE(x);
        CHECK(agrees(math::exp(x), std::exp(x)));
        CHECK(agrees(math::expm1(x), std::expm1(x)));
        CHECK(agrees(math::log(x), std::log(x)));
        CHECK(agrees(math::log1p(x), std::log1p(x)));
        CHECK(agrees(math::tanh(x), std::tanh(x)));
        CHECK(agrees(math::sinh(x), std::sinh(x)));
        CHECK(agrees(math::cosh(x), std::cosh(x)));
        CHECK(agrees(math::erf(x), std::erf(x)));
        CHECK(agrees(math::asin(x), std::asin(x)));
        CHECK(agrees(math::acos(x), std::acos(x)));
        CHECK(agrees(math::atan(x), std::atan(x)));
        CHECK(agrees(math::sqrt(x), std::sqrt(x)));
        CHECK(agrees(math::exp2(x), std::exp2(x)));
        CHECK(agrees(math::log2(x), std::log2(x)));
        CHECK(agrees(math::log10(x), std::log10(x)));
        CHECK(agrees(math::erfc(x), std::erfc(x)));
        CHECK(agrees(math::asinh(x), std::asinh(x)));
        CHECK(agrees(math::acosh(x), std::acosh(x)));
        CHECK(agrees(math::atanh(x), std::atanh(x)));
        CHECK(agrees(math::cbrt(x), std::cbrt(x)));
        CHECK(same_bits(math::floor(x), std::floor(x)));
        CHECK(same_bits(math::ceil(x), std::ceil(x)));
        CHECK(same_bits(math::trunc(x), std::trunc(x)));
        CHECK(same_bits(math::round(x), std::nearbyint(x)));
        CHECK(math::is_finite(x) == std::isfinite(x));
        CHECK(math::is_nan(x) == std::isnan(x));
        if (std::fabs(x) < 1e5 || !std::isfinite(x)) {
            CHECK(agrees(math::sin(x), std::sin(x)));
            CHECK(agrees(math::cos(x), std::cos(x)));
            CHECK(agrees(math::tan(x), std::tan(x)));
        }
        // Beyond the range of the reduction: no accuracy, but bounded.
        if (std::isfinite(x)) {
            CHECK(math::abs(math::sin(x)) <= 1);
            CHECK(math::abs(math::cos(x)) <= 1);
        }
        for (const T y : values) {
            CAPTURE(y);
            CHECK(agrees(math::pow(x, y), std::pow(x, y)));
            CHECK(agrees(math::atan2(x, y), std::atan2(x, y)));
            CHECK(same_bits(math::copysign(x, y), std::copysign(x, y)));
            CHECK(agrees(math::hypot(x, y), std::hypot(x, y)));
            T rest = std::fmod(x, y);
            if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
            CHECK(same_bits(math::remainder(x, y), rest == 0 ? std::copysign(T(0), y) : rest));
            const bool any_nan = x != x || y != y;
            CHECK((any_nan ? math::minimum(x, y) != math::minimum(x, y) : math::minimum(x, y) == std::fmin(x, y)));
            CHECK((any_nan ? math::maximum(x, y) != math::maximum(x, y) : math::maximum(x, y) == std::fmax(x, y)));
        }
    }
    CHECK(math::sigmoid(-inf<T>) == 0);
    CHECK(math::sigmoid(inf<T>) == 1);
    CHECK(math::sigmoid(quiet_nan<T>) != math::sigmoid(quiet_nan<T>));
    CHECK(math::softplus(inf<T>) == inf<T>);
    CHECK(math::softplus(-inf<T>) == 0);
    CHECK(math::softplus(quiet_nan<T>) != math::softplus(quiet_nan<T>));
}

TEST_CASE_TEMPLATE("math: every instruction set gives the bits of scalar code, tails included", T, float, double) {
    std::vector<T> x = sweep<T>(-300, 300, 500);
    for (const T v : {T(0), T(-0.0), inf<T>, -inf<T>, quiet_nan<T>, T(1e30), std::numeric_limits<T>::denorm_min()}) x.push_back(v);
    while (x.size() % 16 != 13) x.push_back(T(0.3)); // a tail for every vector width
    check_same_bits(x);
    check_same_bits(std::vector<T>{T(0.7)});
    check_same_bits(std::vector<T>{});
}

TEST_CASE("math: constant evaluation gives the bits of run time") {
    constexpr double c[] = {math::exp(1.3),   math::log(1.3),        math::tanh(1.3),      math::sin(1.3),
                            math::erf(1.3),   math::pow(1.3, 7.7),   math::atan2(1.3, -2.0), math::acos(0.3),
                            math::sqrt(1.3),  math::softplus(1.3),   math::log1p(0.3),     math::expm1(-0.3)};
    volatile double a = 1.3, b = 0.3;
    const double r[] = {math::exp(+a),  math::log(+a),      math::tanh(+a),          math::sin(+a),
                        math::erf(+a),  math::pow(+a, 7.7), math::atan2(+a, -2.0),   math::acos(+b),
                        math::sqrt(+a), math::softplus(+a), math::log1p(+b),         math::expm1(-b)};
    for (int i = 0; i < 12; ++i) CHECK(c[i] == r[i]);
    constexpr float f[] = {math::exp(1.3f), math::log(1.3f), math::sin(100.3f), math::pow(1.3f, 7.7f), math::asin(0.9f)};
    volatile float x = 1.3f, y = 100.3f, z = 0.9f;
    CHECK(f[0] == math::exp(+x));
    CHECK(f[1] == math::log(+x));
    CHECK(f[2] == math::sin(+y));
    CHECK(f[3] == math::pow(+x, 7.7f));
    CHECK(f[4] == math::asin(+z));
}
