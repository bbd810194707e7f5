#include <tapegraph/ops/reduction/cpu_softmax.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace softmax_test {

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;
using tg::cpu::softmax_detail::backward;
using tg::cpu::softmax_detail::forward;

struct settings_guard {
    ~settings_guard() {
        cpu::set_instruction_set(cpu::supported_instruction_set());
        tg::set_thread_count(0);
    }
};

/// [outer, length, inner]: single elements, rows that share a vector, a block, more; few long rows in parts; columns.
struct box {
    std::int64_t outer, length, inner;
    std::int64_t size() const { return outer * length * inner; }
    /// f(line's elements) for every line.
    template <class F>
    void each_line(const F& f) const {
        for (std::int64_t o = 0; o < outer; ++o)
            for (std::int64_t c = 0; c < inner; ++c) {
                std::vector<std::size_t> at;
                for (std::int64_t k = 0; k < length; ++k)
                    at.push_back(static_cast<std::size_t>((o * length + k) * inner + c));
                f(at);
            }
    }
};
const box boxes[]{{1, 1, 1},      {5, 1, 1},      {3, 7, 1},    {7, 8, 1},    {1003, 10, 1}, {13, 17, 1},
                  {5, 64, 1},     {31, 257, 1},   {1, 2048, 1}, {3, 2049, 1}, {2, 5003, 1},  {17, 4099, 1},
                  {2, 65551, 1},  {1, 131101, 1}, {1, 1, 3},    {2, 5, 3},    {3, 37, 64},   {2, 19, 65},
                  {1, 1000, 131}, {0, 5, 1},      {5, 0, 1},    {2, 0, 3},    {0, 3, 2}};

template <class T>
std::vector<T> numbers(std::int64_t size, unsigned seed) {
    std::vector<T> x(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t mixed = (i + seed) * 2654435761u ^ (i + 7 * seed) * 40503u;
        x[i] = static_cast<T>((mixed >> 5) % 16384) / T(1024) - T(8);
    }
    return x;
}

/// The same bits on every instruction set, by any number of threads, in place too.
template <class Way, class T>
std::vector<T> same_everywhere(const box& b, const std::vector<T>& x, const std::vector<T>& y) {
    std::vector<T> first;
    int different = 0;
    for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
        for (int threads : {1, 2, 3, 7})
            for (bool in_place : {false, true}) {
                cpu::set_instruction_set(set);
                tg::set_thread_count(threads);
                std::vector<T> to = in_place ? x : std::vector<T>(x.size(), T(-77));
                cpu::along_lines<Way>(b.outer, b.length, b.inner, in_place ? to.data() : x.data(), y.data(), to.data());
                if (first.empty()) first = to;
                different += !to.empty() && std::memcmp(first.data(), to.data(), to.size() * sizeof(T)) != 0;
            }
    CHECK(different == 0);
    return first;
}

/// The largest |got - want| / (what an error of half a unit of each operation may come to).
template <class T>
struct worst {
    long double error = 0;
    void add(T got, long double want, long double scale) {
        const long double bound = std::numeric_limits<T>::epsilon() * scale + std::numeric_limits<T>::min();
        error = std::max(error, std::abs(static_cast<long double>(got) - want) / bound);
    }
};

} // namespace

TEST_CASE_TEMPLATE("softmax, its logarithm and gradients: bits and accuracy over shapes", T, float, double) {
    settings_guard guard;
    for (const box& b : boxes) {
        CAPTURE(b.outer);
        CAPTURE(b.length);
        CAPTURE(b.inner);
        const auto x = numbers<T>(b.size(), 1), dy = numbers<T>(b.size(), 2);
        const auto p = same_everywhere<forward<false>>(b, x, x);
        const auto l = same_everywhere<forward<true>>(b, x, x);
        const auto dp = same_everywhere<backward<false>>(b, dy, p);
        const auto dl = same_everywhere<backward<true>>(b, dy, l);
        worst<T> of_p, of_l, of_dp, of_dl;
        b.each_line([&](const std::vector<std::size_t>& line) {
            if (line.empty()) return;
            long double largest = x[line[0]], sum = 0, with = 0, all = 0, size = 0, size_with = 0;
            for (const auto i : line) largest = std::max<long double>(largest, x[i]);
            for (const auto i : line) sum += std::exp(x[i] - largest);
            for (const auto i : line) {
                with += static_cast<long double>(dy[i]) * p[i],
                    size_with += std::abs(static_cast<long double>(dy[i]) * p[i]);
                all += dy[i], size += std::abs(static_cast<long double>(dy[i]));
            }
            for (const auto i : line) {
                const long double shifted = x[i] - largest, q = std::exp(shifted) / sum;
                of_p.add(p[i], q, q);
                of_l.add(l[i], shifted - std::log(sum), 1 + std::abs(shifted) + std::log(sum));
                // By the p and l that were given: these errors are the function's own.
                of_dp.add(dp[i], p[i] * (dy[i] - with), p[i] * (std::abs(static_cast<long double>(dy[i])) + size_with));
                const long double e = std::exp(static_cast<long double>(l[i]));
                of_dl.add(dl[i], dy[i] - e * all, std::abs(static_cast<long double>(dy[i])) + e * size);
            }
        });
        // x - max is exact here. Two roundings and exp's unit, one for the sum, whose runs of up to 32 values in a lane of T
        // err by less than their number of halves of a unit, in fact by a few.
        CHECK(of_p.error <= 6);
        CHECK(of_l.error <= 6);
        CHECK(of_dp.error <= 6);
        CHECK(of_dl.error <= 6);
    }
}

TEST_CASE("softmax of what is no number") {
    settings_guard guard;
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    for (const std::int64_t length : {5, 3000}) {
        CAPTURE(length);
        const auto made = [&](double at_two, double elsewhere) {
            std::vector<double> x(static_cast<std::size_t>(length), elsewhere), y = x;
            x[2] = at_two;
            cpu::along_lines<forward<false>>(1, length, 1, x.data(), x.data(), y.data());
            std::vector<double> in_place = x;
            cpu::along_lines<forward<false>>(1, length, 1, in_place.data(), in_place.data(), in_place.data());
            CHECK(std::memcmp(y.data(), in_place.data(), y.size() * sizeof(double)) == 0);
            return y;
        };
        const auto one = made(1000, -1000), masked = made(-inf, 0);
        CHECK(one[2] == 1);
        CHECK(one[0] == 0);
        CHECK(masked[2] == 0);
        CHECK(masked[0] == 1.0 / static_cast<double>(length - 1));
        for (const auto& y : {made(nan, 0), made(inf, 0), made(-inf, -inf)})
            CHECK(std::all_of(y.begin(), y.end(), [](double v) { return std::isnan(v); }));
    }
    // Columns say the same as rows of two.
    const double x[]{inf, nan, -inf, 0, 1, 0, -inf, -inf}; // two rows of four
    double y[8];
    cpu::along_lines<forward<false>>(1, 2, 4, x, x, y);
    CHECK(std::isnan(y[0]));
    CHECK(std::isnan(y[1]));
    CHECK(std::isnan(y[2]));
    CHECK(y[3] == 1);
    CHECK(y[7] == 0);
}

} // namespace softmax_test
