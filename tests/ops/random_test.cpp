#include <support/messages.hpp>

#include <tapegraph/core/random_laws.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/eager/random.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace random_test {

/// The distributions of random numbers. Seeds are fixed, so the tests are deterministic; their limits are those that numbers of
/// the law would exceed with probability 1e-6, had the seed been chosen blindly.

namespace tg = tapegraph;
using support::message_of;
using tg::tensor;

namespace {

constexpr std::int64_t many = 20000;
constexpr double four_nines = 4.89; // |z| of a normal number beyond which lies 1e-6

/// Kolmogorov and Smirnov: P(sqrt(n) D > d) = 2 exp(-2 d^2), 1e-6 at 2.69.
template <class T, class F>
double distance_from(const tensor<T>& x, const F& distribution) {
    std::vector<T> sorted = x.to_vector();
    std::sort(sorted.begin(), sorted.end());
    const auto n = static_cast<double>(sorted.size());
    double largest = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const double p = distribution(static_cast<double>(sorted[i]));
        largest =
            std::max({largest, std::abs(p - static_cast<double>(i) / n), std::abs(p - static_cast<double>(i + 1) / n)});
    }
    return largest * std::sqrt(n);
}

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// The chi-square value exceeded with probability 1e-6 (Wilson and Hilferty's approximation).
double chi_square_limit(double freedom) {
    const double c = 2 / (9 * freedom);
    return freedom * std::pow(1 - c + 4.753 * std::sqrt(c), 3);
}
double chi_square(const std::map<std::string, int>& counts, double cells, double total) {
    const double expected = total / cells;
    double sum = (cells - static_cast<double>(counts.size())) * expected; // cells never hit
    for (const auto& [cell, count] : counts) sum += (count - expected) * (count - expected) / expected;
    return sum;
}

template <class T>
double mean_of(const tensor<T>& x) {
    double sum = 0;
    for (T v : x.values()) sum += static_cast<double>(v);
    return sum / static_cast<double>(x.size());
}
template <class T>
double variance_of(const tensor<T>& x) {
    const double mean = mean_of(x);
    double sum = 0;
    for (T v : x.values()) sum += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
    return sum / static_cast<double>(x.size());
}

// The end that a range excludes is not reached by rounding either.
static_assert(tg::random::just_below(2.0f) < 2.0f && tg::random::just_below(2.0f) == 2 - 0x1p-23f);
static_assert(tg::random::just_below(-1.0) < -1.0 && tg::random::just_below(0.0f) < 0.0f);
static_assert(tg::random::high_product(~0ull, ~0ull) == ~0ull - 1 && tg::random::high_product(1ull << 63, 6) == 3);
static_assert(tg::random::truncated_normal_at<float>({1, 2, 3}, 4) <= 2);

} // namespace

TEST_CASE_TEMPLATE("random: laws", T, float, double) {
    const tg::random::options seed{.seed = 11};
    const double root = std::sqrt(static_cast<double>(many));
    const auto u = tg::random::uniform<T>({many}, seed, -1, 3);
    CHECK(distance_from(u, [](double x) { return (x + 1) / 4; }) < 2.69);
    CHECK(std::abs(mean_of(u) - 1) < four_nines * (4 / std::sqrt(12.0)) / root);
    for (T v : u.values()) CHECK_UNARY(v >= T(-1) && v < T(3));

    const auto n = tg::random::normal<T>({many}, seed, 2, 3);
    CHECK(distance_from(n, [](double x) { return normal_distribution((x - 2) / 3); }) < 2.69);
    CHECK(std::abs(mean_of(n) - 2) < four_nines * 3 / root);
    CHECK(std::abs(variance_of(n) / 9 - 1) < four_nines * std::sqrt(2.0) / root);

    const auto t = tg::random::truncated_normal<T>({many}, seed, 1, 0.5);
    const double inside = normal_distribution(2) - normal_distribution(-2);
    CHECK(distance_from(t, [&](double x) {
              return (normal_distribution((x - 1) / 0.5) - normal_distribution(-2)) / inside;
          }) < 2.69);
    // Variance 1 - 4 phi(2) / (Phi(2) - Phi(-2)) = 0.7737 of the normal law's; its own deviation is below sqrt(2).
    CHECK(std::abs(variance_of(t) / 0.25 - 0.77374) < four_nines * std::sqrt(2.0) / root);
    for (T v : t.values()) CHECK_UNARY(v >= T(0) && v <= T(2));

    const auto e = tg::random::exponential<T>({many}, seed, 2);
    CHECK(distance_from(e, [](double x) { return 1 - std::exp(-2 * x); }) < 2.69);
    for (T v : e.values()) CHECK_UNARY(v >= T(0) && std::isfinite(v));

    const auto b = tg::random::bernoulli<T>({many}, seed, 0.3);
    CHECK(std::abs(mean_of(b) - 0.3) < four_nines * std::sqrt(0.3 * 0.7) / root);
    for (T v : b.values()) CHECK_UNARY(v == T(0) || v == T(1));
    CHECK(mean_of(tg::random::bernoulli<T>({many}, seed, 0)) == 0);
    CHECK(mean_of(tg::random::bernoulli<T>({many}, seed, 1)) == 1);
}

