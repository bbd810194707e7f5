#include <support/storage.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace storage_elementwise_test {

/// Elementwise operations on 16-bit elements: each is computed in float and rounded once.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

// One entry an operation, and its meaning. x [n, 5], y [5] of any sign, p [n, 1] positive.
struct entry {
    const char* name;
    real (*expected)(real x, real y, real p);
};

// For both types.
constexpr auto first = [](auto x, auto y, auto p) {
    return std::tuple{tg::eval(x + y),
                      tg::eval(x / p),
                      tg::eval(sqrt(p)),
                      tg::eval(exp(x)),
                      tg::eval(tanh(x)),
                      tg::eval(relu(x)),
                      tg::eval(where(x > y, x, p)),
                      tg::eval(x * 0.5),
                      tg::eval(3 - x),
                      tg::eval(log(p))};
};
const std::vector<entry> first_entries{
    {"add", [](real x, real y, real) { return x + y; }},
    {"divide", [](real x, real, real p) { return x / p; }},
    {"sqrt", [](real, real, real p) { return std::sqrt(p); }},
    {"exp", [](real x, real, real) { return std::exp(x); }},
    {"tanh", [](real x, real, real) { return std::tanh(x); }},
    {"relu", [](real x, real, real) { return std::max(x, real(0)); }},
    {"where", [](real x, real y, real p) { return x > y ? x : p; }},
    {"x * 0.5", [](real x, real, real) { return x / 2; }},
    {"3 - x", [](real x, real, real) { return 3 - x; }},
    {"log", [](real, real, real p) { return std::log(p); }}};

// For one: the types differ in their conversions only. The sum with 0 keeps x from being handed through.
constexpr auto rest = [](auto x, auto y, auto p) {
    return std::tuple{tg::eval(x - y),
                      tg::eval(x * y),
                      tg::eval(-(x + 0)),
                      tg::eval(square(x)),
                      tg::eval(rsqrt(p)),
                      tg::eval(pow(p, y)),
                      tg::eval(expm1(x)),
                      tg::eval(log1p(p)),
                      tg::eval(sin(x)),
                      tg::eval(cos(x)),
                      tg::eval(sigmoid(x)),
                      tg::eval(softplus(x)),
                      tg::eval(erf(x)),
                      tg::eval(abs(x)),
                      tg::eval(sign(x)),
                      tg::eval(maximum(x, y)),
                      tg::eval(minimum(x, y)),
                      tg::eval(where(logical_and(x >= 0, logical_not(y < 0)), 1, x))};
};
const std::vector<entry> rest_entries{
    {"subtract", [](real x, real y, real) { return x - y; }},
    {"multiply", [](real x, real y, real) { return x * y; }},
    {"negate", [](real x, real, real) { return -x; }},
    {"square", [](real x, real, real) { return x * x; }},
    {"rsqrt", [](real, real, real p) { return 1 / std::sqrt(p); }},
    {"pow", [](real, real y, real p) { return std::pow(p, y); }},
    {"expm1", [](real x, real, real) { return std::expm1(x); }},
    {"log1p", [](real, real, real p) { return std::log1p(p); }},
    {"sin", [](real x, real, real) { return std::sin(x); }},
    {"cos", [](real x, real, real) { return std::cos(x); }},
    {"sigmoid", [](real x, real, real) { return 1 / (1 + std::exp(-x)); }},
    {"softplus", [](real x, real, real) { return std::log1p(std::exp(x)); }},
    {"erf", [](real x, real, real) { return std::erf(x); }},
    {"abs", [](real x, real, real) { return std::abs(x); }},
    {"sign", [](real x, real, real) { return real((x > 0) - (x < 0)); }},
    {"maximum", [](real x, real y, real) { return std::max(x, y); }},
    {"minimum", [](real x, real y, real) { return std::min(x, y); }},
    {"where of logic", [](real x, real y, real) { return x >= 0 && !(y < 0) ? 1 : x; }}};

