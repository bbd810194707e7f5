#include <tapegraph/profile.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace counters_test {

namespace tg = tapegraph;
using tg::profiling::counter;

TEST_CASE("counters count, and unavailable ones give the reason") {
    const tg::profiling::counters open;
    const auto before = open.read();
    std::vector<char> fresh(std::size_t{1} << 24);
    for (std::size_t i = 0; i < fresh.size(); i += 4096) fresh[i] = 1;
    volatile double sum = 0;
    for (int i = 0; i < 1000000; ++i) sum = sum + fresh[static_cast<std::size_t>(i % 4096)];
    const auto counted = open.read() - before;
    for (int i = 0; i < tg::profiling::counter_count; ++i) {
        const auto c = static_cast<counter>(i);
        INFO(tg::profiling::name_of(c), " ", open.missing(c));
        CHECK(open.available(c) == open.missing(c).empty());
        if (open.available(c)) {
            CHECK(counted[c] >= 0);
        } else {
            CHECK(open.missing(c).starts_with("not available: "));
            CHECK(counted[c] == 0);
        }
    }
    if (open.available(counter::task_clock)) CHECK(counted[counter::task_clock] > 1e5); // nanoseconds
    if (open.available(counter::instructions)) CHECK(counted[counter::instructions] > 1e6);
}

TEST_CASE("counters in a profile") {
    const auto x = tg::ones<float>({64, 64});
    const auto product = [&] { const tg::tensor<float> y = matmul(x, x); };
    tg::profile_result r = tg::profile(product, {.steps = 2, .peak_flops = 1, .bandwidth = 1, .counters = true});
    CHECK(r.counted);
    REQUIRE(r.calls.size() == 1);
    const std::string csv = r.csv(), text = r.text();
    CHECK(csv.find("live_bytes,cycles,instructions,cache_misses,task_clock_ns,page_faults\n") != std::string::npos);
    CHECK(text.find("counters per step") != std::string::npos);
    const bool timed = r.missing_counters.find("task_clock_ns") == std::string::npos;
    if (timed) CHECK(r.calls[0].counted[counter::task_clock] > 0);
    CHECK((text.find(", task_clock_ns ") != std::string::npos) == timed);
    // A counter that is missing is an empty field.
    r.missing_counters = "page_faults: not available: because\n";
    CHECK(r.csv().ends_with(",\n"));
    CHECK(r.text().find("page_faults: not available: because\n") != std::string::npos);

    r = tg::profile(product, {.steps = 2, .peak_flops = 1, .bandwidth = 1});
    CHECK_FALSE(r.counted);
    CHECK(r.csv().find("cycles") == std::string::npos);
}

} // namespace counters_test
