#include <nn/models.hpp>

#include <algorithm>
#include <numeric>

namespace initializers_test {

using namespace nn_test;

namespace {

template <class T>
std::vector<T> drawn(const tg::shape& dims, const tg::initializer& how, std::uint64_t seed = 1, std::string_view path = "w") {
    std::vector<T> v(static_cast<std::size_t>(dims.elements()));
    tg::detail::initialize(v.data(), dims, how, seed, path);
    return v;
}

struct moments {
    double mean = 0, variance = 0, low = 0, high = 0;
};
template <class T>
moments moments_of(const std::vector<T>& v) {
    moments m;
    for (const T x : v) m.mean += static_cast<double>(x) / static_cast<double>(v.size());
    for (const T x : v) m.variance += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
    m.low = *std::min_element(v.begin(), v.end());
    m.high = *std::max_element(v.begin(), v.end());
    return m;
}

} // namespace

TEST_CASE("fan-in and fan-out are TensorFlow's") {
    const auto check = [](const tg::shape& dims, double in, double out) {
        CHECK(tg::fans_of(dims).in == in);
        CHECK(tg::fans_of(dims).out == out);
    };
    check({}, 1, 1);
    check({7}, 7, 7);
    check({784, 10}, 784, 10);
    check({5, 8, 16}, 40, 80);          // conv1d [width, in, out]
    check({3, 3, 3, 150}, 27, 1350);    // conv2d [height, width, in, out]
    check({5, 5, 150, 300}, 3750, 7500);
}

TEST_CASE_TEMPLATE("uniform initializers fill their interval", T, float, double) {
    // 120,000 numbers of U(-l, l): the mean deviates by l / sqrt(3 n) = 0.0017 l, the variance by l^2 / 3 * 0.0026; five
    // times that is allowed. The largest lies within 1e-3 l of l with probability 1 - exp(-60).
    const auto check = [](const tg::shape& dims, const tg::initializer& how, double limit) {
        const auto m = moments_of(drawn<T>(dims, how));
        CHECK(std::abs(m.mean) < 0.0085 * limit);
        CHECK(std::abs(m.variance * 3 / (limit * limit) - 1) < 0.013);
        CHECK(m.low >= -limit * (1 + 1e-6));
        CHECK(m.high <= limit * (1 + 1e-6));
        CHECK(m.low < -limit * 0.999);
        CHECK(m.high > limit * 0.999);
    };
    check({300, 400}, tg::init::glorot_uniform{}, std::sqrt(6.0 / 700));
    check({5, 5, 48, 100}, tg::init::glorot_uniform{}, std::sqrt(6.0 / (25 * 48 + 25 * 100)));
    check({300, 400}, tg::init::he_uniform{}, std::sqrt(6.0 / 300));
    check({300, 400}, tg::init::lecun_uniform{}, std::sqrt(3.0 / 300));
    check({5, 5, 48, 100}, // Keras's fan_avg
          tg::init::variance_scaling{2, tg::fan_mode::fan_avg, tg::scaled_law::uniform}, std::sqrt(6 / (25 * 74.0)));
    check({120000}, tg::init::uniform{-0.5, 0.5}, 0.5);
    const auto shifted = moments_of(drawn<T>({120000}, tg::init::uniform{2, 3}));
    CHECK(shifted.low >= 2);
    CHECK(shifted.high <= 3);
    CHECK(std::abs(shifted.mean - 2.5) < 0.0085);
}

TEST_CASE_TEMPLATE("normal initializers have their moments", T, float, double) {
    // The mean of n normal numbers deviates by s / sqrt(n) = 0.0029 s, their variance by s^2 sqrt(2 / n) = 0.0041 s^2.
    const auto check = [](const tg::shape& dims, const tg::initializer& how, double mean, double deviation) {
        const auto m = moments_of(drawn<T>(dims, how));
        CHECK(std::abs(m.mean - mean) < 0.0145 * deviation);
        CHECK(std::abs(m.variance / (deviation * deviation) - 1) < 0.021);
        CHECK(m.high > mean + 3.5 * deviation); // the tails are there
    };
    check({300, 400}, tg::init::glorot_normal{}, 0, std::sqrt(2.0 / 700));
    check({300, 400}, tg::init::he_normal{}, 0, std::sqrt(2.0 / 300));
    check({120000}, tg::init::normal{3, 0.25}, 3, 0.25);
    check({300, 400}, tg::init::variance_scaling{2, tg::fan_mode::fan_out, tg::scaled_law::untruncated_normal}, 0,
          std::sqrt(2.0 / 400));
}

TEST_CASE_TEMPLATE("truncated normal initializers end at two deviations and have their variance", T, float, double) {
    // The law's own deviation is 0.87962566 of the one before truncation, its fourth moment smaller than a normal one's: five
    // deviations of the empirical variance of 120,000 numbers are less than 0.016.
    constexpr double left = 0.87962566103423978;
    const auto check = [&](const tg::initializer& how, double mean, double deviation) {
        const auto m = moments_of(drawn<T>({300, 400}, how));
        CHECK(std::abs(m.mean - mean) < 0.0145 * deviation);
        CHECK(std::abs(m.variance / (deviation * deviation) - 1) < 0.016);
        const double end = 2 * deviation / left;
        CHECK(m.high <= mean + end * (1 + 1e-6));
        CHECK(m.high > mean + end * 0.99);
        CHECK(m.low >= mean - end * (1 + 1e-6));
        CHECK(m.low < mean - end * 0.99);
    };
    check(tg::init::truncated_normal{1, 0.5}, 1, 0.5 * left);
    check(tg::init::lecun_normal{}, 0, std::sqrt(1.0 / 300));
    check(tg::init::variance_scaling{2}, 0, std::sqrt(2.0 / 300));                             // Keras's he_normal
    check(tg::init::variance_scaling{.mode = tg::fan_mode::fan_avg}, 0, std::sqrt(2.0 / 700)); // its glorot_normal
}

TEST_CASE("identity") {
    CHECK(drawn<double>({2, 3}, tg::init::identity{2}) == std::vector<double>{2, 0, 0, 0, 2, 0});
    CHECK(drawn<float>({3, 1}, tg::init::identity{}) == std::vector<float>{1, 0, 0});
}

TEST_CASE("constants fill") {
    CHECK(drawn<float>({3}, tg::init::zeros{}) == std::vector<float>{0, 0, 0});
    CHECK(drawn<double>({2}, tg::init::ones{}) == std::vector<double>{1, 1});
    CHECK(drawn<double>({1}, tg::init::constant{-2.5}) == std::vector<double>{-2.5});
}

TEST_CASE("first values depend on seed and path, on nothing else") {
    const tg::initializer how = tg::init::glorot_uniform{};
    const auto first = drawn<float>({50, 60}, how, 4, "a/kernel");
    CHECK(first == drawn<float>({50, 60}, how, 4, "a/kernel"));
    CHECK(first != drawn<float>({50, 60}, how, 5, "a/kernel"));
    CHECK(first != drawn<float>({50, 60}, how, 4, "b/kernel"));
    // Not merely different: uncorrelated. The correlation of 3,000 pairs deviates by 0.018.
    const auto other = drawn<float>({50, 60}, how, 4, "b/kernel");
    const double product = std::inner_product(first.begin(), first.end(), other.begin(), 0.0);
    const double square = std::inner_product(first.begin(), first.end(), first.begin(), 0.0);
    CHECK(std::abs(product / square) < 0.09);
    tg::set_thread_count(1);
    const auto alone = drawn<float>({500, 600}, how, 4, "a/kernel");
    tg::set_thread_count(0);
    CHECK(alone == drawn<float>({500, 600}, how, 4, "a/kernel"));
}

} // namespace initializers_test
