#include <support/settings_guard.hpp>

#include <tapegraph/ops/cumulative/cpu.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace scan_test {

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;
using support::settings_guard;

template <class T>
void check(const std::vector<std::int64_t>& extents, int axis) {
    std::int64_t outer = 1, inner = 1;
    const int rank = static_cast<int>(extents.size());
    for (int i = 0; i < rank; ++i)
        if (i != axis) (i < axis ? outer : inner) *= extents[static_cast<std::size_t>(i)];
    const std::int64_t length = extents[static_cast<std::size_t>(axis)];
    std::vector<T> x(static_cast<std::size_t>(outer * inner * length));
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<T>((i * 2654435761u >> 5) % 1024) / T(1024) - T(0.375);
    for (bool exclusive : {false, true})
        for (bool reverse : {false, true}) {
            std::vector<double> expected(x.size());
            for (std::int64_t o = 0; o < outer; ++o)
                for (std::int64_t c = 0; c < inner; ++c) {
                    double sum = 0;
                    for (std::int64_t k = 0; k < length; ++k) {
                        const auto i =
                            static_cast<std::size_t>((o * length + (reverse ? length - 1 - k : k)) * inner + c);
                        if (exclusive) expected[i] = sum;
                        sum += static_cast<double>(x[i]);
                        if (!exclusive) expected[i] = sum;
                    }
                }
            std::vector<T> first;
            for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
                for (int threads : {1, 2})
                    for (bool in_place : {false, true}) {
                        cpu::set_instruction_set(set);
                        tg::set_thread_count(threads);
                        std::vector<T> y = in_place ? x : std::vector<T>(x.size(), T(-77));
                        cpu::cumulative_sum(rank, extents.data(), axis, exclusive, reverse,
                                            in_place ? y.data() : x.data(), y.data());
                        if (first.empty()) first = y;
                        CHECK((y.empty() || std::memcmp(first.data(), y.data(), y.size() * sizeof(T)) == 0));
                    }
            // Sums of multiples of 2^-10 are exact in double, so what remains is one rounding to T.
            std::int64_t wrong = 0;
            for (std::size_t i = 0; i < first.size(); ++i) wrong += first[i] != static_cast<T>(expected[i]);
            CHECK(wrong == 0);
        }
}

} // namespace

TEST_CASE_TEMPLATE("cumulative_sum along every axis", T, float, double) {
    settings_guard guard;
    check<T>({1}, 0);
    check<T>({0}, 0);
    check<T>({17}, 0);
    check<T>({200003}, 0);
    check<T>({3, 70001}, 1);
    check<T>({2, 40009}, 0);
    check<T>({3001, 13}, 1);
    check<T>({7, 5003}, 1);
    for (int axis : {0, 1, 2}) {
        check<T>({5, 7, 3}, axis);
        check<T>({4, 0, 3}, axis);
        check<T>({11, 23, 257}, axis);
    }
}

} // namespace scan_test
