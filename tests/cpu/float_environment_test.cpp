#include <tapegraph/cpu/parallel.hpp>

#include <doctest/doctest.h>

#include <cfenv>
#include <limits>
#include <optional>
#include <vector>

/// Denormal numbers may be taken for zero, by the workers of a thread, too; and workers round as their caller does.

namespace float_environment_test {

namespace tg = tapegraph;

namespace {

/// f() on each of so many threads; fewer where the machine gives fewer.
template <class F>
auto on_each(int threads, const F& f) {
    std::vector<std::optional<decltype(f())>> found(static_cast<std::size_t>(threads));
    tg::cpu::detail::run_team(threads, true, tg::cpu::detail::work_of([&](int thread, int) {
                                  found[static_cast<std::size_t>(thread)] = f();
                              }));
    REQUIRE(found[0].has_value());
    std::erase(found, std::nullopt);
    return found;
}

template <class T>
void check(int threads, bool flushed) {
    const auto operand = [] {
        volatile T denormal = std::numeric_limits<T>::denorm_min() * 4, large = 1024;
        return denormal * large;
    };
    const auto result = [] {
        volatile T smallest = std::numeric_limits<T>::min(), half = T(0.5);
        return smallest * half;
    };
    for (const auto found : on_each(threads, operand)) CHECK((found == T(0)) == flushed);
    for (const auto found : on_each(threads, result)) CHECK((found == T(0)) == flushed);
}

double third() {
    volatile double one = 1, three = 3;
    return one / three;
}

} // namespace

TEST_CASE("denormal numbers are kept, or taken for zero by a thread and its workers") {
    CHECK_FALSE(tg::flush_denormals());
    for (const int threads : {1, 2, 3}) {
        check<float>(threads, false);
        check<double>(threads, false);
        if (!tg::set_flush_denormals(true)) return; // a processor without such a mode
        CHECK(tg::flush_denormals());
        check<float>(threads, true);
        check<double>(threads, true);
        tg::set_flush_denormals(false);
        CHECK_FALSE(tg::flush_denormals());
        check<float>(threads, false);
    }
}

TEST_CASE("flushing denormals changes nothing else, and workers round as their caller") {
    const double nearest = third();
    tg::set_flush_denormals(true);
    for (const auto found : on_each(3, third)) CHECK(found == nearest);
    tg::set_flush_denormals(false);
    std::fesetround(FE_UPWARD);
    const auto upward = on_each(3, third);
    std::fesetround(FE_TONEAREST);
    for (const auto found : upward) CHECK(*found > nearest);
    for (const auto found : on_each(3, third)) CHECK(found == nearest);
}

} // namespace float_environment_test
