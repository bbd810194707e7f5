#include <tapegraph/tapegraph.hpp>
#include <tapegraph/tensor.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>

/// Results of compiled functions that are large enough to be written where they are returned, instead of copied there.

namespace large_results_test {

namespace tg = tapegraph;
using tg::dyn;
using vector = tg::spec<float, dyn>;

constexpr std::int64_t large = 40'000; // floats: above call_results::worth_placing
constexpr std::int64_t small = 100;    // below it

tg::tensor<float> numbers(std::int64_t count, float first) {
    auto t = tg::tensor<float>::uninitialized({count});
    for (std::int64_t i = 0; i < count; ++i) t.mutable_data()[i] = first + static_cast<float>(i % 977);
    return t;
}

/// Whether every element of y is a times x's, plus b.
bool is_line(const tg::tensor<float>& y, const tg::tensor<float>& x, float a, float b) {
    bool same = y.size() == x.size();
    for (std::int64_t i = 0; same && i < y.size(); ++i) same = y.data()[i] == a * x.data()[i] + b;
    return same;
}

TEST_CASE("results are the caller's: later calls, of other extents too, do not touch them") {
    auto f = tg::function<tg::graph>([](const auto& x) { return x * 2 + 1; }, vector{});
    const auto a = numbers(large, 1), b = numbers(large, 5), c = numbers(small, 7), d = numbers(2 * large, 9);
    const tg::tensor<float> of_a = f(a), of_b = f(b), of_c = f(c), of_d = f(d), of_a_again = f(a);
    CHECK(is_line(of_a, a, 2, 1));
    CHECK(is_line(of_b, b, 2, 1));
    CHECK(is_line(of_c, c, 2, 1));
    CHECK(is_line(of_d, d, 2, 1));
    CHECK(is_line(of_a_again, a, 2, 1));
    CHECK(of_a.data() != of_a_again.data());
}

TEST_CASE("a result that others are computed from, twice the same, in another shape, and an argument") {
    auto f = tg::function<tg::graph>(
        [](const auto& x) {
            const auto y = tg::eval(relu(x * 2));
            const auto z = tg::eval(tg::cumulative_sum(y, 0));
            return std::tuple(y, y, reshape(y, {-1, 4}), z, x, sum(y));
        },
        vector{});
    const auto x = numbers(large, 1);
    for (int turn = 0; turn < 2; ++turn) {
        auto results = f(x);
        tg::tensor<float>& y = std::get<0>(results);
        const tg::tensor<float>&same = std::get<1>(results), &reshaped = std::get<2>(results),
              &z = std::get<3>(results), &argument = std::get<4>(results), &total = std::get<5>(results);
        CHECK(is_line(y, x, 2, 0));
        CHECK(is_line(same, x, 2, 0));
        CHECK(reshaped.shape() == tg::shape{large / 4, 4});
        CHECK(reshaped.data()[large - 1] == 2 * x.data()[large - 1]);
        CHECK(is_line(argument, x, 1, 0));
        CHECK(z.data()[0] == 2);
        CHECK(z.data()[999] == tg::tensor<float>(tg::cumulative_sum(tg::tensor<float>(x * 2), 0)).data()[999]);
        CHECK(total.item() == tg::tensor<float>(sum(relu(x * 2))).item());
        // Each may be written to alone.
        y.mutable_data()[0] = -1;
        CHECK(same.data()[0] == 2);
        CHECK(reshaped.data()[0] == 2);
    }
}

TEST_CASE("a call that fails leaves the next one whole") {
    auto f = tg::function<tg::graph>([](const auto& x, const auto& y) { return x + y; }, vector{}, vector{});
    const auto x = numbers(large, 1);
    CHECK(is_line(f(x, x), x, 2, 0));
    CHECK_THROWS_AS(f(x, numbers(large - 1, 1)), tg::shape_error);
    CHECK(is_line(f(x, x), x, 2, 0));
    tg::set_memory_limit(1); // no tensor of this size any more
    CHECK_THROWS_AS(f(numbers(1'000'000, 1), numbers(1'000'000, 1)), tg::out_of_memory);
    tg::set_memory_limit(SIZE_MAX);
    CHECK(is_line(f(x, x), x, 2, 0));
}

TEST_CASE("gradients through large results, compiled and on a tape") {
    constexpr auto f = [](const auto& x) { return square(x); };
    auto compiled = tg::function<tg::graph>(f, vector{});
    auto both = tg::function<tg::graph>(tg::value_and_gradient([](const auto& x) { return sum(square(x)); }), vector{});
    auto x = numbers(large, 1);
    CHECK(is_line(both(x).gradient, x, 2, 0));
    tg::gradient_tape tape;
    tape.watch(x);
    const tg::tensor<float> y = compiled(x);
    CHECK(is_line(tape.gradient(tg::tensor<float>(sum(y)), x), x, 2, 0));
}

} // namespace large_results_test
