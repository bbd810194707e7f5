#include <tapegraph/ops/reduction/cpu_normalization.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace normalization_test {

/// Kernels of normalization: the same bits everywhere, and accuracy against long double.

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

struct settings_guard {
    ~settings_guard() {
        cpu::set_instruction_set(cpu::supported_instruction_set());
        tg::set_thread_count(0);
    }
};

// [examples, records, rows, groups, in_group / sharing]: lines shorter and longer than lanes, a tile, a block of lines; rows
// packed, in blocks, wider than a run, with columns that fill no vector; nothing at all.
const cpu::normalized_shape shapes[]{{1, 7, 1, 1, 13},     {1, 300, 1, 1, 300}, {1, 2, 1, 1, 5003},  {1, 1, 1, 1, 1},
                                     {1, 3, 1, 4, 17},     {1, 3, 1, 4, 5},     {1, 5, 49, 3, 2},    {1, 5, 49, 32, 2},
                                     {1, 2, 301, 1, 1100}, {1, 20, 9, 700, 1},  {1, 1, 129, 200, 1}, {1, 2, 67, 32, 5},
                                     {1, 700, 2, 2, 3},    {6, 3, 5, 2, 3, 3},  {6, 3, 1, 2, 20, 2}, {2, 2, 1000, 1, 1},
                                     {1, 2, 65, 1, 3},     {1, 1500, 1, 1, 64}, {1, 3, 0, 2, 2},     {1, 0, 3, 2, 2},
                                     {1, 3, 3, 1, 0},      {0, 3, 3, 1, 2},     {1, 4096, 1, 16, 2}};

template <class T>
std::vector<T> numbers(std::int64_t size, unsigned seed, double shift) {
    std::vector<T> x(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t mixed = (i + seed) * 2654435761u ^ (i + 7 * seed) * 40503u;
        x[i] = static_cast<T>(static_cast<double>((mixed >> 5) % 16384) / 4096 - 2 + shift);
    }
    return x;
}

template <class T>
struct results {
    std::vector<T> y, sums, dx;
    bool operator==(const results& b) const {
        const auto same = [](const std::vector<T>& v, const std::vector<T>& w) {
            return v.size() == w.size() && (v.empty() || std::memcmp(v.data(), w.data(), v.size() * sizeof(T)) == 0);
        };
        return same(y, b.y) && same(sums, b.sums) && same(dx, b.dx);
    }
};
template <class T>
struct operands {
    cpu::normalized_shape s;
    std::vector<T> x, dy, gamma, beta;
    explicit operands(const cpu::normalized_shape& shape, double shift)
        : s(shape),
          x(numbers<T>(s.elements(), 1, shift)),
          dy(numbers<T>(s.elements(), 2, 0.25)),
          gamma(numbers<T>(s.examples / s.sharing * s.channels(), 3, 1)),
          beta(numbers<T>(s.examples / s.sharing * s.channels(), 4, 0)) {}
    results<T> run() const {
        results<T> r;
        const auto size = static_cast<std::size_t>(s.elements());
        r.y.assign(size, T(-77));
        r.dx.assign(size, T(-77));
        r.sums.assign(static_cast<std::size_t>(s.examples * s.sums()), T(-77));
        std::vector<double> workspace(cpu::normalization_sums_bytes<T>(s) / sizeof(double) + 1, -77.0);
        cpu::normalize(s, x.data(), gamma.data(), beta.data(), r.y.data());
        cpu::normalization_sums(s, dy.data(), x.data(), gamma.data(), r.sums.data(), workspace.data());
        cpu::normalization_gradient(s, dy.data(), x.data(), gamma.data(), static_cast<const T*>(r.sums.data()),
                                    r.dx.data());
        return r;
    }
};

