#include <support/graph_runner.hpp>

#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/model/scope.hpp>

#include <doctest/doctest.h>

#include <string>

namespace scope_test {

/// Scopes of both modes by themselves: which of them are one.

namespace {

namespace tg = tapegraph;

/// What the trace, and eager mode, object to in `build(scope, like)`; empty where nothing is.
template <class F>
std::string in_graph_mode(const F& build) {
    tg::ir::model_trace t;
    const tg::graph_node like(&t, t.input("x", tg::dtype::f32, {2}));
    build(tg::graph_scope(&t, 0), like);
    return t.error.what == nullptr ? "" : t.error.what;
}
template <class F>
std::string in_eager_mode(const F& build) {
    tg::variable_list variables;
    tg::eager_context context;
    context.variables = &variables;
    try {
        build(tg::eager_scope(&context), tg::zeros<float>({2}));
    } catch (const tg::argument_error& e) {
        return e.what();
    }
    return {};
}

template <class F>
void check_taken(const std::string& path, const F& build) {
    CHECK(in_graph_mode(build) == "variable: this path is already taken (scope.reuse() shares it)");
    CHECK(in_eager_mode(build) == "variable '" + path + "': this path is already taken (scope.reuse() shares it)");
}

} // namespace

TEST_CASE("paths that read alike are one scope") {
    check_taken("3/w",
                [](auto s, auto x) { (s / 3).variable_like(x, "w", {2}), (s / "3").variable_like(x, "w", {2}); });
    check_taken("0/w",
                [](auto s, auto x) { (s / "0").variable_like(x, "w", {2}), (s / 0).variable_like(x, "w", {2}); });
    check_taken("a/b/w", [](auto s, auto x) {
        (s / "a" / "b").variable_like(x, "w", {2}), (s / "a/b").variable_like(x, "w", {2});
    });
    check_taken("a/12/b/w", [](auto s, auto x) {
        (s / "a/12/b").variable_like(x, "w", {2}), (s / "a" / 12 / "b").variable_like(x, "w", {2});
    });
    check_taken("a/w", [](auto s, auto x) { s.variable_like(x, "a/w", {2}), (s / "a").variable_like(x, "w", {2}); });
    check_taken("a/b/w",
                [](auto s, auto x) { (s / "a").variable_like(x, "b/w", {2}), (s / "a/b").variable_like(x, "w", {2}); });
}

TEST_CASE("paths that read differently are not") {
    const auto build = [](auto s, auto x) {
        for (const char* name : {"3", "03", "a", "a/b", "a/3", "ab", "3a", "1234567890", "-1"})
            (s / name).variable_like(x, "w", {2});
        s.variable_like(x, "w", {2});
        s.variable_like(x, "3", {2}); // a variable and a scope may have one name: their paths differ
    };
    CHECK(in_graph_mode(build) == "");
    CHECK(in_eager_mode(build) == "");
    // The paths of both modes are one text.
    tg::ir::model_trace t;
    const tg::graph_scope root(&t, 0);
    CHECK(tg::detail::path_of(t.scopes, (root / "a/12/b").index()) == "a/12/b");
    CHECK(tg::detail::path_of(t.scopes, (root / "03" / 7).index()) == "03/7");
}

TEST_CASE("unique scopes are numbered from the second on") {
    const auto build = [](auto s, auto x) {
        for (int i = 0; i < 3; ++i) s.unique("layer").variable_like(x, "w", {2});
        (s / "block").unique("layer").variable_like(x, "w", {2});
        s.unique("block/layer").variable_like(x, "w", {2});
    };
    CHECK(in_graph_mode(build) == "");
    CHECK(in_eager_mode(build) == "");
    const auto third = [](auto s) { return s.unique("layer"), s.unique("layer"), s.unique("layer"); };
    check_taken("layer_2/w", [&](auto s, auto x) {
        third(s).variable_like(x, "w", {2}), (s / "layer_2").variable_like(x, "w", {2});
    });
    check_taken("a_10/w",
                [](auto s, auto x) { (s / "a_10").variable_like(x, "w", {2}), s.variable_like(x, "a_10/w", {2}); });
    tg::ir::model_trace t;
    const tg::graph_scope root(&t, 0);
    CHECK(tg::detail::path_of(t.scopes, third(root).index()) == "layer_2");
    CHECK(tg::detail::path_of(t.scopes, (root / "a_01/_3/b_12").index()) == "a_01/_3/b_12");
}

TEST_CASE("a scope has a name, or an index from 0 on") {
    const auto refused = [](const std::string& what, auto build) {
        CHECK(in_graph_mode(build) == what);
        CHECK(in_eager_mode(build).find(what) == 0);
    };
    refused("scope: a name must not be empty", [](auto s, auto) { static_cast<void>(s / ""); });
    refused("scope: a name must not be empty", [](auto s, auto) { static_cast<void>(s / "a//b"); });
    refused("scope: a name must not be empty", [](auto s, auto) { static_cast<void>(s / "a/"); });
    refused("scope: a name must not be empty", [](auto s, auto) { static_cast<void>(s / "/a"); });
    refused("scope: an index must not be negative", [](auto s, auto) { static_cast<void>(s / -1); });
}

} // namespace scope_test
