#include <support/captured_stderr.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace placement_log_test {

namespace tg = tapegraph;
using test::captured_stderr;

namespace {

struct logged {
    logged() { tg::log_placement(true); }
    ~logged() { tg::log_placement(false); }
};

std::ptrdiff_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("the log of eager operations names their device, every time") {
    const tg::tensor<float> a{{1, 2, 3}, {4, 5, 6}}, w{{1, 0}, {2, 1}, {3, -1}};
    const std::string text = captured_stderr([&] {
        const logged on;
        for (int i = 0; i < 2; ++i) {
            const tg::tensor<float> h = tanh(a * 2 + 1);
            const tg::tensor<float> y = matmul(h, w);
            const tg::tensor<float> s = sum(square(y));
        }
    });
    const std::string once = "tapegraph: multiply, add, tanh f32[2, 3] on cpu\n"
                             "tapegraph: matmul f32[2, 2] on cpu\n"
                             "tapegraph: sum of square f32[2, 2] on cpu\n";
    CHECK(text == once + once);
    CHECK(captured_stderr([&] { const tg::tensor<float> h = a + 1; }).empty());
}

TEST_CASE("the log of gradients on the tape names their device") {
    tg::tensor<float> x{{1, 2}, {3, 4}}, b{1, 2};
    const std::string text = captured_stderr([&] {
        tg::gradient_tape tape;
        tape.watch(x, b);
        const tg::tensor<float> y = exp(x * b);
        const tg::tensor<float> s = sum(y);
        const logged on;
        const auto [dx, db] = tape.gradient(s, x, b);
    });
    CHECK(has(text, "tapegraph: gradient of multiply, exp f32[2, 2] on cpu\n"));
    CHECK(has(text, "tapegraph: gradient, summed, of multiply, exp f32[2, 2] on cpu\n"));
}

TEST_CASE("the log of a compiled program names the device of each call once") {
    const auto model = [](auto x) { return sum(tanh(matmul(x, x) + 1.0f)); };
    auto f = tg::function<tg::graph>(model, tg::spec<float, 3, 3>{});
    const tg::tensor<float> x{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const std::string text = captured_stderr([&] {
        const logged on;
        f(x), f(x);
    });
    CHECK(lines(text) == 2);
    CHECK(has(text, "tapegraph: call 0 of 2 (placement_log_test.cpp:"));
    CHECK(has(text, "): matmul f32[3, 3] on cpu\n"));
    CHECK(has(text, "tapegraph: call 1 of 2 (placement_log_test.cpp:"));
    CHECK(has(text, "): sum of add, tanh f32[] on cpu\n"));
}

} // namespace placement_log_test
