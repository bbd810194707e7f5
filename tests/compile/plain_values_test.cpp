#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Calls of compiled functions with numbers and std::arrays.

namespace plain_values_test {

namespace tg = tapegraph;

template <class T, std::size_t N>
using array = std::array<T, N>;

constexpr auto rosenbrock = [](const auto& x) {
    const auto a = slice(x, {{0, 6}}), b = slice(x, {{1, 7}});
    return sum(100 * square(b - square(a)) + square(1 - a));
};
using seven = tg::spec<double, 7>;
constexpr array<double, 7> at{0.5, -1.25, 0.75, 2, -0.5, 1, 0.25};

/// Whether the elements have the bits of a tensor's.
template <std::size_t N>
bool same_bits(const array<double, N>& a, const tg::tensor<double>& b) {
    bool same = b.size() == static_cast<std::int64_t>(N);
    for (std::size_t i = 0; same && i < N; ++i)
        same = std::bit_cast<std::int64_t>(a[i]) == std::bit_cast<std::int64_t>(b.data()[i]);
    return same;
}

template <class Mode>
void check_gradient() {
    auto f = tg::function<Mode>(tg::value_and_gradient(rosenbrock), seven{});
    const auto result = f(at);
    static_assert(std::is_same_v<decltype(result.value), double>);
    static_assert(std::is_same_v<decltype(result.gradient), array<double, 7>>);
    const auto tensors = f(tg::tensor<double>(at));
    CHECK(same_bits(array<double, 1>{result.value}, tensors.value));
    CHECK(same_bits(result.gradient, tensors.gradient));
    // Central differences of a polynomial of degree 4: the error is h^2 / 6 times the third derivative, below 2400 |x| + 2400 h, and the
    // rounding of values near 2000 divided by 2 h.
    const double h = 1e-5;
    auto value = tg::function<Mode>(rosenbrock, seven{});
    for (std::size_t i = 0; i < at.size(); ++i) {
        auto above = at, below = at;
        above[i] += h;
        below[i] -= h;
        CHECK(result.gradient[i] == doctest::Approx((value(above) - value(below)) / (2 * h)).epsilon(1e-7));
    }
}
TEST_CASE("a value and a gradient as a number and an array, in both modes") {
    check_gradient<tg::graph>();
    check_gradient<tg::eager>();
}

template <class Mode>
void check_ranks() {
    auto f = tg::function<Mode>(
        [](const auto& x, const auto& s, const auto& i) {
            return std::tuple(x * s, std::tuple(sum(x, 0), x > 0), sum(x), i + 1, transpose(x), reshape(x, {1, 2, 3}));
        },
        tg::spec<float, 2, 3>{}, tg::spec<float>{}, tg::spec<std::int32_t, 1>{});
    const array<array<float, 3>, 2> x{{{1, -2, 3}, {-4, 5, -6}}};
    const auto [product, inner, total, more, turned, deep] = f(x, 0.5, array<std::int32_t, 1>{7});
    CHECK(product == array<array<float, 3>, 2>{{{0.5f, -1, 1.5f}, {-2, 2.5f, -3}}});
    CHECK(std::get<0>(inner) == array<float, 3>{-3, 3, -3});
    CHECK(std::get<1>(inner) == array<array<bool, 3>, 2>{{{true, false, true}, {false, true, false}}});
    CHECK(total == -3);
    CHECK(more == array<std::int32_t, 1>{8});
    CHECK(turned == array<array<float, 2>, 3>{{{1, -4}, {-2, 5}, {3, -6}}});
    CHECK(deep == array<array<array<float, 3>, 2>, 1>{{x}});
}
TEST_CASE("ranks, element types, tuples in tuples") {
    check_ranks<tg::graph>();
    check_ranks<tg::eager>();
}

TEST_CASE("numbers alone") {
    auto f = tg::function<tg::graph>(tg::value_and_gradient([](const auto& x, const auto& y) { return sin(x) * y; }),
                                     tg::spec<double>{}, tg::spec<double>{});
    const auto [value, slopes] = f(0.5, 3).parts(); // an int is a number, too
    static_assert(std::is_same_v<decltype(slopes), const std::tuple<double, double>>);
    CHECK(value == tg::sin(0.5) * 3);
    CHECK(std::get<0>(slopes) == 3 * tg::cos(0.5));
    CHECK(std::get<1>(slopes) == tg::sin(0.5));
    const double inf = std::numeric_limits<double>::infinity();
    CHECK(std::isnan(f(inf, 1.0).value));
    CHECK(std::isnan(f(std::numeric_limits<double>::quiet_NaN(), 1.0).value));
    CHECK(f(0.5, inf).value == inf);
}

TEST_CASE("no elements") {
    auto f = tg::function<tg::graph>([](const auto& x) { return std::tuple(x * 2, sum(x)); }, tg::spec<double, 0>{});
    const auto [none, total] = f(array<double, 0>{});
    static_assert(std::is_same_v<decltype(none), const array<double, 0>>);
    CHECK(total == 0);
    auto g = tg::function<tg::graph>([](const auto& x) { return sum(x, 1); }, tg::spec<double, 2, 0>{});
    CHECK(g(array<array<double, 0>, 2>{}) == array<double, 2>{0, 0});
}

TEST_CASE("calls with arrays and tensors in turns, of a function that moves, and results that stay") {
    auto first = tg::function<tg::graph>([](const auto& x) { return x * x; }, tg::spec<double, 3>{});
    const auto nine = first(array<double, 3>{3, 3, 3});
    const tg::tensor<double> four = first(tg::tensor<double>{2, 2, 2});
    auto second = std::move(first);
    const auto one = second(array<double, 3>{1, 1, 1});
    const tg::tensor<double> again = second(tg::tensor<double>{5, 5, 5});
    CHECK(second(array<double, 3>{4, 4, 4}) == array<double, 3>{16, 16, 16});
    CHECK(nine == array<double, 3>{9, 9, 9});
    CHECK(four.to_vector() == std::vector<double>{4, 4, 4});
    CHECK(one == array<double, 3>{1, 1, 1});
    CHECK(again.to_vector() == std::vector<double>{25, 25, 25});
}

TEST_CASE("draws are those of calls with tensors") {
    const auto noisy = [](const auto& x) { return x + tg::random::uniform_like(x); };
    auto by_arrays = tg::function<tg::graph>(noisy, tg::spec<double, 3>{});
    auto by_tensors = tg::function<tg::graph>(noisy, tg::spec<double, 3>{});
    auto eager = tg::function<tg::eager>(noisy, tg::spec<double, 3>{});
    by_arrays.set_seed(5), by_tensors.set_seed(5), eager.set_seed(5);
    const array<double, 3> x{1, 2, 3};
    for (int call = 0; call < 3; ++call) {
        const tg::tensor<double> expected = by_tensors(tg::tensor<double>(x));
        CHECK(same_bits(by_arrays(x), expected));
        CHECK(same_bits(eager(x), expected));
    }
}

TEST_CASE("no tape follows a call with arrays, and one that records goes on") {
    auto f = tg::function<tg::graph>([](const auto& x) { return sum(x * x); }, tg::spec<double, 2>{});
    tg::gradient_tape tape;
    tg::tensor<double> x{1, 2};
    tape.watch(x);
    const auto y = f(x);
    CHECK(f(array<double, 2>{3, 4}) == 25);
    CHECK(tape.gradient(y, x).to_vector() == std::vector<double>{2, 4});
}

} // namespace plain_values_test
