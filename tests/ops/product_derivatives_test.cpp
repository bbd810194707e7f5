#include <support/finite_differences.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace product_derivatives_test {

/// Derivatives of prod and cumulative_product against products of the others in long double, one by one: beside zeros, and where the
/// product overflows or underflows and what is asked for does not. A quotient of the product by the element is NaN or 0 there.

namespace tg = tapegraph;
using numbers = std::vector<double>;

namespace {

/// The gradient of sum(weights * f(x)) and that of the gradient's product with `along`.
template <class T>
std::pair<numbers, numbers> differentiated(const auto& f, const numbers& at, const numbers& along,
                                           const tg::shape& dims) {
    const auto tensor_of = [&](const numbers& v) {
        auto doubles = tg::tensor<double>::uninitialized(dims);
        std::copy(v.begin(), v.end(), doubles.mutable_data());
        return tg::tensor<T>(tg::cast<T>(doubles));
    };
    tg::tensor<T> x = tensor_of(at);
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x);
    const tg::tensor<T> y = f(x), slope(tape.gradient(y, x));
    const tg::tensor<T> bend(tape.gradient(tg::tensor<T>(sum(slope * tensor_of(along))), x));
    return {tg::tensor<double>(tg::cast<double>(slope)).to_vector(),
            tg::tensor<double>(tg::cast<double>(bend)).to_vector()};
}
template <class T>
numbers slopes(const auto& f, const numbers& x) {
    return differentiated<T>(f, x, x, {static_cast<std::int64_t>(x.size())}).first;
}

long double product_without(const numbers& x, std::size_t begin, std::size_t end, std::size_t i, std::size_t k) {
    long double product = 1;
    for (std::size_t j = begin; j < end; ++j)
        if (j != i && j != k) product *= x[j];
    return product;
}

constexpr auto whole = [](const auto& x) { return tg::eval(prod(x)); };

} // namespace

TEST_CASE("three zeros beside products that overflow: nothing flows") {
    const numbers x{1e13, 0, 0, 1e13, 1e13, 0, 1e13, 1e13, 1e13};
    CHECK(slopes<float>(whole, x) == numbers(9));
    CHECK(slopes<float>([](const auto& v) { return tg::eval(sum(cumulative_product(v))); }, x)[5] == 0);
    const auto rows = [](const auto& v) { return tg::eval(sum(prod(v, 1))); };
    const auto [slope, bend] = differentiated<float>(rows, x, numbers(9, 1), {3, 3});
    CHECK(slope == numbers{0, 0, 0, 0, 0, 1e13f * 1e13f, 1e13f * 1e13f, 1e13f * 1e13f, 1e13f * 1e13f});
    CHECK(bend[1] == 1e13f);
}

TEST_CASE("the product of the others, where the product overflows or underflows, with infinities and NaN") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    CHECK(slopes<double>(whole, {1e-200, 1e-200, 2}) == numbers{2e-200, 2e-200, 0});
    CHECK(slopes<double>(whole, {1e200, 1e200, 2}) == numbers{2e200, 2e200, infinity});
    CHECK(slopes<double>(whole, {1e200, 1e200, 1e-200, 1e-200, 1e200, 0}).back() == doctest::Approx(1e200));
    CHECK(slopes<double>(whole, {infinity, 3}) == numbers{3, infinity});
    CHECK(slopes<tg::half>(whole, {300, 300, 0.0625}) == numbers{18.75, 18.75, infinity});
    // Exponents far beyond those of any type, back within them or not.
    numbers there(1000, 1e10), back(1000, 1e-10), both = there;
    both.insert(both.end(), back.begin(), back.end());
    CHECK(slopes<double>(whole, both).front() == doctest::Approx(1e-10));
    CHECK(slopes<double>(whole, both).back() == doctest::Approx(1e10));
    CHECK(slopes<double>(whole, there) == numbers(1000, infinity));
    CHECK(slopes<double>(whole, back) == numbers(1000, 0));
    const numbers undefined = slopes<double>(whole, {std::nan(""), 3});
    CHECK(undefined[0] == 3);
    CHECK(std::isnan(undefined[1]));
    CHECK(slopes<double>(whole, {}) == numbers{});
}

