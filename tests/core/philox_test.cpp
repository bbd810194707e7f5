#include <doctest/doctest.h>

#include <tapegraph/core/philox.hpp>
#include <tapegraph/cpu/isa.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace {

using tapegraph::philox4x32;
namespace random = tapegraph::random;
namespace cpu = tapegraph::cpu;

using words = std::array<std::uint32_t, 4>;

// The known-answer vectors published with Random123.
static_assert(philox4x32::block({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32::block({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32::block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

static_assert(random::uniform01<float>(0) == 0 && random::uniform01<float>(0xffffffffu) == 1 - 0x1p-24f);
static_assert(random::uniform01<double>(0, 0) == 0 && random::uniform01<double>(0xffffffffu, 0xffffffffu) == 1 - 0x1p-53);
static_assert(random::uniform01<double>(0x80000000u, 0) == 0.5 && random::uniform01<double>(0, 0x20) == 0x1p-53);

struct uniform_body {
    template <class Isa, class T>
    TG_INLINE static void run(T* out, std::int64_t first, std::int64_t count) {
        random::fill_uniform(out, first, count, 42, 7, 3);
    }
};
struct normal_body {
    template <class Isa, class T>
    TG_INLINE static void run(T* out, std::int64_t first, std::int64_t count) {
        random::fill_normal(out, first, count, 42, 7, 3);
    }
};

template <class Body, class T>
std::vector<T> numbers(std::int64_t count, std::int64_t first = 0) {
    std::vector<T> x(static_cast<std::size_t>(count));
    cpu::dispatch<Body>(x.data(), first, count);
    return x;
}

} // namespace

TEST_CASE_TEMPLATE("philox: a fill gives the addressed elements on every instruction set", T, float, double) {
    const auto before = cpu::active_instruction_set();
    for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        // 2^34 - 4 lets the low word of the block number of float wrap in the middle of a tile.
        for (const std::int64_t first : {std::int64_t{0}, std::int64_t{3}, (std::int64_t{1} << 34) - 101}) {
            const auto u = numbers<uniform_body, T>(1009, first), n = numbers<normal_body, T>(1009, first);
            int different = 0;
            for (std::size_t i = 0; i < u.size(); ++i) {
                const auto index = static_cast<std::uint64_t>(first) + i;
                different += u[i] != random::uniform_at<T>(42, 7, 3, index);
                different += n[i] != random::normal_at<T>(42, 7, 3, index);
            }
            CHECK(different == 0);
        }
    }
    cpu::set_instruction_set(before);
}

TEST_CASE_TEMPLATE("philox: a fill does not depend on how it is cut", T, float, double) {
    const std::int64_t count = 2003;
    const auto u = numbers<uniform_body, T>(count), n = numbers<normal_body, T>(count);
    for (const std::int64_t chunk : {1, 2, 3, 5, 64, 257, 1000}) {
        std::vector<T> cut_u, cut_n;
        for (std::int64_t i = 0; i < count; i += chunk) {
            const auto size = chunk < count - i ? chunk : count - i;
            for (const T x : numbers<uniform_body, T>(size, i)) cut_u.push_back(x);
            for (const T x : numbers<normal_body, T>(size, i)) cut_n.push_back(x);
        }
        CHECK(cut_u == u);
        CHECK(cut_n == n);
    }
    CHECK(numbers<uniform_body, T>(0).empty());
}

TEST_CASE("philox: seed, step, ordinal and element all separate streams") {
    std::set<std::tuple<double, double>> seen; // 106 random bits, so equal pairs mean equal counters
    int count = 0;
    const std::uint64_t wide[] = {0, 1, 0xffff, 0x10000, 0xffffffff, 0x100000000};
    for (const auto seed : wide)
        for (const auto step : wide)
            for (const std::uint32_t ordinal : {0u, 1u, 0xffffu, 0x10000u, 0xffffffffu})
                for (const auto block : wide) {
                    seen.insert({random::uniform_at<double>(seed, step, ordinal, 2 * block),
                                 random::uniform_at<double>(seed, step, ordinal, 2 * block + 1)});
                    ++count;
                }
    CHECK(static_cast<int>(seen.size()) == count);
}

TEST_CASE_TEMPLATE("philox: uniform numbers have the moments and the histogram of the uniform distribution", T, float, double) {
    const std::int64_t count = 1 << 18;
    const auto x = numbers<uniform_body, T>(count);
    constexpr int bins = 64;
    int histogram[bins] = {};
    double sum = 0, square = 0, lag = 0;
    bool inside = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
        inside = inside && x[i] >= 0 && x[i] < 1;
        const double d = static_cast<double>(x[i]) - 0.5;
        sum += d;
        square += d * d;
        if (i > 0) lag += d * (static_cast<double>(x[i - 1]) - 0.5);
        ++histogram[static_cast<int>(x[i] * bins)];
    }
    REQUIRE(inside);
    // Five standard errors: sqrt(1/12), sqrt(1/180) and 1/12, each over sqrt(count) = 512.
    CHECK(std::fabs(sum / count) < 5 * 0.2887 / 512);
    CHECK(std::fabs(square / count - 1.0 / 12) < 5 * 0.0745 / 512);
    CHECK(std::fabs(lag / count) < 5 * 0.0833 / 512);
    double chi = 0;
    const double expected = static_cast<double>(count) / bins;
    for (const int h : histogram) chi += (h - expected) * (h - expected) / expected;
    // 63 degrees of freedom: mean 63, standard deviation 11.2; the seed is fixed, so this either always passes or never.
    CHECK(chi > 25);
    CHECK(chi < 115);
}

TEST_CASE_TEMPLATE("philox: normal numbers have the moments of the normal distribution", T, float, double) {
    const std::int64_t count = 1 << 18;
    const auto x = numbers<normal_body, T>(count);
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, pair = 0, beyond = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double d = static_cast<double>(x[i]);
        m1 += d;
        m2 += d * d;
        m3 += d * d * d;
        m4 += d * d * d * d;
        if (i % 2 == 1) pair += d * static_cast<double>(x[i - 1]);
        beyond += std::fabs(d) > 1.959964;
    }
    // Five standard errors; the variances of x^k are 1, 2, 15 and 96, of the share beyond 1.96 it is 0.05 * 0.95.
    CHECK(std::fabs(m1 / count) < 5 * 1.0 / 512);
    CHECK(std::fabs(m2 / count - 1) < 5 * 1.4142 / 512);
    CHECK(std::fabs(m3 / count) < 5 * 3.873 / 512);
    CHECK(std::fabs(m4 / count - 3) < 5 * 9.798 / 512);
    CHECK(std::fabs(pair / (count / 2)) < 5 * 1.4142 / 512);
    CHECK(std::fabs(beyond / count - 0.05) < 5 * 0.218 / 512);
}

TEST_CASE("philox: Box-Muller is finite at the ends of its arguments") {
    float a = 0, b = 0;
    random::box_muller(1 - 0x1p-24f, 0.0f, a, b);
    CHECK(a == doctest::Approx(5.76811)); // sqrt(48 ln 2)
    random::box_muller(0.0f, 0.25f, a, b);
    CHECK(a == 0);
    CHECK(b == 0);
}
