#define TG_SIMT
#include <cuda/calls.hpp>

#include <tapegraph/cuda/effect.cuh>

#include <limits>

/// Checks on the SIMT executor: the CPU's errors, whichever thread sees the fault first.

using namespace tapegraph;
using namespace tapegraph::testing;

TEST_CASE_TEMPLATE("check_finite on a device", T, float, double) {
    using limits = std::numeric_limits<T>;
    using op = check_finite_op<"the weights">;
    const auto check = [](const extents& e, std::int64_t first, T bad, std::int64_t second) {
        CAPTURE(e);
        check_same<op, T>({}, {filled<T>(e, [&](std::int64_t i) { return i == first || i == second ? bad : T(i); })},
                          {shaped<bool>({})});
    };
    check({}, -1, 0, -1);
    check({0}, -1, 0, -1);
    check({5, 7}, -1, 0, -1);
    check({5, 7}, -1, limits::max(), 3);
    for (const T bad : {limits::infinity(), -limits::infinity(), limits::quiet_NaN(), -limits::quiet_NaN()}) {
        check({}, 0, bad, -1);
        check({5, 7}, 34, bad, 12);
        check({3, 2000}, 5999, bad, 1);
        check({2, 3, 2000}, 2048, bad, 11999);
    }
}

TEST_CASE("check on a device") {
    using op = check_op<"rates are positive">;
    const auto check = [](const extents& e, std::int64_t first, std::int64_t second) {
        check_same<op, bool>({}, {filled<bool>(e, [&](std::int64_t i) { return i != first && i != second; })},
                             {shaped<bool>({})});
    };
    check({}, -1, -1);
    check({0}, -1, -1);
    check({300}, -1, -1);
    check({}, 0, -1);
    check({17, 300}, 5099, 4000);
}
