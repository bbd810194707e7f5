#include <tapegraph/number_program.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

/// Recorded programs check the comparisons that the recorded code made.

namespace program_branches_test {

namespace tg = tapegraph;
using program = tg::number_program<>;
using vector = std::vector<double>;

TEST_CASE("number_program: a branch that goes another way is told") {
    const auto f = [](const auto& v) {
        using number = std::remove_cvref_t<decltype(v[0])>;
        number sum = 0;
        for (const auto& x : v)
            if (x > 0.5) sum += x * x;
        return sum;
    };
    const vector recorded{1, 0, 2};
    const program p = tg::record(f, recorded);
    CHECK(p.comparisons() == 3);
    CHECK(p.value(vector{0.75, -1, 3}) == 0.75 * 0.75 + 9);
    const auto changed = p.check(vector{1, 0.75, 0.25});
    REQUIRE(changed);
    CHECK(changed->comparison == 1);
    CHECK(changed->left == 0.75);
    CHECK(changed->right == 0.5);
    CHECK_FALSE(changed->recorded);
    CHECK(changed->text == "0.75 > 0.5");
    try {
        p.gradient()(vector{1, 0, 0.25});
        FAIL("no error");
    } catch (const tg::branch_error& e) {
        CHECK(e.branch.comparison == 2);
        CHECK(std::string(e.what()).find("comparison 2 (statement 5), 0.25 > 0.5, is false, and was true") !=
              std::string::npos);
    }
    // Of NaN, comparisons are false.
    CHECK(p.check(vector{std::numeric_limits<double>::quiet_NaN(), 0, 2})->comparison == 0);

    // In a batch: all inputs but some.
    const std::size_t count = 19;
    vector x, y(count);
    for (std::size_t i = 0; i < count; ++i) x.insert(x.end(), {1.0, i == 13 ? 0.7 : 0.1, i == 4 ? 0.2 : 2.0});
    std::vector<std::uint8_t> stands(count);
    p.run_batch(count, x, y, stands);
    for (std::size_t i = 0; i < count; ++i) {
        CHECK(stands[i] == (i != 4 && i != 13));
        if (stands[i]) CHECK(y[i] == 5);
    }
    try {
        p.run_batch(count, x, y);
        FAIL("no error");
    } catch (const tg::branch_error& e) {
        CHECK(e.branch.input == 4);
        CHECK(e.branch.comparison == 2);
        CHECK(std::string(e.what()).find("input 4 of the batch") != std::string::npos);
    }
}

// Iterations end by such comparisons, which are one instruction where nothing else reads their sides.
TEST_CASE("number_program: |a - b| < c d as a branch") {
    const auto root = [](bool turned, bool kept) {
        return [=](const auto& v) {
            using std::fabs;
            using number = std::remove_cvref_t<decltype(v[0])>;
            number y = v[0], read = 0;
            for (int i = 0; i < 50; ++i) {
                const number next = 0.5 * (y + v[0] / y), distance = fabs(next - y);
                const bool done = turned ? v[1] * next > distance : distance < v[1] * next;
                y = next;
                if (kept) read += distance;
                if (done) break;
            }
            return kept ? number(y + 0 * read) : y;
        };
    };
    const vector at{2, 1e-3}, near{2.125, 1e-3}, strict{2, 1e-9};
    for (const bool turned : {false, true})
        for (const bool kept : {false, true}) {
            CAPTURE(turned);
            CAPTURE(kept);
            const auto f = root(turned, kept);
            const program p = tg::record(f, at);
            CHECK(p.value(at) == f(at));
            CHECK(p.value(near) == f(near));
            CHECK(p.comparisons() == 4);
            const auto changed = p.check(strict);
            REQUIRE(changed);
            CHECK(changed->comparison == 3);
            const double distance = f(vector{2, 1e-2}) - f(at); // three steps, four steps
            CHECK((turned ? changed->right : changed->left) == distance);
            CHECK((turned ? changed->left : changed->right) == 1e-9 * f(at));
            std::vector<std::uint8_t> stands(3);
            vector x{2, 1e-3, 2, 1e-9, 2.125, 1e-3}, results(3);
            p.run_batch(3, x, results, stands);
            CHECK(stands == std::vector<std::uint8_t>{1, 0, 1});
            CHECK(results[2] == f(near));
            CHECK(p.gradient()(at)[0] == doctest::Approx(0.5 / std::sqrt(2.0)).epsilon(1e-5));
        }
    const program fused = tg::record(root(false, false), at), apart = tg::record(root(false, true), at);
    CHECK(fused.instructions() + 4 * 2 <= apart.instructions());
}

} // namespace program_branches_test
