#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace integer_elementwise_test {

/// Elementwise operations on integers and bool: wrapping, rounding of quotients, division by zero; derivatives past them.

namespace tg = tapegraph;
using tg::tensor;

namespace {

template <class T>
constexpr T lowest = std::numeric_limits<T>::lowest();
template <class T>
constexpr T highest = std::numeric_limits<T>::max();

template <class T>
bool equal_to(const tensor<T>& got, const std::vector<T>& want) {
    return got.to_vector() == want;
}

// NumPy's: toward minus infinity; 0 for a division by zero.
std::int64_t floored(std::int64_t x, std::int64_t y) {
    if (y == 0) return 0;
    const std::int64_t q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

} // namespace

TEST_CASE_TEMPLATE("integers: quotients and remainders of every pair of small numbers", T, std::int32_t, std::int64_t,
                   std::uint8_t) {
    std::vector<T> left, right, quotients, remainders, truncated;
    for (int x = std::is_signed_v<T> ? -7 : 0; x <= 7; ++x)
        for (int y = std::is_signed_v<T> ? -4 : 0; y <= 4; ++y) {
            left.push_back(static_cast<T>(x));
            right.push_back(static_cast<T>(y));
            quotients.push_back(static_cast<T>(floored(x, y)));
            remainders.push_back(static_cast<T>(y == 0 ? 0 : x - floored(x, y) * y));
            truncated.push_back(static_cast<T>(y == 0 ? 0 : x / y));
        }
    const tg::shape dims{static_cast<std::int64_t>(left.size())};
    const auto x = tg::from_range<T>(left, dims), y = tg::from_range<T>(right, dims);
    CHECK(equal_to<T>(floor_divide(x, y), quotients));
    CHECK(equal_to<T>(x % y, remainders));
    CHECK(equal_to<T>(x / y, truncated));
}

TEST_CASE_TEMPLATE("signed integers wrap around", T, std::int32_t, std::int64_t) {
    const tensor<T> top{highest<T>, lowest<T>, lowest<T>}, one{1, -1, 0};
    CHECK(equal_to<T>(top + one, {lowest<T>, highest<T>, lowest<T>}));
    CHECK(equal_to<T>(top - one, {highest<T> - 1, lowest<T> + 1, lowest<T>}));
    CHECK(equal_to<T>(top * one, {highest<T>, lowest<T>, 0}));
    CHECK(equal_to<T>(top / one, {highest<T>, lowest<T>, 0})); // lowest / -1 does not fit
    CHECK(equal_to<T>(floor_divide(top, one), {highest<T>, lowest<T>, 0}));
    CHECK(equal_to<T>(top % one, {0, 0, 0}));
    CHECK(equal_to<T>(-top, {-highest<T>, lowest<T>, lowest<T>}));
    CHECK(equal_to<T>(abs(top), {highest<T>, lowest<T>, lowest<T>}));
    CHECK(equal_to<T>(square(top), {1, 0, 0}));
    CHECK(equal_to<T>(tg::pow<3>(one * 3), {27, -27, 0}));
}

TEST_CASE("integers: selection, rounding, questions") {
    const tensor<std::int32_t> a{7, -7, 0}, b{2, 9, 0};
    CHECK(equal_to<std::int32_t>(clip(a, -1, 5), {5, -1, 0}));
    CHECK(equal_to<std::int32_t>(sign(a) + floor(a) - round(a), {1, -1, 0}));
    CHECK(equal_to<std::int32_t>(relu6(a) + relu(a), {13, 0, 0}));
    CHECK(equal_to<std::int32_t>(squared_difference(a, b), {25, 256, 0}));
    CHECK(equal_to<bool>(logical_or(is_nan(a), logical_not(is_finite(a))), {false, false, false}));
    CHECK(equal_to<bool>(logical_xor(a, b), {false, false, false})); // what is not zero is true
    const tensor<std::uint8_t> bytes{0, 200, 255}, more{1, 100, 7};
    CHECK(equal_to<std::uint8_t>(bytes + more, {1, 44, 6})); // modulo 256
    CHECK(equal_to<std::uint8_t>(bytes - more, {255, 100, 248}));
    CHECK(equal_to<std::uint8_t>(bytes * more, {0, 32, 249}));
    CHECK(equal_to<std::uint8_t>(maximum(bytes, more), {1, 200, 255}));
    CHECK(equal_to<std::uint8_t>(clip(bytes, 10, 250), {10, 200, 250}));
    CHECK(equal_to<std::uint8_t>(sign(bytes), {0, 1, 1}));
    const tensor<bool> p{true, true, false}, q{true, false, false};
    CHECK(equal_to<bool>(p * q, {true, false, false}));
    CHECK(equal_to<bool>(p + q, {true, true, false}));
    CHECK(equal_to<bool>(logical_xor(p, q), {false, true, false}));
    CHECK(equal_to<bool>(maximum(p, q), {true, true, false}));
    CHECK(equal_to<bool>(p == q, {true, false, true}));
}

TEST_CASE_TEMPLATE("casts between all element types", T, float, double, std::int32_t, std::int64_t, std::uint8_t, bool) {
    const tensor<T> x{T(0), T(1), T(3)};
    const T three = T(3);
    CHECK(equal_to<float>(tg::cast<float>(x), {0, 1, static_cast<float>(three)}));
    CHECK(equal_to<double>(tg::cast<double>(x), {0, 1, static_cast<double>(three)}));
    CHECK(equal_to<std::int32_t>(tg::cast<std::int32_t>(x), {0, 1, static_cast<std::int32_t>(three)}));
    CHECK(equal_to<std::int64_t>(tg::cast<std::int64_t>(x), {0, 1, static_cast<std::int64_t>(three)}));
    CHECK(equal_to<std::uint8_t>(tg::cast<std::uint8_t>(x), {0, 1, static_cast<std::uint8_t>(three)}));
    CHECK(equal_to<bool>(tg::cast<bool>(x), {false, true, true}));
}

TEST_CASE("derivatives pass by integers and questions, second ones too") {
    const tensor<std::int32_t> label{1, 0, 2};
    tensor<double> x{0.5, -1, 2};
    tg::gradient_tape outer;
    outer.watch(x);
    tensor<double> first;
    {
        tg::gradient_tape inner;
        inner.watch(x);
        const tensor<double> y =
            x * x * x * tg::cast<double>(logical_and(label > 0, is_finite(x))) * tg::cast<double>(label);
        first = inner.gradient(y, x);
    }
    CHECK(first.to_vector() == std::vector<double>{0.75, 0, 24});
    CHECK(outer.gradient(first, x).to_vector() == std::vector<double>{3, 0, 24});
}

TEST_CASE("both modes: questions, casts and integers") {
    constexpr auto answers = [](auto x, auto y) { // [n, 5], [5]
        return std::tuple{tg::eval(logical_xor(is_finite(x), less(x, y))),
                          tg::eval(logical_or(logical_not(x >= y), is_inf(y))),
                          tg::eval(tg::cast<bool>(relu(x))),
                          tg::eval(tg::cast<std::uint8_t>(abs(8 * x)) % tg::cast<std::uint8_t>(abs(3 * y) + 1)),
                          tg::eval(floor_divide(tg::cast<std::int64_t>(9 * x), tg::cast<std::int64_t>(3 * y))),
                          tg::eval(clip(tg::cast<std::int32_t>(9 * x), -3, 4) * tg::cast<std::int32_t>(4 * y)),
                          tg::eval(tg::cast<double>(maximum(tg::cast<std::int32_t>(x), tg::cast<std::int32_t>(y))))};
    };
    tg::testing::both_modes modes(answers, tg::spec<float, tg::dyn, 5>{}, tg::spec<float, 5>{});
    for (const std::int64_t n : {7, 0, 1, 131, 7001}) {
        const std::string text =
            modes.compare(tg::testing::drawn<float>({n, 5}, 1), tg::testing::drawn<float>({5}, 2));
        CHECK_MESSAGE(text.empty(), "batch " << n << ": " << text);
    }
}

} // namespace integer_elementwise_test
