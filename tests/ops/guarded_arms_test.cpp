#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace guarded_arms_test {

/// The arm of `where` that is not taken reaches no derivative of any order, whatever its slopes are there: reverse mode in itself, forward
/// mode over it, sums, several operands, 16 bits, graph mode. corner_test.cpp and seams_test.cpp have the operations that select inside.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using numbers = std::vector<double>;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// A function of F's type on tensors of T, or the sum of its values: what follows is compiled once for all functions.
template <class T>
using on_tensor = tg::tensor<T> (*)(const tg::tensor<T>& x);
template <class T, class F>
constexpr on_tensor<T> values_of = [](const tg::tensor<T>& x) { return tg::tensor<T>(F{}(x)); };
template <class T, class F>
constexpr on_tensor<T> sum_of = [](const tg::tensor<T>& x) { return tg::tensor<T>(sum(F{}(x))); };

/// Derivatives of orders 1 to 4, by nested gradients.
template <class T>
std::vector<numbers> derivatives(on_tensor<T> f, const numbers& at) {
    std::vector<T> typed;
    for (const double v : at) typed.push_back(static_cast<T>(static_cast<float>(v)));
    auto x = tg::from_range<T>(typed, {static_cast<std::int64_t>(at.size())});
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x);
    tg::tensor<T> y = f(x);
    std::vector<numbers> result;
    for (int k = 0; k < 4; ++k) {
        y = tape.gradient(y, x);
        const tg::tensor<double> plain = tg::cast<double>(y);
        result.push_back(plain.to_vector());
    }
    return result;
}

/// What derivatives of orders 1 to 4 are to be at each point.
struct expected {
    double at;
    numbers orders;
};

template <class T>
void check_as(const char* name, on_tensor<T> f, const std::vector<expected>& all, double tolerance) {
    numbers at;
    for (const expected& e : all) at.push_back(e.at);
    const auto got = derivatives<T>(f, at);
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t k = 0; k < 4; ++k) {
            INFO(name << " at " << at[i] << ", derivative " << k + 1);
            CHECK(std::abs(got[k][i] - all[i].orders[k]) <= tolerance * std::abs(all[i].orders[k]));
        }
}
template <class F>
void check(const char* name, const F&, const std::vector<expected>& all) {
    check_as<double>(name, values_of<double, F>, all, 1e-13); // a few roundings for each order
}
/// In all types, and under a sum: a reduction of the formula.
template <class F>
void check_all(const char* name, const F& f, const std::vector<expected>& all) {
    check(name, f, all);
    check_as<double>(name, sum_of<double, F>, all, 1e-13);
    check_as<float>(name, values_of<float, F>, all, 1e-5);
    check_as<tg::half>(name, values_of<tg::half, F>, all, 0.02);
    check_as<tg::bfloat16>(name, values_of<tg::bfloat16, F>, all, 0.1); // it has 8 bits
}

const numbers none{0, 0, 0, 0}, identity{1, 0, 0, 0};

constexpr auto logarithm = [](const auto& x) { return where(x > 0, log(x), 0); };
constexpr auto entropy = [](const auto& x) { return where(x <= 0, 0, x * log(x)); };
constexpr auto sinc = [](const auto& x) { return where(x == 0, 1, sin(x) / x); };
constexpr auto root = [](const auto& x) { return where(x > 0, sqrt(x), 0); };
constexpr auto power = [](const auto& x) { return where(x > 0, pow(x, 0.5), x); };
constexpr auto quotient = [](const auto& x) { return where(x != 0, 1 / x, 0); };
constexpr auto inverse = [](const auto& x) { return where(abs(x) < 1, atanh(x), x); };
constexpr auto far = [](const auto& x) { return where(x > 1, acosh(x), 0); };
constexpr auto steep = [](const auto& x) { return where(x < 1, x, exp(1000 * x)); };
constexpr auto angle = [](const auto& x) { return where(x == 0, 0, atan2(x, 2 * x) + hypot(x, x) / x); };
constexpr auto to_itself = [](const auto& x) { return where(x > 0, pow(x, x), 1); };
constexpr auto nested = [](const auto& x) {
    return where(x <= 0, square(x), where(x > 0.5, log(x - 0.5), sqrt(x)) * exp(1 / x));
};

// In one program, which the compiler differentiates three times; their sum is NaN where one is.
constexpr auto together = [](const auto& x) {
    const auto first = tg::eval(logarithm(x) + power(x) + inverse(x));
    return tg::eval(first + nested(x) + pow(x, 1.0));
};
constexpr auto orders = [](const auto& x) {
    const auto along = tg::eval(x + 1);
    const auto third = tg::value_and_gradient(tg::gradient(tg::gradient(together)))(x);
    return std::tuple{third, tg::jvp(tg::gradient(together))(x, along)}; // and forward over reverse
};

} // namespace