/// The largest errors, in epsilons of what the numbers' sizes are.
struct errors {
    long double y = 0, dx = 0, product = 0, plain = 0;
};
template <class T>
errors errors_of(const operands<T>& o, const results<T>& r) {
    const cpu::normalized_shape& s = o.s;
    constexpr long double epsilon = std::numeric_limits<T>::epsilon();
    errors worst;
    const auto at = [](const std::vector<T>& v, std::int64_t i) {
        return static_cast<long double>(v[static_cast<std::size_t>(i)]);
    };
    const std::int64_t channels = s.channels();
    std::vector<long double> products(static_cast<std::size_t>(s.examples * channels)), plains = products,
                                                                                        sizes = products;
    for (std::int64_t number = 0; number < s.examples * s.records * s.groups; ++number) {
        const std::int64_t group = number % s.groups, record = number / s.groups, example = record / s.records;
        const auto each = [&](const auto& f) {
            for (std::int64_t row = 0; row < s.rows; ++row)
                for (std::int64_t c = group * s.in_group; c < (group + 1) * s.in_group; ++c)
                    f((record * s.rows + row) * channels + c, c);
        };
        const auto gamma = [&](std::int64_t c) { return at(o.gamma, example / s.sharing * channels + c); };
        const long double size = static_cast<long double>(s.rows * s.in_group);
        long double mean = 0, power = 0, plain = 0, product = 0;
        if (s.centered) each([&](std::int64_t i, std::int64_t) { mean += at(o.x, i) / size; });
        each([&](std::int64_t i, std::int64_t) { power += (at(o.x, i) - mean) * (at(o.x, i) - mean) / size; });
        const long double inverse = 1 / std::sqrt(power + static_cast<long double>(s.epsilon));
        each([&](std::int64_t i, std::int64_t c) {
            const long double normal = (at(o.x, i) - mean) * inverse, d = at(o.dy, i);
            const auto place = static_cast<std::size_t>(example * channels + c);
            plain += d * gamma(c) / size;
            product += d * gamma(c) * normal / size;
            products[place] += d * normal;
            plains[place] += d;
            sizes[place] += std::abs(d) * (1 + std::abs(normal));
            const long double beta = at(o.beta, example / s.sharing * channels + c);
            worst.y = std::max(worst.y, std::abs(at(r.y, i) - (normal * gamma(c) + beta)) / epsilon);
        });
        if (!s.centered) plain = 0;
        each([&](std::int64_t i, std::int64_t c) {
            const long double normal = (at(o.x, i) - mean) * inverse;
            const long double want = inverse * (at(o.dy, i) * gamma(c) - plain - normal * product);
            worst.dx = std::max(worst.dx, std::abs(at(r.dx, i) - want) / (epsilon * inverse));
        });
    }
    for (std::size_t p = 0; p < products.size(); ++p) {
        const auto c = static_cast<std::int64_t>(p) % channels, example = static_cast<std::int64_t>(p) / channels;
        const long double scale = epsilon * (sizes[p] + 1);
        worst.product = std::max(worst.product, std::abs(at(r.sums, example * s.sums() + c) - products[p]) / scale);
        worst.plain =
            std::max(worst.plain, std::abs(at(r.sums, example * s.sums() + channels + c) - plains[p]) / scale);
    }
    return worst;
}

} // namespace

TEST_CASE_TEMPLATE("normalization: bits and accuracy over shapes", T, float, double) {
    settings_guard guard;
    for (const bool centered : {true, false})
        for (cpu::normalized_shape s : shapes) {
            s.centered = centered;
            s.epsilon = 1e-3;
            CAPTURE(s.records);
            CAPTURE(s.rows);
            CAPTURE(s.groups);
            CAPTURE(s.in_group);
            const operands<T> o(s, 0.5);
            std::vector<results<T>> all;
            for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
                for (int threads : {1, 2, 3, 7}) {
                    cpu::set_instruction_set(set);
                    tg::set_thread_count(threads);
                    all.push_back(o.run());
                }
            CHECK(std::all_of(all.begin(), all.end(), [&](const results<T>& r) { return r == all[0]; }));
            // Numbers of size 1 to 6, from some ten roundings, of which the mean's and the factor's are everybody's; sums also
            // have one for each half of up to 64 numbers added in T, which mostly cancel.
            const errors worst = errors_of(o, all[0]);
            CHECK(worst.y <= 24);
            CHECK(worst.dx <= 48);
            CHECK(worst.product <= 8);
            CHECK(worst.plain <= 8);
        }
}

TEST_CASE("normalization: a large mean costs its own rounding alone") {
    // The mean is rounded to T, which moves all of a group alike: epsilon |mean| / 2, here 2^-24 1000 = 6e-5, and its square
    // changes the variance by less than an epsilon. A variance from sums of squares would be wrong by epsilon mean^2 = 0.06.
    for (cpu::normalized_shape s : {cpu::normalized_shape{1, 3, 1, 1, 700}, {1, 2, 300, 4, 3}}) {
        s.epsilon = 1e-3;
        const operands<float> o(s, 1000);
        CHECK(errors_of(o, o.run()).y * std::numeric_limits<float>::epsilon() <= 4 * 6e-5L);
    }
}

TEST_CASE("normalization of what is no number stays in its group") {
    constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (const float bad : {inf, -inf, nan})
        for (const cpu::normalized_shape& s : {cpu::normalized_shape{1, 3, 1, 2, 40}, {1, 3, 5, 4, 2}}) {
            operands<float> o(s, 0);
            const results<float> good = o.run();
            o.x[0] = bad;
            const results<float> r = o.run();
            for (std::int64_t i = 0; i < s.elements(); ++i) {
                const bool of_group = i / s.record() == 0 && i % s.channels() / s.in_group == 0;
                const auto k = static_cast<std::size_t>(i);
                CHECK(of_group == std::isnan(r.y[k]));
                CHECK((of_group || (r.y[k] == good.y[k] && r.dx[k] == good.dx[k])));
            }
        }
}

} // namespace normalization_test
