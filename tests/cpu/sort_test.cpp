#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/ops/ordering/cpu.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace sort_test {

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

struct threads_guard {
    ~threads_guard() { tg::set_thread_count(0); }
};

template <class T, class Index>
void check(std::int64_t outer, std::int64_t length, int levels) {
    const T nan = std::numeric_limits<T>::quiet_NaN(), infinite = std::numeric_limits<T>::infinity();
    std::vector<T> x(static_cast<std::size_t>(outer * length));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto r = i * 2654435761u >> 6;
        x[i] = (static_cast<T>(r % static_cast<std::size_t>(levels)) - T(levels / 2)) * T(0.37);
        if (r % 29 == 0) x[i] = nan;
        if (r % 31 == 0) x[i] = -nan;
        if (r % 37 == 0) x[i] = infinite;
        if (r % 41 == 0) x[i] = -infinite;
        if (r % 13 == 0) x[i] = r % 2 == 0 ? T(0) : -T(0);
        if (r % 43 == 0) x[i] = std::numeric_limits<T>::denorm_min();
    }
    for (bool descending : {false, true}) {
        std::vector<Index> expected(x.size());
        for (std::int64_t o = 0; o < outer; ++o) {
            const auto begin = expected.begin() + o * length;
            std::iota(begin, begin + length, Index{0});
            const T* row = x.data() + o * length;
            std::stable_sort(begin, begin + length, [&](Index a, Index b) {
                if (row[a] != row[a]) return false;
                if (row[b] != row[b]) return true;
                return descending ? row[a] > row[b] : row[a] < row[b];
            });
        }
        for (int threads : {1, 2}) {
            tg::set_thread_count(threads);
            std::vector<std::uint64_t> scratch(cpu::sort_workspace_bytes<T>(outer, length) / 8 + 1, 0x7f7f7f7f7f7f7f7f);
            const std::uint64_t guard = scratch.back();
            std::vector<Index> order(x.size(), Index{-77});
            cpu::argsort_last(outer, length, descending, x.data(), order.data(), scratch.data());
            CHECK(order == expected);
            std::vector<T> y(x.size(), T(-77));
            std::fill(order.begin(), order.end(), Index{-77});
            cpu::sort_last(outer, length, descending, x.data(), y.data(), order.data(), scratch.data());
            CHECK(order == expected);
            std::int64_t wrong = 0;
            for (std::size_t i = 0; i < y.size(); ++i) {
                const T e = x[i / static_cast<std::size_t>(length) * static_cast<std::size_t>(length) +
                              static_cast<std::size_t>(order[i])];
                wrong += !(y[i] == e || (y[i] != y[i] && e != e));
            }
            CHECK(wrong == 0);
            CHECK(scratch.back() == guard);
        }
    }
}

/// The first positions of each row are those of the whole order, by every instruction set. Values have `levels`.
template <class T>
void check_first(std::int64_t length, std::int64_t levels) {
    constexpr std::int64_t outer = 3;
    std::vector<T> x(static_cast<std::size_t>(outer * length));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto r = i * 2654435761u >> 6;
        x[i] = static_cast<T>(r % static_cast<std::size_t>(levels));
        if constexpr (std::is_signed_v<T>)
            if (r % 3 == 0) x[i] = static_cast<T>(-x[i]);
        if constexpr (std::is_floating_point_v<T>) {
            if (r % 29 == 0) x[i] = std::numeric_limits<T>::quiet_NaN();
            if (r % 31 == 0) x[i] = -std::numeric_limits<T>::quiet_NaN();
            if (r % 37 == 0) x[i] = (r % 2 == 0 ? 1 : -1) * std::numeric_limits<T>::infinity();
        } else if (r % 37 == 0) {
            x[i] = r % 2 == 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
        }
    }
    std::vector<std::uint64_t> scratch(cpu::sort_workspace_bytes<T>(outer, length) / 8 + 1);
    for (bool descending : {false, true}) {
        std::vector<std::int32_t> all(x.size());
        cpu::argsort_last(outer, length, descending, x.data(), all.data(), scratch.data());
        for (const std::int64_t first : {1, 2, 10, 63, 64, 65}) {
            if (first > length) continue;
            for (auto set :
                 {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
                if (set > cpu::supported_instruction_set()) continue;
                cpu::set_instruction_set(set);
                std::vector<std::int32_t> some(static_cast<std::size_t>(outer * first), -77);
                cpu::argsort_last(outer, length, descending, x.data(), some.data(), scratch.data(), first);
                std::int64_t wrong = 0;
                for (std::int64_t i = 0; i < outer * first; ++i)
                    wrong += some[static_cast<std::size_t>(i)] !=
                             all[static_cast<std::size_t>(i / first * length + i % first)];
                CHECK(wrong == 0);
            }
            cpu::set_instruction_set(cpu::supported_instruction_set());
        }
    }
}

} // namespace

TEST_CASE_TEMPLATE("argsort_last and sort_last: stable in both directions, NaN last", T, float, double) {
    threads_guard guard;
    for (std::int64_t length : {0, 1, 2, 47, 48, 49, 257, 5003}) {
        check<T, std::int32_t>(3, length, 11);
        check<T, std::int64_t>(1, length, 100000);
    }
    check<T, std::int32_t>(37, 301, 1000);
    check<T, std::int64_t>(5, 20011, 1 << 24);
    check<T, std::int64_t>(0, 5, 10);
}

TEST_CASE_TEMPLATE("argsort_last: the first of each row, among equals the first", T, float, double, std::int32_t,
                   std::int64_t, std::uint8_t) {
    for (const std::int64_t length : {1, 48, 49, 64, 95, 97, 1000, 4099})
        for (const std::int64_t levels : {1, 7, 127}) {
            CAPTURE(length);
            CAPTURE(levels);
            check_first<T>(length, levels);
        }
}

} // namespace sort_test