TEST_CASE("first and second derivatives along lines longer than a block, over several axes, in every direction") {
    for (const std::size_t n : {1, 2, 31, 33, 100})
        for (const int zeros : {0, 1, 2, 3})
            for (const int way : {0, 1, 2, 3, 4}) { // prod, or running products by direction and exclusion
                CAPTURE(n);
                CAPTURE(zeros);
                CAPTURE(way);
                const bool reverse = way > 2, exclusive = way % 2 == 0;
                numbers x, along;
                for (std::size_t j = 0; j < n; ++j) {
                    x.push_back((j % 3 == 0 ? -1 : 1) *
                                std::pow(10, j % 2 == 0 ? 7 + 0.01 * double(j) : -7 + 0.03 * double(j % 5)));
                    along.push_back(1.0 / (1 + double(j)));
                }
                for (int z = 0; z < zeros; ++z) x[(7 * static_cast<std::size_t>(z) + n / 2) % n] = 0;
                const auto f = [&](const auto& v) {
                    return way == 0 ? tg::eval(prod(v)) : tg::eval(sum(cumulative_product(v, 0, {reverse, exclusive})));
                };
                const auto [slope, bend] = differentiated<double>(f, x, along, {static_cast<std::int64_t>(n)});
                const auto sets = [&](const auto& each) { // of elements that are multiplied
                    if (way == 0) return each(std::size_t{0}, n);
                    for (std::size_t i = 0; i < n; ++i) {
                        if (reverse)
                            each(exclusive ? i + 1 : i, n);
                        else
                            each(std::size_t{0}, exclusive ? i : i + 1);
                    }
                };
                for (std::size_t k = 0; k<n; k += n> 40 ? 9 : 1) {
                    long double first = 0, second = 0, size = 0, second_size = 0;
                    sets([&](std::size_t begin, std::size_t end) {
                        if (k < begin || k >= end) return;
                        const long double part = product_without(x, begin, end, k, k);
                        first += part, size += std::abs(part);
                        for (std::size_t i = begin; i < end; ++i) {
                            const long double bent = i == k ? 0 : along[i] * product_without(x, begin, end, k, i);
                            second += bent, second_size += std::abs(bent);
                        }
                    });
                    // A unit for each factor and each summand.
                    const long double units = 4 * static_cast<long double>(n) * 0x1p-52L;
                    CHECK(std::abs(slope[k] - first) <= units * size);
                    CHECK(std::abs(bend[k] - second) <= units * second_size);
                }
            }
    const numbers x{1, 2, 3, 4, 5, 6, 7, 8, 0, 2, 3, 1};
    const auto outer = [](const auto& v) { return tg::eval(sum(prod(v, {0, 2}))); };
    const auto [slope, bend] = differentiated<double>(outer, x, numbers(12, 1), {2, 3, 2});
    CHECK(slope[0] == 2 * 7 * 8);
    CHECK(slope[8] == 3 * 4 * 2);
    CHECK(slope[2] == 0);
    CHECK(bend[2] == 2 * 4); // by the zero alone
}

TEST_CASE("the third and the fourth derivative of a product are the polynomial's; there is no fifth") {
    tg::tensor<double> x{2, 0, 0, 3, 0};
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x);
    tg::tensor<double> y = prod(x);
    // By x_1, x_2, x_4 and x_0 in turn.
    for (const int by : {1, 2, 4, 0}) {
        numbers chosen(5);
        chosen[static_cast<std::size_t>(by)] = 1;
        const tg::tensor<double> g(tape.gradient(y, x)), unit(chosen);
        y = tg::tensor<double>(sum(g * unit));
    }
    CHECK(y.item() == 3);
    CHECK_THROWS_WITH_AS((void)tape.gradient(y, x), doctest::Contains("derivatives end with the fourth"),
                         tg::shape_error);
}

} // namespace product_derivatives_test
