#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/effect/effect.cuh>

#include <limits>

namespace effect_test {

/// Checks on a device give the CPU's errors, whichever thread sees the fault first; prints give the
/// CPU's texts.

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

namespace {

std::string printed; // by the sink below

template <class E>
void check_print(const extents& e) {
    CAPTURE(e);
    const auto x = uneven<E>(e);
    const print_sink before = set_print_sink([](std::string_view text) { printed += text; });
    printed.clear();
    run_on_cpu<print_op<"hidden">, E>({}, {x}, {shaped<bool>({})});
    const std::string want = printed;
    printed.clear();
    for (int times = 0; times < 2; ++times) {
        const outcome got = run_on_device<print_op<"hidden">, E>({}, {x}, {shaped<bool>({})});
        CHECK(got.out[0] == std::vector<unsigned char>{1});
    }
    set_print_sink(before);
    CHECK(printed == want + want);
}

} // namespace

TEST_CASE_TEMPLATE("print on a device prints what the CPU prints", E, float, double, bool, std::int32_t, std::int64_t,
                   std::uint8_t) {
    check_print<E>({});
    check_print<E>({0});
    check_print<E>({3, 2});
    check_print<E>({40, 50}); // abbreviated
}

TEST_CASE("print on a device: a sink that throws ends nothing") {
    const print_sink before = set_print_sink([](std::string_view) { throw argument_error("full"); });
    const outcome got = run_on_device<print_op<"full">, float>({}, {uneven<float>({3})}, {shaped<bool>({})});
    set_print_sink(before);
    CHECK(got.error.empty());
}

} // namespace effect_test