template <class T, class F>
void check_list(const F&, const std::vector<entry>& entries) {
    auto graph = tg::function<tg::graph>(F{}, tg::spec<T, tg::dyn, 5>{}, tg::spec<T, 5>{}, tg::spec<T, tg::dyn, 1>{});
    std::vector<agreement> total(entries.size());
    for (const std::int64_t n : {7, 1, 0, 131, 2, 7001}) { // lanes, tails, none, more than a tile, more than threads share
        for (const double range : {1.5, 12.0}) {           // exp reaches infinity in half
            const auto x = drawn<T>({n, 5}, 1, -range, range), y = drawn<T>({5}, 2), p = drawn<T>({n, 1}, 3, 0.01, range);
            const auto got = flattened(graph(x, y, p));
            REQUIRE(got.size() == entries.size());
            for (std::size_t k = 0; k < got.size(); ++k) {
                const tg::tensor<T> result(got[k]);
                const bool narrow = result.shape() == tg::shape{n, 1};
                REQUIRE((narrow || result.shape() == tg::shape{n, 5}));
                const array want = map({plain(x), plain(y), plain(p)},
                                       [&](const real* v) { return entries[k].expected(v[0], v[1], v[2]); });
                array fitting(extents_of(result.shape()));
                for (std::int64_t i = 0; i < fitting.size(); ++i) fitting[i] = want[narrow ? i * 5 : i];
                const agreement a = compared(result, fitting);
                CHECK_MESSAGE(a.wrong == 0, entries[k].name << " " << tg::name_of(tg::dtype_of<T>) << " of batch " << n << ": " << a.first);
                total[k].elements += a.elements;
                total[k].beside += a.beside;
            }
        }
    }
    // The probability that 4 units of float decide is 4 * 2 / 2^13 in half; a rounding that is wrong altogether would be
    // beside the nearest half of the time.
    for (std::size_t k = 0; k < total.size(); ++k)
        CHECK_MESSAGE(total[k].beside * 500 <= total[k].elements, entries[k].name << ": " << total[k].beside << " of "
                                                                                  << total[k].elements << " are not nearest");
}

} // namespace

TEST_CASE_TEMPLATE("16-bit elements: elementwise operations", T, tg::bfloat16, tg::half) {
    check_list<T>(first, first_entries);
    if constexpr (std::is_same_v<T, tg::bfloat16>) check_list<T>(rest, rest_entries);
}

TEST_CASE_TEMPLATE("16-bit elements: each operation rounds, fused or not", T, tg::bfloat16, tg::half) {
    for (const std::int64_t n : {1, 7, 700, 40000}) {
        const auto x = drawn<T>({n}, 1), y = drawn<T>({n}, 2);
        const tg::tensor<T> fused = tanh(x * y + 0.3) - x * x / (1 + square(y));
        const tg::tensor<T> product = x * y, shifted = product + 0.3, curve = tanh(shifted), squared = x * x, other = square(y),
                            below = 1 + other, quotient = squared / below, one_by_one = curve - quotient;
        CHECK(difference({fused}, {one_by_one}).empty());
        const tg::tensor<float> wide = tanh(tg::cast<float>(x) * tg::cast<float>(y)); // in float throughout
        const tg::tensor<T> once = tg::cast<T>(tanh(tg::cast<float>(x) * tg::cast<float>(y)));
        const tg::tensor<T> later = tg::cast<T>(wide);
        CHECK(difference({once}, {later}).empty());
    }
    // A number is rounded like everything else: 0.3 is a 16-bit number here.
    const tg::tensor<T> one{1};
    CHECK(static_cast<float>(tg::tensor<T>(one * 0.3)(0)) == static_cast<float>(T(0.3)));
}