TEST_CASE("random: a range whose end is a rounding away") {
    const auto x = tg::random::uniform<float>({many}, {}, 1, 1 + 0x1p-20);
    for (float v : x.values()) CHECK_UNARY(v >= 1 && v < 1 + 0x1p-20f);
    const auto y = tg::random::uniform<float>({many}, {}, -0x1p-20, 0);
    for (float v : y.values()) CHECK_UNARY(v >= -0x1p-20f && v < 0);
}

TEST_CASE("random: streams are independent") {
    const tensor<double> like = tg::zeros<double>({many});
    tg::random::set_seed(3);
    const auto a = tg::random::normal_like(like), b = tg::random::normal_like(like);
    tg::random::set_seed(4);
    const auto c = tg::random::normal_like(like);
    tg::random::set_seed(0);
    const double root = std::sqrt(static_cast<double>(many));
    const auto product = [](const auto& x, const auto& y) { return mean_of(tensor<double>(x * y)); };
    CHECK(std::abs(product(a, b)) * root < four_nines);
    CHECK(std::abs(product(a, c)) * root < four_nines);
    // Neighbouring elements.
    CHECK(std::abs(product(tensor<double>(slice(a, {{1}})), tensor<double>(slice(a, {{0, -1}})))) * root < four_nines);
}

TEST_CASE("random: whole numbers") {
    std::map<std::string, int> counts;
    for (std::int32_t v : tg::random::integers<std::int32_t>({many}, -3, 4, {.seed = 2}).values()) {
        CHECK_UNARY(v >= -3 && v < 4);
        ++counts[std::to_string(v)];
    }
    CHECK(counts.size() == 7);
    CHECK(chi_square(counts, 7, many) < chi_square_limit(6));
    for (std::int64_t v : tg::random::integers<std::int64_t>({100}, 9, 10).values()) CHECK(v == 9);
    // The widest ranges: all sixteen top four bits occur.
    using limits = std::numeric_limits<std::int64_t>;
    counts.clear();
    for (std::int64_t v : tg::random::integers<std::int64_t>({many}, limits::min(), limits::max()).values())
        ++counts[std::to_string(v >> 60)];
    CHECK(counts.size() == 16);
    CHECK(chi_square(counts, 16, many) < chi_square_limit(15));
    const auto narrow = tg::random::integers<std::int32_t>({many}, std::numeric_limits<std::int32_t>::min(), 1ll << 31);
    CHECK(*std::max_element(narrow.values().begin(), narrow.values().end()) > 2000000000);
    CHECK(*std::min_element(narrow.values().begin(), narrow.values().end()) < -2000000000);
}

