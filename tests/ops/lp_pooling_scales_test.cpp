#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace lp_pooling_scales_test {

/// Derivatives of lp_pooling where windows of very different sizes are neighbours, or overlap: those of a window are of quotients by its own
/// value. Powers of numbers that one scale for all windows leaves small underflow: of orders above 2 from 1e-20 on in float.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using numbers = std::vector<long double>;

namespace {

struct expected {
    numbers slope, bend;  ///< of sum(weights y), and of sum(along slope)
    long double size = 0; ///< the largest of what the latter are differences of
};
/// Windows of two, `stride` apart.
expected by_hand(const numbers& x, const numbers& along, long double p, std::size_t stride) {
    expected e{numbers(x.size()), numbers(x.size()), 0};
    for (std::size_t first = 0, w = 0; first + 2 <= x.size(); first += stride, ++w) {
        const long double weight = 1 + static_cast<long double>(w % 3),
                          larger = std::max(std::abs(x[first]), std::abs(x[first + 1]));
        if (larger == 0) continue;
        long double sum = 0, product = 0, slope[2], size[2];
        for (std::size_t i = 0; i < 2; ++i) sum += std::pow(std::abs(x[first + i]) / larger, p);
        const long double y = std::pow(sum, 1 / p) * larger;
        for (std::size_t i = 0; i < 2; ++i) {
            size[i] = std::abs(x[first + i]) / y;
            slope[i] = x[first + i] == 0 ? 0 : std::copysign(std::pow(size[i], p - 1), x[first + i]);
            product += slope[i] * along[first + i];
            e.slope[first + i] += weight * slope[i];
        }
        for (std::size_t i = 0; i < 2; ++i) {
            const long double bent = x[first + i] == 0 && p != 2 ? 0 : std::pow(size[i], p - 2) * along[first + i];
            const long double factor = weight * (p - 1) / y;
            e.bend[first + i] += factor * (bent - slope[i] * product);
            e.size = std::max({e.size, factor * std::abs(bent), factor * std::abs(slope[i] * product)});
        }
    }
    return e;
}
template <class T>
tg::tensor<T> tensor_of(const numbers& x) {
    auto doubles = tg::tensor<double>::uninitialized({1, static_cast<std::int64_t>(x.size()), 1});
    for (std::size_t i = 0; i < x.size(); ++i) doubles.mutable_data()[i] = static_cast<double>(x[i]);
    return tg::tensor<T>(tg::cast<T>(doubles));
}
template <class T>
numbers numbers_of(const tg::any_tensor& x) {
    const tg::tensor<double> doubles(tg::cast<double>(tg::tensor<T>(x)));
    return {doubles.data(), doubles.data() + doubles.size()};
}

template <class T>
void check(double p, std::int64_t stride, numbers x) {
    CAPTURE(p);
    CAPTURE(stride);
    for (long double& each : x) each = static_cast<T>(each);
    const numbers along{1, -0.5, 2, 0.25, 1, -1, 0.75, 3};
    tg::tensor<T> v = tensor_of<T>(x);
    tg::gradient_tape tape({.persistent = true});
    tape.watch(v);
    const tg::tensor<T> y = tg::lp_pooling1d(v, p, {.pool_size = 2, .stride = stride});
    numbers weights;
    for (std::int64_t w = 0; w < y.size(); ++w) weights.push_back(static_cast<long double>(1 + w % 3));
    const tg::tensor<T> total = sum(y * tensor_of<T>(weights)), slope(tape.gradient(total, v)),
                        bend(tape.gradient(tg::tensor<T>(sum(slope * tensor_of<T>(along))), v));
    const expected wanted = by_hand(x, along, p, static_cast<std::size_t>(stride));
    // Powers with an exponent of p multiply the error of a quotient by p.
    const long double epsilon = std::is_same_v<T, double> ? 0x1p-52L : 0x1p-23L, units = 8 * std::max(1.0, p) * epsilon;
    const long double least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    const numbers first = numbers_of<T>(slope), second = numbers_of<T>(bend);
    for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(first[i] - wanted.slope[i]) <= units * std::abs(wanted.slope[i]) + least);
        if (wanted.size < most / 64) CHECK(std::abs(second[i] - wanted.bend[i]) <= 4 * units * wanted.size + least);
    }
}

} // namespace

TEST_CASE_TEMPLATE("derivatives of lp_pooling beside windows of other sizes", T, float, double) {
    const long double tiny = std::is_same_v<T, double> ? 1e-250L : 1e-30L,
                      huge = std::is_same_v<T, double> ? 1e250L : 1e30L;
    for (const double p : {1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 30.0})
        for (const std::int64_t stride : {1, 2}) {
            check<T>(p, stride, {3, -4, 1, 2, -1, 5, 2, 2});
            check<T>(p, stride, {3 * tiny, -4 * tiny, tiny, 2 * tiny, -tiny, 5 * tiny, 2 * tiny, 2 * tiny});
            check<T>(p, stride, {3 * tiny, -4 * tiny, 1, 2, 3 * huge, -huge, tiny, 2 * tiny});
            check<T>(p, stride, {0, 0, tiny, 2 * tiny, 0, 0, 1, 0});
        }
}

TEST_CASE("lp_pooling of an infinite order is refused") {
    const tg::tensor<float> x = tg::ones<float>({1, 2, 1});
    CHECK_THROWS_AS((void)tg::lp_pooling1d(x, std::numeric_limits<double>::infinity(), {.pool_size = 2}), tg::error);
}

namespace {
template <int Norm>
constexpr auto slopes = [](auto x) {
    const auto pooled = [](auto v) {
        return tg::eval(
            sum(tg::lp_pooling2d(v, Norm / 2.0, {.pool_size = {3, 2}, .stride = {2, 1}, .dilation = {1, 2}})));
    };
    return tg::jvp(tg::gradient(pooled))(x, tg::eval(x + 1)).tangent;
};
} // namespace

TEST_CASE("both modes: second derivatives of lp_pooling with windows that overlap and have gaps") {
    const auto check_mode = [](auto run) {
        const std::string differs = run.compare(drawn<float>({2, 7, 6, 3}, 5));
        CHECK_MESSAGE(differs.empty(), differs);
    };
    check_mode(both_modes(slopes<4>, tg::spec<float, tg::dyn, 7, 6, 3>{}));
    check_mode(both_modes(slopes<7>, tg::spec<float, tg::dyn, 7, 6, 3>{}));
}

} // namespace lp_pooling_scales_test
