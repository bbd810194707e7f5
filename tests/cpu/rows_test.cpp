#include <support/settings_guard.hpp>

#include <tapegraph/ops/gather/cpu_rows.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace rows_test {

/// Sums over rows of equal index, and rows written into a table, against loops.

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;
using std::int64_t;
using support::settings_guard;

template <class F>
void on_every_setting(F f) {
    for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
        for (int threads : {1, 2, 3}) {
            CAPTURE(threads);
            cpu::set_instruction_set(set);
            tg::set_thread_count(threads);
            f();
        }
}

/// Of different magnitudes, so that another order of addition gives other bits.
template <class T>
std::vector<T> uneven(int64_t n) {
    std::vector<T> v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<T>(
            std::ldexp(static_cast<double>((i * 2654435761u >> 7) % 1000) - 500, static_cast<int>(i % 7) * 3));
    return v;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T, class Index>
std::vector<T> sums(const std::vector<Index>& index, int64_t width, const std::vector<T>& rows) {
    std::vector<T> out(rows.size(), T(-77));
    const auto count = static_cast<int64_t>(index.size());
    const std::size_t bytes = cpu::equal_rows_workspace_bytes<Index>(count);
    std::vector<std::uint64_t> scratch((bytes + 7) / 8 + 1, 0x5C5C5C5C5C5C5C5Cu);
    cpu::sum_equal_rows(count, width, index.data(), rows.data(), out.data(), scratch.data());
    CHECK(scratch[(bytes + 7) / 8] == 0x5C5C5C5C5C5C5C5Cu);
    return out;
}

template <class T, class Index>
void check_sums(const std::vector<Index>& index, int64_t width) {
    const auto rows = uneven<T>(static_cast<int64_t>(index.size()) * width);
    std::vector<T> expected(rows.size());
    const auto at = [&](std::size_t i, int64_t c) {
        return i * static_cast<std::size_t>(width) + static_cast<std::size_t>(c);
    };
    for (std::size_t i = 0; i < index.size(); ++i)
        for (int64_t c = 0; c < width; ++c) {
            T sum(0);
            for (std::size_t k = 0; k < index.size(); ++k)
                if (index[k] == index[i]) sum += rows[at(k, c)];
            expected[at(i, c)] = sum;
        }
    on_every_setting([&] { CHECK(same_bits(sums(index, width, rows), expected)); });
}

template <class Index>
std::vector<Index> picks(int64_t n, int64_t limit) {
    std::vector<Index> v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<Index>((i * i * 31 + i * 17 + 5) % static_cast<std::size_t>(limit));
    return v;
}

} // namespace

TEST_CASE_TEMPLATE("sum_equal_rows: each row gets the sum over its index, in the order of positions", Index,
                   std::int32_t, std::int64_t) {
    const settings_guard guard;
    for (const int64_t width : {0, 1, 3, 17, 128})
        for (const int64_t count : {0, 1, 2, 47, 48, 49, 313}) {
            CAPTURE(width);
            CAPTURE(count);
            check_sums<float>(picks<Index>(count, 7), width);
            check_sums<double>(picks<Index>(count, 1000), width);
            check_sums<float>(picks<Index>(count, 1), width); // all equal
        }
    check_sums<float>(picks<Index>(700, 90), 131); // several threads, by columns
    check_sums<float>(picks<Index>(1500, 40), 29); // and by places, in whose middle runs lie
    check_sums<float>(
        std::vector<Index>{-1, 5, -1, std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min(), 5}, 3);
}

TEST_CASE("sum_equal_rows begins with zero, as scatter_add does: no -0 remains") {
    const std::vector<float> rows{-0.0f, 1.0f};
    CHECK(!std::signbit(sums(std::vector<std::int32_t>{3, 2}, 1, rows)[0]));
}

TEST_CASE_TEMPLATE("assign_rows writes the rows named and no others", Index, std::int32_t, std::int64_t) {
    const settings_guard guard;
    for (const int64_t width : {0, 1, 3, 17, 128, 1100})
        for (const int64_t count : {0, 1, 9, 301}) {
            CAPTURE(width);
            CAPTURE(count);
            constexpr int64_t n = 53;
            const auto index = picks<Index>(count, n);
            const auto before = uneven<float>(n * width);
            std::vector<float> rows(static_cast<std::size_t>(count * width)), expected = before;
            for (int64_t i = 0; i < count; ++i)
                for (int64_t c = 0; c < width; ++c) { // equal for equal indices
                    const auto row = static_cast<int64_t>(index[static_cast<std::size_t>(i)]);
                    expected[static_cast<std::size_t>(row * width + c)] =
                        rows[static_cast<std::size_t>(i * width + c)] = static_cast<float>(row * 10000 + c);
                }
            on_every_setting([&] {
                auto table = before;
                cpu::assign_rows(n, width, sizeof(float), count, index.data(), rows.data(), table.data());
                CHECK(same_bits(table, expected));
            });
        }
}

TEST_CASE("assign_rows: an index outside the table is an error, and nothing is written") {
    const std::vector<double> before{1, 2, 3}, rows{7, 8};
    for (const std::int32_t bad : {-1, 3}) {
        auto table = before;
        const std::int32_t index[]{0, bad};
        CHECK_THROWS_WITH_AS(cpu::assign_rows(3, 1, sizeof(double), 2, index, rows.data(), table.data()),
                             doctest::Contains("assign_rows: index "), tg::range_error);
        CHECK(table == before);
    }
}

} // namespace rows_test
