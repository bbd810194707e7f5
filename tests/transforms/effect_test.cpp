#include <support/graph_runner.hpp>
#include <support/messages.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace effect_test {

/// print and check: the same texts and the same errors in both modes, and nothing else changed.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using support::message_of;
using tg::tensor;

namespace {

std::string printed; // by the sink below

struct captured_prints {
    captured_prints() : before(tg::set_print_sink([](std::string_view text) { printed += text; })) { printed.clear(); }
    ~captured_prints() { tg::set_print_sink(before); }
    tg::print_sink before;
};

constexpr auto talking = [](auto x, auto w) {
    const auto h = tg::print<"h">(tanh(matmul(x, w)));
    tg::print<"unused">(sum(h, 0));
    const auto same = tg::print<"h again">(h);
    tg::print<"positive">(h > 0);
    return tg::eval(tg::print<"loss">(sum(square(same))) * 2);
};
constexpr auto silent = [](auto x, auto w) { return tg::eval(sum(square(tg::eval(tanh(matmul(x, w))))) * 2); };

constexpr auto careful = [](auto x) {
    const auto y = tg::check_finite<"logarithm">(tg::log(x));
    tg::check<"logarithms stay below four">(y < 4);
    return sum(y * y);
};

} // namespace

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("print: texts of both modes, values and gradients unchanged") {
    const auto x = drawn<double>({2, 3}, 1), w = drawn<double>({3, 2}, 2);
    auto graph = tg::function<tg::graph>(tg::value_and_gradient(talking), tg::spec<double, tg::dyn, 3>{},
                                         tg::spec<double, 3, 2>{});
    const captured_prints capture;
    const auto by_graph = flattened(graph(x, w));
    const std::string text = printed;
    printed.clear();
    const auto by_eager = flattened(tg::value_and_gradient(talking)(x, w));
    CHECK(text == printed);
    TG_SAME(difference(by_graph, by_eager));
    TG_SAME(difference(by_graph, flattened(tg::value_and_gradient(silent)(x, w))));

    const tensor<double> h = tanh(matmul(x, w)), first = sum(h, 0);
    CHECK(text.starts_with("h: f64[2, 2]\n" + tg::to_string(h) + "\nunused: f64[2] " + tg::to_string(first) +
                           "\nh again: f64[2, 2]\n"));
    CHECK(text.find("\npositive: bool[2, 2]\n[[") != std::string::npos);
    CHECK(text.find("\nloss: f64[] ") != std::string::npos);
    printed.clear();
    graph(x, w);
    CHECK(printed == text); // every time it runs
}

TEST_CASE("print: long axes are abbreviated, every element type is printed") {
    const captured_prints capture;
    tg::print<"long">(tg::arange<float>(2000));
    CHECK(printed == "long: f32[2000] [0.000e+00 1.000e+00 2.000e+00 ... 1.997e+03 1.998e+03 1.999e+03]\n");
    printed.clear();
    tg::print<"i">(tensor<std::int32_t>{1, -2});
    tg::print<"j">(tensor<std::int64_t>{1, -2});
    tg::print<"u">(tensor<std::uint8_t>{1, 200});
    tg::print<"none">(tg::zeros<float>({0, 3}));
    CHECK(printed == "i: i32[2] [ 1 -2]\nj: i64[2] [ 1 -2]\nu: u8[2] [  1 200]\nnone: f32[0, 3]\n[]\n");
}

TEST_CASE("print: fused kernels stay fused, and unread results still print") {
    // tanh, print, and what follows: the same kernels as without, and one call that prints.
    constexpr auto with = [](auto x) { return sum(tg::print<"a">(tg::eval(tanh(x) * 2)) + x); };
    constexpr auto without = [](auto x) { return sum(tg::eval(tanh(x) * 2) + x); };
    constexpr auto unread = [](auto x) {
        tg::print<"b">(x * 2);
        return sum(x);
    };
    const tg::spec<float, tg::dyn> spec;
    auto f = tg::function<tg::graph>(with, spec);
    auto g = tg::function<tg::graph>(without, spec);
    auto h = tg::function<tg::graph>(unread, spec);
    // The value that is printed has a buffer, which the kernel that sums writes, too: one call more, the print.
    CHECK(f.view().steps.size() == g.view().steps.size() + 1);
    CHECK(h.view().steps.size() == 2);
    const captured_prints capture;
    h(tensor<float>{1, 2});
    CHECK(printed == "b: f32[2] [2. 4.]\n");
}

TEST_CASE("check: the same errors in both modes") {
    auto graph = tg::function<tg::graph>(careful, tg::spec<double, tg::dyn, 2>{});
    const tensor<double> good{{1, 2}, {3, 4}}, zero{{1, 2}, {0, 4}}, large{{1, 2}, {3, 400}};
    TG_SAME(difference(flattened(graph(good)), flattened(tensor<double>(careful(good)))));
    for (int k = 0; k < 2; ++k) { // a program that threw runs again
        CHECK(message_of([&] { graph(zero); }) == "logarithm: element [1, 0] of f64[2, 2] is -inf");
        CHECK(message_of([&] { graph(large); }) == "logarithms stay below four: false at element [1, 1] of bool[2, 2]");
        CHECK(graph(good).item() == tensor<double>(careful(good)).item());
    }
    CHECK(message_of([&] { careful(zero); }) == "logarithm: element [1, 0] of f64[2, 2] is -inf");
    CHECK(message_of([&] { careful(large); }) == "logarithms stay below four: false at element [1, 1] of bool[2, 2]");
    CHECK_THROWS_AS(careful(zero), tg::numeric_error);
    CHECK_THROWS_AS(careful(large), tg::check_error);
    CHECK(message_of([] { tg::check_finite<"x">(tensor<float>(std::numeric_limits<float>::quiet_NaN())); }) ==
          "x: element [] of f32[] is nan");
    CHECK(message_of([] { tg::check_finite<"x">(tensor<std::int32_t>{1}); }) ==
          "check_finite: the operand must be f32 or f64, given i32");
    CHECK(message_of([] { tg::check<"x">(tensor<float>{1}); }) == "check: the condition must be bool, given f32");
}

namespace {
struct two_results {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x"), y = scope.template placeholder<float>("y");
        return tg::fetches{tg::fetch("a", tg::print<"a">(x * 2)), tg::fetch("b", tg::print<"b">(y + 1))};
    }
};
} // namespace

TEST_CASE("print in a session: only what a fetch needs") {
    tg::session<two_results> session;
    const captured_prints capture;
    const float a = session.run<"a">({{"x", 2.0f}});
    CHECK(a == 4);
    CHECK(printed == "a: f32[] 4.\n");
}

TEST_CASE("print in a checkpoint prints once; under vmap it prints the batch") {
    constexpr auto f = [](auto x) {
        return tg::value_and_gradient(
            [](auto v) { return sum(tg::checkpoint([](auto u) { return tanh(tg::print<"inside">(u * 2)); })(v)); })(x);
    };
    const tensor<double> x{1, 2};
    auto graph = tg::function<tg::graph>(f, tg::spec<double, 2>{});
    const captured_prints capture;
    const auto by_graph = flattened(graph(x));
    CHECK(printed == "inside: f64[2] [2. 4.]\n");
    printed.clear();
    TG_SAME(difference(by_graph, flattened(f(x))));
    CHECK(printed == "inside: f64[2] [2. 4.]\n");
    printed.clear();
    tg::vmap([](auto v) { return tg::print<"each">(v + 1); })(x);
    CHECK(printed == "each: f64[2] [2. 3.]\n");
}

} // namespace effect_test
