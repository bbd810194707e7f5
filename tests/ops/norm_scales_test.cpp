#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace norm_scales_test {

/// Norms at every scale at which a type has numbers, from its smallest subnormal number to the largest: values, gradients and second
/// derivatives against long double, whose range holds the powers of all of them. What is squared unscaled fails here: in float from
/// 1e-23 and 1e19 on.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using numbers = std::vector<long double>;

namespace {

template <class T>
struct range {
    int lowest, highest; // exponents of the smallest number and of the largest power of two
    long double epsilon;
};
template <class T>
constexpr range<T> range_of = std::is_same_v<T, double>     ? range<T>{-1074, 1023, 0x1p-52L}
                              : std::is_same_v<T, float>    ? range<T>{-149, 127, 0x1p-23L}
                              : std::is_same_v<T, tg::half> ? range<T>{-24, 15, 0x1p-10L}
                                                            : range<T>{-133, 127, 0x1p-7L};

template <class T>
tg::tensor<T> tensor_of(const numbers& x) {
    auto doubles = tg::tensor<double>::uninitialized({static_cast<std::int64_t>(x.size())});
    for (std::size_t i = 0; i < x.size(); ++i) doubles.mutable_data()[i] = static_cast<double>(x[i]);
    return tg::tensor<T>(tg::cast<T>(doubles));
}
template <class T>
numbers numbers_of(const tg::any_tensor& x) {
    const tg::tensor<double> doubles(tg::cast<double>(tg::tensor<T>(x)));
    return {doubles.data(), doubles.data() + doubles.size()};
}

/// Value, gradient, and the gradient of the gradient's product with `along`.
struct derivatives {
    numbers value, slope, bend;
};
template <class T>
derivatives differentiated(const auto& f, const numbers& at, const numbers& along) {
    tg::tensor<T> x = tensor_of<T>(at);
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x);
    const tg::tensor<T> y = f(x);
    const tg::tensor<T> slope(tape.gradient(y, x)),
        bend(tape.gradient(tg::tensor<T>(sum(slope * tensor_of<T>(along))), x));
    return {numbers_of<T>(y), numbers_of<T>(slope), numbers_of<T>(bend)};
}
derivatives norm_by_hand(const numbers& x, long double p, const numbers& along) {
    long double total = 0, product = 0;
    for (const long double each : x) total += each == 0 ? 0 : std::pow(std::abs(each), p);
    const long double y = std::pow(total, 1 / p);
    const auto steep = [&](std::size_t i) {
        return x[i] == 0 ? 0 : std::copysign(std::pow(std::abs(x[i]) / y, p - 1), x[i]);
    };
    derivatives d{{y}, {}, {}};
    for (std::size_t i = 0; i < x.size(); ++i) {
        d.slope.push_back(steep(i));
        product += steep(i) * along[i];
    }
    for (std::size_t i = 0; i < x.size(); ++i)
        d.bend.push_back(
            (p - 1) / y *
            ((x[i] == 0 && p != 2 ? 0 : std::pow(std::abs(x[i]) / y, p - 2)) * along[i] - steep(i) * product));
    return d;
}

template <class T>
void check_near(const char* what, const numbers& got, const numbers& wanted, long double units) {
    const long double least = std::ldexp(1.0L, range_of<T>.lowest), most = std::ldexp(2.0L, range_of<T>.highest);
    long double largest = 0;
    for (const long double w : wanted) largest = std::max(largest, std::abs(w));
    if (largest >= most / 2) return; // no number of the type
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(std::string(what) << " " << i << ": " << static_cast<double>(got[i]) << ", not "
                               << static_cast<double>(wanted[i]));
        CHECK(std::abs(got[i] - wanted[i]) <= units * range_of<T>.epsilon * largest + least);
    }
}

// Of one size; and of sizes whose squares alone leave the range.
const numbers alike{3, -4, 0, 1.5, 6}, along{1, -0.5, 2, 0.25, 1};

template <class T>
void check_norms(double p) {
    CAPTURE(p);
    const auto [lowest, highest, epsilon] = range_of<T>;
    // From the smallest numbers on: 1.5 of the smallest number is none, so the least has one bit more.
    for (int k = lowest + 1; k <= highest - 4; k += std::is_same_v<T, double> ? 61 : 9) {
        CAPTURE(k);
        numbers x = alike;
        for (long double& each : x) each = std::ldexp(each, k);
        const derivatives wanted = norm_by_hand(x, p, along);
        const derivatives got = differentiated<T>([&](const auto& v) { return tg::tensor<T>(norm(v, p)); }, x, along);
        // A unit or two of the value and of powers; quotients of two of them, and what p - 1 makes of their errors.
        check_near<T>("norm", got.value, wanted.value, 2);
        // y has no more digits than its size leaves it: the quotient by it is as good.
        const auto coarse = static_cast<long double>(std::max(1.0, std::abs(p - 1))) *
                            std::max(1.0L, std::ldexp(1.0L, lowest) / wanted.value[0] / epsilon);
        check_near<T>("gradient", got.slope, wanted.slope, 4 * coarse);
        check_near<T>("second derivative", got.bend, wanted.bend, 16 * coarse);
    }
}

} // namespace

