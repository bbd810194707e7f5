#include <support/graph_runner.hpp>

#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <string>

namespace session_variables_test {

/// get_variable's rules in both modes, and the classics that live by them.

namespace {

namespace tg = tapegraph;

/// Five towers of one threshold, the first of which makes it.
struct towers {
    static constexpr auto tower(const auto& scope, const auto& x) {
        const auto threshold = scope.template get_variable<double>("threshold", {}, tg::init::constant{0.25});
        const auto w = scope.template get_variable<double>("weights", {3, 1}, tg::init::ones{});
        return tg::eval(maximum(matmul(x, w), threshold));
    }
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<double>("x", {-1, 3});
        auto sum = tower(scope / "relu", x);
        for (int i = 1; i < 5; ++i) sum = sum + tower((scope / "relu").reuse(), i * x);
        return tg::fetches{tg::fetch("output", sum)};
    }
};

template <class F>
std::string in_graph_mode(const F& build) {
    tg::ir::model_trace t;
    build(tg::graph_scope(&t, 0));
    return t.error.what == nullptr ? "" : std::string(t.error.operation) + ": " + t.error.what;
}
template <class F>
std::string in_eager_mode(const F& build) {
    tg::variable_list variables;
    tg::eager_context context;
    context.variables = &variables;
    try {
        build(tg::eager_scope(&context));
    } catch (const tg::argument_error& e) {
        return e.what();
    }
    return {};
}

} // namespace

TEST_CASE("get_variable: five towers share what the first makes") {
    tg::session<towers> session;
    const tg::tensor<double> x{{1, 2, 3}, {-1, -2, 0.5}};
    const tg::tensor<double> sum = session.run<"output">({{"x", x}});
    double first = 0.25 + 6 * (1 + 2 + 3 + 4), second = 5 * 0.25;
    first += 6 - 0.25;
    CHECK(sum(0, 0) == first);
    CHECK(sum(1, 0) == second);
    CHECK(session.variables().size() == 2);
    CHECK(session.variables()["relu/threshold"].value<double>().item() == 0.25);
}

TEST_CASE("get_variable: what exists is not made, what does not exist is not shared, also in scopes below") {
    const auto twice = [](auto s) {
        (s / "a").template get_variable<float>("w", {2});
        s.template get_variable<float>("a/w", {2});
    };
    CHECK(in_graph_mode(twice) == "w: get_variable: it exists, and the scope is not one of reuse()");
    CHECK(in_eager_mode(twice) == "variable 'a/w': get_variable: it exists, and the scope is not one of reuse()");
    const auto never = [](auto s) { (s.reuse() / "a" / "b").template get_variable<float>("w", {2}); };
    CHECK(in_graph_mode(never) == "w: get_variable: it does not exist, and reuse() makes none");
    CHECK(in_eager_mode(never) == "variable 'a/b/w': get_variable: it does not exist, and reuse() makes none");
    const auto fine = [](auto s) {
        (s / "a").template get_variable<float>("w", {2}, tg::init::ones{});
        (s.reuse() / "a").template get_variable<float>("w", {2});
        (s.reuse() / "b").template variable<float>("w", {2}); // as AUTO_REUSE: makes it,
        (s.reuse() / "b").template variable<float>("w", {2}); // and gives it
    };
    CHECK(in_graph_mode(fine) == "");
    CHECK(in_eager_mode(fine) == "");
}

TEST_CASE("first values of variables: numbers, and those of another one") {
    const auto build = [](auto s) {
        const auto first = s.template variable<double>("first", {2, 2}, {.initializer = tg::init::values{1, 2, 3, 4}});
        s.template variable<double>("second", {2, 2}, {.initializer = tg::init::value_of(first)});
    };
    CHECK(in_graph_mode(build) == "");
    CHECK(in_graph_mode([](auto s) {
              s.template variable<double>("first", {3}, {.initializer = tg::init::values{1, 2}});
          }) == ": variable: init::values has another number of elements");
    CHECK(in_graph_mode([](auto s) {
              const auto first = s.template variable<double>("first", {3});
              s.template variable<double>("second", {2}, {.initializer = tg::init::value_of(first)});
          }) == ": variable: init::value_of is of another shape or type");
}

} // namespace session_variables_test
