#include <tapegraph/data/counter_random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace counter_random_test {

using tapegraph::data::counter_random;
using tapegraph::data::shuffle_order;

TEST_CASE("a stream is a pure function of seed and number") {
    counter_random first(7, 3), again(7, 3), other_stream(7, 4), other_seed(8, 3);
    const auto x = first.next();
    CHECK(again.next() == x);
    CHECK(other_stream.next() != x);
    CHECK(other_seed.next() != x);
}

TEST_CASE("uniform and normal numbers have the moments they should") {
    counter_random random(1, 0);
    constexpr int n = 100000;
    double sum = 0, square = 0, normal_sum = 0, normal_square = 0;
    for (int i = 0; i < n; ++i) {
        const double u = random.uniform(), z = random.normal();
        REQUIRE((u >= 0 && u < 1));
        sum += u, square += u * u, normal_sum += z, normal_square += z * z;
    }
    // Five standard deviations of the means of n samples: 5 * 0.29 / sqrt(n), 5 / sqrt(n), 5 * sqrt(2 / n).
    CHECK(std::abs(sum / n - 0.5) < 0.0046);
    CHECK(std::abs(square / n - 1.0 / 3) < 0.0048);
    CHECK(std::abs(normal_sum / n) < 0.016);
    CHECK(std::abs(normal_square / n - 1) < 0.023);
}

TEST_CASE("below() reaches every value about as often") {
    counter_random random(3, 1);
    std::array<int, 7> counts{};
    for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
    for (const int count : counts) CHECK(std::abs(count - 10000) < 5 * 93); // five standard deviations
    CHECK(random.below(1) == 0);
    const std::uint64_t large = (std::uint64_t{1} << 63) + 1; // rejects nearly every second draw
    for (int i = 0; i < 100; ++i) REQUIRE(random.below(large) < large);
}

TEST_CASE("shuffling permutes, by seed and epoch alone, every permutation alike") {
    for (const std::size_t n : {0, 1, 2, 101}) {
        std::vector<std::int64_t> order(n), again(n), other(n);
        shuffle_order(5, 1, order);
        std::fill(again.begin(), again.end(), 9); // what was there before does not matter
        shuffle_order(5, 1, again);
        shuffle_order(5, 2, other);
        CHECK(order == again);
        if (n > 2) CHECK(order != other);
        std::sort(order.begin(), order.end());
        for (std::size_t i = 0; i < n; ++i) REQUIRE(order[i] == static_cast<std::int64_t>(i));
    }
    std::array<int, 27> counts{};
    std::vector<std::int64_t> order(3);
    for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) {
        shuffle_order(1, epoch, order);
        ++counts[static_cast<std::size_t>(order[0] * 9 + order[1] * 3 + order[2])];
    }
    CHECK(std::count(counts.begin(), counts.end(), 0) == 21);
    for (const int count : counts)
        if (count > 0) CHECK(std::abs(count - 1000) < 5 * 29); // five standard deviations
}

// By Philox4x32-10, Lemire and Fisher-Yates written down a second time, in Python.
TEST_CASE("the order of a seed never changes between releases") {
    std::vector<std::int64_t> order(8);
    shuffle_order(42, 0, order);
    CHECK(order == std::vector<std::int64_t>{3, 4, 7, 0, 5, 1, 6, 2});
}

} // namespace counter_random_test
