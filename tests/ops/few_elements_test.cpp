#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

/// Kernels that take a shorter way where there are few elements: the bits are those of the same elements among many.

namespace few_elements_test {

namespace tg = tapegraph;
using tensor = tg::tensor<double>;

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr double denormal = std::numeric_limits<double>::denorm_min();

bool same_bits(double a, double b) {
    if (a != a || b != b) return a != a && b != b;
    return std::bit_cast<std::int64_t>(a) == std::bit_cast<std::int64_t>(b);
}
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    bool same = a.size() == b.size();
    for (std::size_t i = 0; same && i < a.size(); ++i) same = same_bits(a[i], b[i]);
    return same;
}

/// n numbers of (0.25, 1.75) and their negatives, some of them replaced by `special`.
std::vector<double> numbers(std::int64_t n, std::uint32_t seed, const std::vector<double>& special = {}) {
    std::vector<double> x;
    std::uint32_t state = seed * 2654435761u + 1;
    for (std::int64_t i = 0; i < n; ++i) {
        state = state * 1664525u + 1013904223u;
        const double size = 0.25 + 1.5 * static_cast<double>(state >> 8) / 16777216;
        x.push_back((state & 64) != 0 ? size : -size);
        if (!special.empty() && (state >> 13) % 5 == 0) x.back() = special[(state >> 17) % special.size()];
    }
    return x;
}
/// `count` rows, of which the last is x.
tensor below_others(const std::vector<double>& x, std::int64_t count) {
    const auto n = static_cast<std::int64_t>(x.size());
    std::vector<double> all = numbers((count - 1) * n, 77);
    all.insert(all.end(), x.begin(), x.end());
    return tensor(all, {count, n});
}
std::vector<double> last_row(const tensor& t) {
    const auto all = t.to_vector();
    return {all.end() - static_cast<std::ptrdiff_t>(t.shape()[1].value), all.end()};
}

const std::vector<std::vector<double>> specials{{}, {0, -0.0}, {inf}, {-inf, inf}, {nan}, {-0.0}};

TEST_CASE("reductions of all elements") {
    for (std::int64_t n : {1, 2, 3, 7, 8, 9, 31, 100, 255, 256, 257, 300})
        for (const auto& special : specials) {
            CAPTURE(n);
            const auto x = numbers(n, static_cast<std::uint32_t>(n), special);
            const tensor one(x), many = below_others(x, 5);
            CHECK(same_bits(tensor(sum(one)).item(), sum(many, 1).to_vector()[4]));
            CHECK(same_bits(tensor(prod(one)).item(), prod(many, 1).to_vector()[4]));
            CHECK(same_bits(tensor(max(one)).item(), max(many, 1).to_vector()[4]));
            CHECK(same_bits(tensor(min(one)).item(), min(many, 1).to_vector()[4]));
            // of formulas, all of whose operands have the shape; with a number; with an operand that is broadcast
            CHECK(same_bits(tensor(sum(one * one - exp(one))).item(), sum(many * many - exp(many), 1).to_vector()[4]));
            CHECK(same_bits(tensor(sum(3 * one)).item(), sum(3 * many, 1).to_vector()[4]));
            const tensor c{0.1};
            CHECK(same_bits(tensor(sum(one * c)).item(), sum(many * c, 1).to_vector()[4]));
            const tensor column(x, {n, 1}), deep(x, {1, n, 1});
            CHECK(same_bits(tensor(sum(column, 0)).item(), sum(many, 1).to_vector()[4]));
            CHECK(same_bits(tensor(sum(deep, 1)).item(), sum(many, 1).to_vector()[4]));
        }
}

TEST_CASE("the gradient of a product") {
    const std::vector<std::vector<double>> values{
        {},       {0},        {0, -0.0}, {inf},      {nan},        {1e200}, {1e-200}, {1e200, 1e-200}, {1e100},
        {1e-100}, {denormal}, {0x1p219}, {0x1p-219}, {0x1p300, 0}, {1e13},  {1e-13},  {inf, 0}};
    const auto f = [](const auto& x, const auto& u) { return sum(u * prod(x, 1)); };
    for (std::int64_t n : {1, 2, 5, 16, 31, 32, 33})
        for (const auto& special : values)
            for (double seed : {1.0, -0.75, 0.0, 1e-300, 1e300, inf}) {
                CAPTURE(n);
                CAPTURE(seed);
                const auto x = numbers(n, static_cast<std::uint32_t>(n), special);
                const auto one =
                    tg::gradient([&](const auto& each) { return f(each, tensor{seed}); })(tensor(x, {1, n}));
                std::vector<double> u(40, 1.0);
                u.back() = seed;
                const auto many =
                    tg::gradient([&](const auto& each) { return f(each, tensor(u)); })(below_others(x, 40));
                CHECK(same_bits(one.to_vector(), last_row(many)));
            }
}

TEST_CASE("sums of tensors that are placed along an axis") {
    // The same rows as often as makes them many elements.
    struct part {
        std::int64_t begin, width;
    };
    const std::vector<std::vector<part>> cases{
        {{0, 5}, {2, 5}},         {{0, 7}, {0, 7}}, {{1, 3}, {4, 2}}, {{2, 2}, {0, 7}, {3, 4}},
        {{0, 0}, {3, 4}, {3, 1}}, {{3, 2}},         {{0, 7}}};
    for (const auto& parts : cases)
        for (const auto& special : specials) {
            const int count = static_cast<int>(parts.size());
            const auto run = [&](std::int64_t rows) {
                std::vector<std::vector<double>> memory;
                std::vector<tg::buffer_view> in;
                std::vector<std::int64_t> begin;
                for (const part& p : parts) {
                    const auto row = numbers(p.width, static_cast<std::uint32_t>(p.begin + 3), special);
                    memory.emplace_back();
                    for (std::int64_t r = 0; r < rows; ++r)
                        memory.back().insert(memory.back().end(), row.begin(), row.end());
                }
                for (std::size_t k = 0; k < parts.size(); ++k) {
                    in.push_back({memory[k].data(), tg::dtype::f64, 0, 1, 2, {rows, parts[k].width}});
                    begin.push_back(parts[k].begin);
                }
                std::vector<double> result(static_cast<std::size_t>(rows * 7), nan);
                const tg::buffer_view out{result.data(), tg::dtype::f64, 0, 1, 2, {rows, 7}};
                tg::cpu::placed_sum<double>(in.data(), begin.data(), count, 1, out);
                return result;
            };
            const auto many = run(100);
            const std::vector<double> first(many.begin(), many.begin() + 7);
            CHECK(same_bits(run(1), first));
            const auto some = run(3);
            CHECK(same_bits({some.end() - 7, some.end()}, first));
        }
}

} // namespace few_elements_test