TEST_CASE_TEMPLATE("16-bit elements: awkward values", T, tg::bfloat16, tg::half) {
    using limits = std::numeric_limits<T>;
    const T values[]{T(0), T(-0.0f), limits::infinity(), T(-INFINITY), limits::quiet_NaN(), limits::max(), limits::lowest(),
                     limits::min(), limits::denorm_min(), T::from_bits(0x83)};
    constexpr std::int64_t many = std::size(values);
    for (const std::int64_t repeat : {1, 70}) {
        auto x = tg::tensor<T>::uninitialized({many * repeat}), y = x;
        for (std::int64_t i = 0; i < x.size(); ++i) {
            x.mutable_data()[i] = values[i % many];
            y.mutable_data()[i] = values[i / many % many];
        }
        const auto check = [&](const char* name, const tg::tensor<T>& got, float (*f)(float, float)) {
            for (std::int64_t i = 0; i < x.size(); ++i) {
                const T want = T(f(static_cast<float>(x.data()[i]), static_cast<float>(y.data()[i])));
                const bool same = is_nan(want) ? is_nan(got.data()[i]) : want.bits == got.data()[i].bits;
                CHECK_MESSAGE(same, name << " of " << x.data()[i].bits << " and " << y.data()[i].bits << " is "
                                         << got.data()[i].bits << ", expected " << want.bits);
            }
        };
        check("add", x + y, [](float a, float b) { return a + b; });
        check("multiply", x * y, [](float a, float b) { return a * b; });
        check("half of it", x * 0.5, [](float a, float) { return a * 0.5f; });
        check("relu", relu(x), [](float a, float) { return a < 0 ? 0 : a == 0 ? 0.0f : a; });
    }
}

TEST_CASE("16-bit elements: conversions between all types") {
    const tg::tensor<double> wide{1 + 0x1p-8 + 0x1p-40, -1e300, 70000, 2.9, 0, -0.7};
    const tg::tensor<tg::bfloat16> b = tg::cast<tg::bfloat16>(wide);
    const tg::tensor<tg::half> h = tg::cast<tg::half>(wide);
    CHECK(b(0).bits == 0x3F81); // once from double: by way of float it would be 0x3F80
    CHECK(b(1).bits == 0xFF80);
    CHECK(h(2).bits == 0x7C00);
    const tg::tensor<tg::half> through = tg::cast<tg::half>(b);
    CHECK(static_cast<float>(through(0)) == 1 + 0x1p-7f);
    CHECK(tg::tensor<double>(tg::cast<double>(h))(3) == static_cast<double>(tg::half(2.9)));
    CHECK(tg::tensor<std::int32_t>(tg::cast<std::int32_t>(b)).to_vector()[3] == 2);
    CHECK(tg::tensor<bool>(tg::cast<bool>(b))(4) == false);
    CHECK(tg::tensor<bool>(tg::cast<bool>(h))(5) == true);
    const tg::tensor<std::int64_t> whole{2049, -3};
    CHECK(static_cast<float>(tg::tensor<tg::half>(tg::cast<tg::half>(whole))(0)) == 2048);
    const tg::tensor<bool> answers{true, false};
    CHECK(static_cast<float>(tg::tensor<tg::bfloat16>(tg::cast<tg::bfloat16>(answers))(0)) == 1);
    // The fewest digits that tell each number from its neighbours.
    CHECK(tg::to_string(b) == "[ 1.01e+00      -inf  7.01e+04  2.91e+00  0.00e+00 -6.99e-01]");
    CHECK(tg::to_string(tg::tensor<tg::half>{{0.1f, 2}, {65504, 1e-7f}}) ==
          "[[1.00e-01 2.00e+00]\n [6.55e+04 1.19e-07]]");
    CHECK(tg::to_string(tg::tensor<tg::half>(tg::half(1e-7f))) == "1e-07");
    CHECK(tg::to_string(tg::tensor<tg::bfloat16>(tg::bfloat16(0.7f))) == "0.7");
}

} // namespace storage_elementwise_test