TEST_CASE("where: derivatives to order 4 are those of the arm taken") {
    check_all("where(x > 0, log(x), 0)", logarithm, {{0, none}, {-1, none}, {2, {0.5, -0.25, 0.25, -0.375}}});
    check("where(x <= 0, 0, x log(x))", entropy, {{0, none}, {-1, none}, {1, {1, 1, -1, 2}}});
    check("where(x == 0, 1, sin(x) / x)", sinc, {{0, none}});
    check("where(x > 0, sqrt(x), 0)", root, {{0, none}, {-1, none}, {1, {0.5, -0.25, 0.375, -0.9375}}});
    check("where(x > 0, pow(x, 0.5), x)", power, {{0, identity}, {-1, identity}, {1, {0.5, -0.25, 0.375, -0.9375}}});
    check("where(x != 0, 1 / x, 0)", quotient, {{0, none}, {1, {-1, 2, -6, 24}}});
    check("where(abs(x) < 1, atanh(x), x)", inverse, {{1, identity}, {-1, identity}, {0, {1, 0, 2, 0}}, {3, identity}});
    check("where(x > 1, acosh(x), 0)", far, {{1, none}, {0, none}, {-2, none}});
    check("where(x < 1, x, exp(1000 x))", steep, {{0, identity}, {0.75, identity}, {-inf, identity}});
    check("where(x == 0, 0, atan2(x, 2 x) + hypot(x, x) / x)", angle, {{0, none}});
    check("where(x > 0, pow(x, x), 1)", to_itself, {{0, none}, {-1, none}});
    check_all("arms in arms", nested, {{0, {0, 2, 0, 0}}, {-1, {-2, 2, 0, 0}}});
    check("where(is_finite(x), square(x + 1), 0)", [](const auto& x) { return where(is_finite(x), square(x + 1), 0); },
          {{inf, none}, {-inf, none}, {1, {4, 2, 0, 0}}});
    check("a sealed condition",
          [](const auto& x) {
              const auto inside = tg::eval(x > 0);
              return where(inside, log(x), -x);
          },
          {{0, {-1, 0, 0, 0}}, {1, {1, -1, 2, -6}}});
}

TEST_CASE("pow with a whole exponent is a polynomial at 0, to order 4") {
    check("pow(x, 0)", [](const auto& x) { return pow(x, 0.0); }, {{0, none}, {2, none}});
    check("pow(x, 1)", [](const auto& x) { return pow(x, 1.0); }, {{0, identity}, {2, identity}});
    check("pow(x, 2)", [](const auto& x) { return pow(x, 2.0); }, {{0, {0, 2, 0, 0}}, {2, {4, 2, 0, 0}}});
    check_all("pow(x, 3)", [](const auto& x) { return pow(x, 3.0); }, {{0, {0, 0, 6, 0}}, {1, {3, 6, 6, 0}}});
    check("pow(x, 4)", [](const auto& x) { return pow(x, 4.0); }, {{0, {0, 0, 0, 24}}, {1, {4, 12, 24, 24}}});
}

TEST_CASE("where: several operands, each with the adjoint 0 of an arm that is not taken") {
    tg::tensor<double> x{0, 1, 2}, y{0, 0, 4};
    const tg::tensor<double> keep{{0, 1, 1}, {0, 0, 0}}; // broadcasts
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x, y);
    const tg::tensor<double> z = where(keep * y > 0, x / y + log(y), square(x));
    const auto [zx, zy] = tape.gradient(z, x, y);
    CHECK(zx.to_vector() == numbers{0, 4, 0.25 + 4}); // 1 / y where taken, 2 x in the other rows
    CHECK(zy.to_vector() == numbers{0, 0, -2.0 / 16 + 0.25});
    const auto [zxx, zxy] = tape.gradient(zx, x, y);
    CHECK(zxx.to_vector() == numbers{4, 4, 2});
    CHECK(zxy.to_vector() == numbers{0, 0, -1.0 / 16});
    const auto [zxyx, zxyy] = tape.gradient(zxy, x, y);
    CHECK(zxyx.to_vector() == numbers{0, 0, 0});
    CHECK(zxyy.to_vector() == numbers{0, 0, 2.0 / 64});
    CHECK_FALSE(std::signbit(zxyx.data()[0])); // +0, whatever the signs on the way
}

TEST_CASE("where: plain numbers and tensors agree") {
    // Not in constant evaluation, which refuses the infinities of the other arm.
    CHECK(tg::gradient(tg::gradient(tg::gradient(logarithm)))(0.0) == 0);
    CHECK(tg::gradient(tg::gradient(nested))(0.0) == 2);
    CHECK(tg::gradient(tg::gradient(tg::gradient([](auto x) { return pow(x, 1.0); })))(0.0) == 0);
}

TEST_CASE("where: a value sealed outside is a tensor like any other, whose own slope counts") {
    // What docs/operations/derivatives.md says: the arm's formula is what is guarded, not what came before it.
    const auto sealed = [](const auto& x) {
        const auto y = tg::eval(log(x));
        return where(x > 0, y, 0);
    };
    CHECK(std::isnan(derivatives<double>(values_of<double, decltype(sealed)>, {0})[0][0]));
    const auto guarded = [](const auto& x) {
        const auto y = tg::eval(log(where(x > 0, x, 1)));
        return where(x > 0, y, 0);
    };
    for (const numbers& each : derivatives<double>(values_of<double, decltype(guarded)>, {0})) CHECK(each == numbers{0});
}

TEST_CASE("both modes: where in formulas, orders 1 to 3 and forward mode") {
    const tg::tensor<double> x{0, -1, 1, 0.75, 2};
    both_modes run(orders, tg::spec<double, 5>{});
    CHECK(run.distance(x) <= 1e-14); // nested tapes add third derivatives node by node, in another order
    for (const tg::any_tensor& each : run.results())
        for (const double v : tg::tensor<double>(each).to_vector()) CHECK_FALSE(std::isnan(v));
    // At 0, in second order the square and in third atanh; forwards pow(x, 0.5)'s other arm, atanh and pow(x, 1), then the square.
    CHECK(tg::tensor<double>(run.results()[0]).data()[0] == 2);
    CHECK(tg::tensor<double>(run.results()[1]).data()[0] == 2);
    CHECK(tg::tensor<double>(run.results()[2]).data()[0] == 3);
    CHECK(tg::tensor<double>(run.results()[3]).data()[0] == 2);
}

} // namespace guarded_arms_test
