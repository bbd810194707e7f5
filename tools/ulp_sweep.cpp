// Prints a Markdown table of the largest error of every function of tapegraph::math, in ulps of the
// true result, for docs/accuracy.md. The reference is libm in double for float and in long double
// (64 bits) for double: its own error is below 0.001 ulp of the tested type.
//
//     g++ -std=c++20 -O2 -pthread -Iinclude tools/ulp_sweep.cpp -o ulp_sweep
//     ./ulp_sweep [points per range, default 2000000] [n]
//
// With n, functions of one float are evaluated at every n-th float of their range (1: at every float) instead of samples.

#include <tapegraph/core/math.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <thread>
#include <vector>

namespace {

namespace math = tapegraph::math;

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
double error_in_ulps(T value, typename wider<T>::type reference) {
    using W = typename wider<T>::type;
    const T rounded = static_cast<T>(reference);
    if (rounded != rounded) return value != value ? 0 : INFINITY;
    if (std::isinf(rounded)) return value == rounded ? 0 : (std::isinf(value) ? INFINITY : 1);
    if (!std::isfinite(value)) return std::fabs(rounded) == std::numeric_limits<T>::max() ? 1 : INFINITY;
    int exponent = 0;
    std::frexp(reference, &exponent);
    exponent = std::max(exponent, std::numeric_limits<T>::min_exponent) - std::numeric_limits<T>::digits;
    return static_cast<double>(std::fabs(std::ldexp(static_cast<W>(value) - reference, -exponent)));
}

struct worst {
    double error = 0, at = 0, at_second = 0;
    void take(double e, double x, double y = 0) {
        if (!(e <= error)) *this = {e, x, y};
    }
};

std::uint64_t random_state = 1;
double random01() { // splitmix64
    random_state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// Half of the points are uniform in the range, half uniform in the bits (all exponents alike),
/// from both signs if `low` is negative.
template <class T>
T sample(double low, double high, long i) {
    if (i % 2 == 0) return static_cast<T>(low + (high - low) * random01());
    using bits = typename math::detail::traits<T>::bits;
    const bool negative = low < 0 && (high <= 0 || i % 4 == 1);
    const double from = low < 0 && high > 0 ? 0 : (negative ? -high : low), to = negative ? -low : high;
    const auto a = std::bit_cast<bits>(static_cast<T>(from)), b = std::bit_cast<bits>(static_cast<T>(to));
    const T x = std::bit_cast<T>(static_cast<bits>(a + static_cast<bits>(static_cast<double>(b - a) * random01())));
    return negative ? -x : x;
}

long points = 2000000;
long every = 0;

template <class T, class F, class R>
worst sweep(F f, R reference, double low, double high) {
    using W = typename wider<T>::type;
    worst w;
    for (long i = 0; i < points; ++i) {
        const T x = sample<T>(low, high, i);
        w.take(error_in_ulps<T>(f(x), reference(static_cast<W>(x))), static_cast<double>(x));
    }
    return w;
}

/// Every n-th float within the range, with the bit patterns distributed among the processor's
/// threads.
template <class F, class R>
worst dense(F f, R reference, double low, double high) {
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<worst> found(threads);
    std::vector<std::thread> team;
    for (unsigned k = 0; k < threads; ++k)
        team.emplace_back([&, k] {
            for (std::uint64_t b = static_cast<std::uint64_t>(every) * k; b < (std::uint64_t{1} << 32); b += static_cast<std::uint64_t>(every) * threads) {
                const float x = std::bit_cast<float>(static_cast<std::uint32_t>(b));
                if (!(x >= low && x <= high)) continue;
                found[k].take(error_in_ulps<float>(f(x), reference(static_cast<double>(x))), static_cast<double>(x));
            }
        });
    for (std::thread& t : team) t.join();
    worst all;
    for (const worst& w : found) all.take(w.error, w.at);
    return all;
}

template <class T, class F, class R>
worst sweep2(F f, R reference, double low, double high, double low2, double high2) {
    using W = typename wider<T>::type;
    worst w;
    for (long i = 0; i < points; ++i) {
        const T x = sample<T>(low, high, i), y = sample<T>(low2, high2, i / 4);
        w.take(error_in_ulps<T>(f(x, y), reference(static_cast<W>(x), static_cast<W>(y))), static_cast<double>(x),
               static_cast<double>(y));
    }
    return w;
}

void row(const char* name, const char* range, worst f, const char* range_double, worst d) {
    std::printf("| `%s` | %s | %.2f | %s | %.2f |\n", name, range, f.error, range_double, d.error);
    std::fflush(stdout);
    std::fprintf(stderr, "%s: float at %.9g %.9g, double at %.17g %.17g\n", name, f.at, f.at_second, d.at, d.at_second);
}

template <class X>
X sigmoid_of(X x) {
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
template <class X>
X softplus_of(X x) {
    return std::fmax(x, 0 * x) + std::log1p(std::exp(-std::fabs(x)));
}

} // namespace

// The range is written once for both types, or once for each.
#define ROW(name, reference, low, high, low_double, high_double)                                                       \
    if (argc < 4 || std::string_view(argv[3]) == #name)                                                                \
    row(#name, "[" #low ", " #high "]",                                                                                \
        (every > 0 ? dense([](float x) { return math::name(x); }, [](double x) { return reference; }, low, high)       \
                   : sweep<float>([](float x) { return math::name(x); }, [](double x) { return reference; }, low,      \
                                  high)),                                                                              \
        "[" #low_double ", " #high_double "]",                                                                         \
        sweep<double>([](double x) { return math::name(x); }, [](long double x) { return reference; }, low_double,     \
                      high_double))
#define ROW2(name, reference, low, high, low2, high2)                                                                  \
    if (argc < 4 || std::string_view(argv[3]) == #name)                                                                \
    row(#name, "[" #low ", " #high "] x [" #low2 ", " #high2 "]",                                                      \
        sweep2<float>([](float x, float y) { return math::name(x, y); }, [](double x, double y) { return reference; }, \
                      low, high, low2, high2),                                                                         \
        "the same",                                                                                                    \
        sweep2<double>([](double x, double y) { return math::name(x, y); },                                            \
                       [](long double x, long double y) { return reference; }, low, high, low2, high2))

int main(int argc, char** argv) {
    if (argc > 1) points = std::atol(argv[1]);
    if (argc > 2) every = std::atol(argv[2]);
    std::printf("| function | float range | max ulp | double range | max ulp |\n| --- | --- | --- | --- | --- |\n");
    ROW(exp, std::exp(x), -104, 89, -746, 710);
    ROW(exp2, std::exp2(x), -150, 128, -1075, 1024);
    ROW(expm1, std::expm1(x), -20, 89, -40, 710);
    ROW(log, std::log(x), 0, 3.4e38, 0, 1.7e308);
    ROW(log, std::log(x), 0.5, 2, 0.5, 2);
    ROW(log2, std::log2(x), 0, 3.4e38, 0, 1.7e308);
    ROW(log2, std::log2(x), 0.5, 2, 0.5, 2);
    ROW(log10, std::log10(x), 0, 3.4e38, 0, 1.7e308);
    ROW(log10, std::log10(x), 0.5, 2, 0.5, 2);
    ROW(log1p, std::log1p(x), -1, 3.4e38, -1, 1.7e308);
    ROW(log1p, std::log1p(x), -1, 2, -1, 2);
    ROW(tanh, std::tanh(x), -20, 20, -20, 20);
    ROW(sigmoid, sigmoid_of(x), -104, 40, -746, 40);
    ROW(softplus, softplus_of(x), -104, 100, -746, 100);
    ROW(erf, std::erf(x), -5, 5, -7, 7);
    ROW(erfc, std::erfc(x), -5, 10.2, -7, 27.3);
    ROW(sinh, std::sinh(x), -90, 90, -711, 711);
    ROW(cosh, std::cosh(x), -90, 90, -711, 711);
    ROW(asinh, std::asinh(x), -3.4e38, 3.4e38, -1.7e308, 1.7e308);
    ROW(asinh, std::asinh(x), -10, 10, -10, 10);
    ROW(acosh, std::acosh(x), 1, 3.4e38, 1, 1.7e308);
    ROW(acosh, std::acosh(x), 1, 3, 1, 3);
    ROW(atanh, std::atanh(x), -1, 1, -1, 1);
    ROW(sin, std::sin(x), -10, 10, -10, 10);
    ROW(sin, std::sin(x), -524288, 524288, -1073741824, 1073741824);
    ROW(cos, std::cos(x), -10, 10, -10, 10);
    ROW(cos, std::cos(x), -524288, 524288, -1073741824, 1073741824);
    ROW(tan, std::tan(x), -10, 10, -10, 10);
    ROW(tan, std::tan(x), -524288, 524288, -1073741824, 1073741824);
    ROW(asin, std::asin(x), -1, 1, -1, 1);
    ROW(acos, std::acos(x), -1, 1, -1, 1);
    ROW(atan, std::atan(x), -3.4e38, 3.4e38, -1.7e308, 1.7e308);
    ROW(atan, std::atan(x), -10, 10, -10, 10);
    ROW2(atan2, std::atan2(x, y), -100, 100, -100, 100);
    ROW(sqrt, std::sqrt(x), 0, 3.4e38, 0, 1.7e308);
    ROW(rsqrt, 1 / std::sqrt(x), 0, 3.4e38, 0, 1.7e308);
    ROW(cbrt, std::cbrt(x), -3.4e38, 3.4e38, -1.7e308, 1.7e308);
    ROW2(hypot, std::hypot(x, y), -3e38, 3e38, -3e38, 3e38);
    ROW2(pow, std::pow(x, y), 0, 100, -20, 20);
    ROW2(pow, std::pow(x, y), 0.9, 1.1, -900, 900);
}
