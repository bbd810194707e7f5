#include <support/storage.hpp>

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/ops/ops.hpp>
#include <tapegraph/ops/pooling/lp_pooling.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <vector>

namespace sixteen_bit_statistics_test {

/// Statistics, products and random numbers of 16-bit elements where what lies between the numbers and the result leaves their range.
/// bfloat16 has float's range, and both types take one path, so most of this is about half.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

template <class T>
tg::tensor<T> made(const extents& dims, const std::function<double(std::int64_t)>& f) {
    tg::shape s;
    for (const std::int64_t e : dims) s.push_back(e);
    auto x = tg::tensor<T>::uninitialized(s);
    for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = T(f(i));
    return x;
}
template <class T>
double at(const tg::tensor<T>& x, std::int64_t i = 0) {
    return static_cast<float>(x.data()[i]);
}
/// Within a unit in the last place of a result that is not a small number of the type.
template <class T>
bool close(double got, double want) {
    return std::abs(got - want) <=
           std::abs(want) * static_cast<double>(static_cast<float>(std::numeric_limits<T>::epsilon()));
}

} // namespace

TEST_CASE_TEMPLATE("16-bit elements: statistics are computed in float", T, tg::half, tg::bfloat16) {
    const auto tens = made<T>({1024}, [](std::int64_t i) { return i % 2 == 0 ? 10 : -10; });
    const auto both = tg::moments(tens);
    CHECK(at(tg::tensor<T>(both.mean)) == 0);
    CHECK(at(tg::tensor<T>(both.variance)) == 100); // the sum of squares is 102,400
    // Far from zero: the squares of 300 and the sum of 4,000 numbers are beyond half, and a rounded mean would add to the variance.
    const auto far = made<T>({2, 4000}, [](std::int64_t i) { return 300 + i % 2 * 2; });
    const auto rows = tg::moments(far, 1, {.keepdims = true});
    for (const std::int64_t row : {0, 1}) {
        CHECK(close<T>(at(tg::tensor<T>(rows.mean), row), 301));
        CHECK(at(tg::tensor<T>(rows.variance), row) == 1);
    }
    CHECK(at(tg::tensor<T>(variance(far, 1)), 1) == 1);
    CHECK(at(tg::tensor<T>(stddev(far, 1)), 1) == 1);
    CHECK(close<T>(at(tg::tensor<T>(mean(far))), 301));
}

TEST_CASE("16-bit elements: what lies between may leave half's range") {
    using T = tg::half;
    const auto large = made<T>({1, 4, 4, 1}, [](std::int64_t i) { return 60000 - 32 * static_cast<double>(i); });
    CHECK(close<T>(at(tg::tensor<T>(mean(large))), 59760));
    CHECK(close<T>(at(tg::tensor<T>(tg::average_pooling2d(large, {.pool_size = 4}))), 59760));
    CHECK(close<T>(at(tg::tensor<T>(tg::global_average_pooling2d(large))), 59760));
    CHECK(close<T>(at(tg::tensor<T>(logsumexp(large))), 60000));
    const tg::tensor<T> shares = softmax(reshape(large, {16}), -1);
    CHECK(at(shares) == 1);
    CHECK(at(shares, 15) == 0);
    const auto lines = made<T>({2, 3}, [](std::int64_t i) { return 100 + static_cast<double>(i); });
    CHECK(close<T>(at(tg::tensor<T>(norm(lines, 3))), std::cbrt(6.0 * 102.5 * 102.5 * 102.5 + 3 * 102.5 * 17.5)));

    tg::gradient_tape tape({.persistent = true});
    // 1000 * 1000 is beyond half, each derivative is not.
    auto factors = made<T>({3}, [](std::int64_t i) { return i < 2 ? 1000 : 0.01; });
    tape.watch(factors);
    const tg::tensor<T> product = prod(factors);
    const tg::tensor<T> slopes(tape.gradient(product, factors));
    CHECK(close<T>(at(product), 1e6 * static_cast<float>(T(0.01))));
    CHECK(close<T>(at(slopes), 1000 * static_cast<float>(T(0.01))));
    CHECK(at(slopes, 2) == std::numeric_limits<double>::infinity()); // 1e6, which no half is
    // The square of 300 is beyond half; the powers of a window of equal numbers share the slope.
    auto pixels = made<T>({1, 2, 2, 1}, [](std::int64_t) { return 300; });
    tape.watch(pixels);
    const tg::tensor<T> pooled = tg::lp_pooling2d(pixels, 3, {.pool_size = 2});
    CHECK(close<T>(at(pooled), 300 * std::cbrt(4.0)));
    CHECK(close<T>(at(tg::tensor<T>(tape.gradient(pooled, pixels))), std::pow(4.0, -2.0 / 3)));
}

TEST_CASE_TEMPLATE("16-bit elements: random numbers keep to their laws", T, tg::half, tg::bfloat16) {
    tg::random::set_seed(5);
    const auto like = made<T>({1000, 1000}, [](std::int64_t) { return 0; });
    // Of float's numbers 1 in 4,000 rounds to 1 in half, 1 in 500 in bfloat16.
    const tg::tensor<T> drawn = tg::random::uniform_like(like), shifted = tg::random::uniform_like(like, {-2, -1});
    for (const auto& [numbers, low, high] : {std::tuple{drawn, 0.0, 1.0}, std::tuple{shifted, -2.0, -1.0}}) {
        double least = 9, most = -9;
        for (std::int64_t i = 0; i < numbers.size(); ++i) {
            least = std::min(least, at(numbers, i));
            most = std::max(most, at(numbers, i));
        }
        CHECK(least >= low);
        CHECK(most < high);
        CHECK(most > high - 0.01);
    }
    // A rate that bfloat16 does not tell from 1: 1,000 of a million stay, give or take 5 deviations of 32.
    const auto ones = made<T>({1000, 1000}, [](std::int64_t) { return 1; });
    const tg::tensor<T> kept = tg::dropout(ones, 0.999);
    std::int64_t stay = 0;
    for (std::int64_t i = 0; i < kept.size(); ++i) stay += at(kept, i) != 0;
    CHECK(std::abs(stay - 1000) < 160);
    // One exponential number in 17 million is 0: a logit of -infinity minus its logarithm was NaN, which won. Of 67 million four are.
    const auto logits = made<T>({65536, 128}, [](std::int64_t i) { return i % 128 == 64 ? 0 : -INFINITY; });
    for (int repeat = 0; repeat < 8; ++repeat) {
        const tg::tensor<std::int32_t> classes = tg::random::categorical(logits);
        std::int64_t others = 0;
        for (std::int64_t i = 0; i < classes.size(); ++i) others += classes.data()[i] != 64;
        CHECK(others == 0);
    }
}

} // namespace sixteen_bit_statistics_test