TEST_CASE("random: permutations are equally likely") {
    std::map<std::string, int> counts;
    for (std::uint64_t stream = 0; stream < 4800; ++stream) {
        const auto p = tg::random::permutation(4, {.seed = 1, .stream = stream});
        std::string text;
        for (std::int32_t v : p.values()) text += std::to_string(v);
        ++counts[text];
        std::sort(text.begin(), text.end());
        REQUIRE(text == "0123");
    }
    CHECK(counts.size() == 24);
    CHECK(chi_square(counts, 24, 4800) < chi_square_limit(23));
    const tensor<float> rows{{1, 2}, {3, 4}, {5, 6}};
    auto shuffled = tg::random::shuffle(rows).to_vector();
    std::sort(shuffled.begin(), shuffled.end());
    CHECK(shuffled == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(tg::random::permutation(0).size() == 0);
    CHECK(tg::random::shuffle(tg::zeros<float>({0, 3})).shape() == tg::shape{0, 3});
}

TEST_CASE("random: categorical draws with the probabilities of softmax") {
    const tensor<double> logits{std::log(0.5), std::log(0.2), -std::numeric_limits<double>::infinity(), std::log(0.3)};
    tg::random::set_seed(7);
    const auto drawn = tg::random::categorical(broadcast_to(logits, {many, 4}));
    tg::random::set_seed(0);
    const double p[]{0.5, 0.2, 0, 0.3};
    double counts[4]{};
    for (std::int32_t c : drawn.values()) counts[c] += 1;
    for (int c = 0; c < 4; ++c)
        CHECK(std::abs(counts[c] / many - p[c]) <= four_nines * std::sqrt(p[c] * (1 - p[c]) / many));
}

TEST_CASE("random: threads, lengths and shapes change nothing") {
    const tg::random::options seed{.seed = 17};
    const auto all = [&](std::int64_t n) {
        return std::tuple{tg::random::uniform<float>({n}, seed).to_vector(),
                          tg::random::truncated_normal<double>({n}, seed).to_vector(),
                          tg::random::exponential<float>({n}, seed).to_vector(),
                          tg::random::integers<std::int64_t>({n}, -50, 50, seed).to_vector(),
                          tg::random::permutation(n, seed).to_vector()};
    };
    tg::set_thread_count(1);
    const auto one = all(70001);
    tg::set_thread_count(2);
    const auto two = all(70001);
    tg::set_thread_count(0);
    CHECK(one == two);
    auto truncated = tg::random::truncated_normal<double>({7, 143}, seed).to_vector();
    const auto& longer = std::get<1>(one);
    CHECK(std::equal(truncated.begin(), truncated.end(), longer.begin()));
    CHECK(truncated[5] == tg::random::truncated_normal_at<double>({17, 0, 0xFFFFFFFD}, 5));
}

TEST_CASE("dropout without a scope") {
    tensor<double> x = tg::full<double>({many}, 3.0);
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> y = tg::dropout(x, 0.25);
    double zeros = 0;
    for (double v : y.values()) {
        zeros += v == 0;
        CHECK_UNARY(v == 0 || v == 3.0 * (1 / 0.75));
    }
    CHECK(std::abs(zeros / many - 0.25) < four_nines * std::sqrt(0.25 * 0.75 / many));
    const auto dx = tape.gradient(y, x);
    for (std::int64_t i = 0; i < many; ++i) CHECK_UNARY(dx.data()[i] == (y.data()[i] == 0 ? 0 : 1 / 0.75));
    CHECK(tg::dropout(x, 0).to_vector() == x.to_vector());
    CHECK(message_of([&] { tg::dropout(x, 1); }).find("dropout: rate must lie in [0, 1): f64[20000]") == 0);
}

TEST_CASE("random: what does not make sense is refused") {
    const tensor<float> x = tg::zeros<float>({2});
    CHECK(message_of([&] { tg::random::uniform_like(x, {1, 1}); }) == "random::uniform: low must lie below high");
    CHECK(message_of([&] {
              tg::random::normal_like(x, {0, -1});
          }) == "random::normal: the deviation must not be negative");
    CHECK(message_of([&] { tg::random::exponential_like(x, 0); }) == "random::exponential: the rate must be positive");
    CHECK(message_of([&] { tg::random::bernoulli_like(x, 1.5); }) ==
          "random::bernoulli: the probability must lie in [0, 1]");
    CHECK(message_of([&] { tg::random::integers(x, {2}, 3, 3); }) == "random::integers: low must lie below high");
    CHECK(message_of([&] { tg::random::integers(x, {2}, 0, 1ll << 40); }) ==
          "random::integers: the range exceeds the element type");
    CHECK(message_of([&] { tg::random::normal(x, {-2}); }).find("an extent is negative") != std::string::npos);
}

} // namespace random_test