TEST_CASE_TEMPLATE("norms and their derivatives at all scales", T, float, double, tg::half, tg::bfloat16) {
    for (const double p : {2.0, 3.0, 1.5, 7.0}) check_norms<T>(p);
}

TEST_CASE("the norm of one number is its magnitude, whatever its size") {
    for (const double p : {2.0, 3.0, 0.5, -1.0, -3.0, 40.0})
        for (const float x : {4.5e-31f, 1e-45f, 3e38f, -2.0f}) {
            CAPTURE(p);
            CAPTURE(x);
            const derivatives d =
                differentiated<float>([&](const auto& v) { return tg::tensor<float>(norm(v, p)); }, {x}, {0});
            CHECK(d.value[0] == std::abs(x));
            CHECK(d.slope[0] == (x < 0 ? -1 : 1));
        }
}

TEST_CASE_TEMPLATE("norms of nothing, zeros, infinities, NaN", T, float, double) {
    constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const auto of = [](double p, const tg::tensor<T>& x) { return tg::tensor<T>(norm(x, p)).item(); };
    for (const double p : {2.0, 3.0, 0.5}) {
        CAPTURE(p);
        CHECK(of(p, tg::zeros<T>({0})) == 0);
        CHECK(of(p, {0, 0}) == 0);
        CHECK(of(p, {1, -infinity}) == infinity);
        CHECK(std::isnan(of(p, {1, nan})));
        const derivatives none =
            differentiated<T>([&](const auto& v) { return tg::tensor<T>(norm(v, p)); }, {0, 0}, {1, 1});
        CHECK(none.slope == numbers{0, 0});
        CHECK(none.bend == numbers{0, 0});
    }
    CHECK(of(-1, {0, 2}) == 0);
    CHECK(std::isnan(of(-1, {1, nan})));
}

TEST_CASE_TEMPLATE("stddev and hypot at all scales", T, float, double) {
    const auto [lowest, highest, epsilon] = range_of<T>;
    const auto deviation = [](const auto& v) { return tg::tensor<T>(stddev(v)); };
    const auto hypotenuse = [](const auto& v) { return tg::tensor<T>(sum(hypot(v, 2 * v))); };
    const derivatives one = differentiated<T>(deviation, alike, along),
                      two = differentiated<T>(hypotenuse, alike, along);
    // The results of powers of two times x are those of x, times powers of two: exactly, while 1 / y is a normal number.
    for (int k = -highest + 8; k <= highest - 8; k += 17) {
        CAPTURE(k);
        numbers x = alike;
        for (long double& each : x) each = std::ldexp(each, k);
        const auto same = [&](const derivatives& a, const derivatives& b) {
            CHECK(std::ldexp(a.value[0], k) == b.value[0]);
            CHECK(a.slope == b.slope);
            for (std::size_t i = 0; i < b.bend.size(); ++i) { // of two quotients, each rounded where it is subnormal
                const long double right = std::ldexp(a.bend[i], -k);
                const bool subnormal = std::abs(right) < std::numeric_limits<T>::min();
                CHECK(std::abs(right - b.bend[i]) <= (subnormal ? std::ldexp(2.0L, range_of<T>.lowest) : 0));
            }
        };
        same(one, differentiated<T>(deviation, x, along));
        same(two, differentiated<T>(hypotenuse, x, along));
    }
}

namespace {
constexpr auto norms = [](auto x) {
    return tg::value_and_gradient([](auto a) {
        const auto lengths = norm(a, 2, -1), cubes = norm(a, 3, 0), deviations = stddev(a, 0);
        const auto products = cumulative_product(a, 1);
        return tg::eval(sum(lengths) + sum(cubes) + sum(deviations) + sum(prod(a, 0)) + sum(products));
    })(x);
};
} // namespace

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("both modes: norms and products at the ends of the range") {
    both_modes narrow(norms, tg::spec<float, tg::dyn, 3>{});
    both_modes wide(norms, tg::spec<double, tg::dyn, 3>{});
    for (const double scale : {1e-30, 1.0, 1e30})
        for (const std::int64_t n : {1, 7, 300}) {
            TG_SAME(narrow.compare(tg::tensor<float>(drawn<float>({n, 3}, 1) * scale)));
            TG_SAME(wide.compare(tg::tensor<double>(drawn<double>({n, 3}, 1) * (scale < 1 ? 1e-170 : scale))));
        }
}

} // namespace norm_scales_test
