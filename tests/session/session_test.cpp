#include <support/temporary_folder.hpp>

#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/optimizers/adagrad.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <tuple>
#include <type_traits>

namespace session_test {

/// Define-then-run: fetches, operations as fetches, what persists between runs and what does not. References are plain loops.

namespace {

namespace tg = tapegraph;

struct quadratic {
    constexpr auto operator()(auto scope) const {
        const auto target = scope.template placeholder<double>("target", {2});
        const auto x = scope.template variable<double>("x", {2}, {.initializer = tg::init::values{1, 2}});
        const auto away = scope.named("away", x - target);
        const auto loss = tg::sum(square(away));
        return tg::fetches{tg::fetch("loss", loss), tg::fetch("x", x),
                           tg::fetch("train", tg::minimize(loss, tg::sgd{.learning_rate = 0.1})),
                           tg::fetch("adam", tg::minimize(loss, tg::adam{.learning_rate = 0.1}))};
    }
};

struct counter {
    constexpr auto operator()(auto scope) const {
        const auto n = scope.template variable<float>("n", {}, {.initializer = tg::init::zeros{}, .trainable = false});
        const auto m = scope.template variable<float>(
            "m", {2}, {.initializer = tg::init::value_of(scope.template variable<float>("first", {2}))});
        const auto more = tg::assign_add(n, 1);
        return tg::fetches{tg::fetch("n", n),
                           tg::fetch("increment", more),
                           tg::fetch("less", tg::assign_sub(n, 2)),
                           tg::fetch("both", tg::group(more, tg::assign(m, 7))),
                           tg::fetch("m", m),
                           tg::fetch("restart", tg::initialize_variables())};
    }
};

/// A prediction needs no labels, though the loss says that there are as many.
struct fitted {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {-1, 2});
        const auto y = scope.template placeholder<float>("y", {-1, 1});
        const auto w = scope.template get_variable<float>("w", {2, 1}, tg::init::ones{});
        const auto prediction = matmul(x, w);
        return tg::fetches{tg::fetch("prediction", prediction), tg::fetch("loss", mean(square(prediction - y)))};
    }
};

/// Two games over one pair of variables, each with an optimizer of its own, and the second with its gradients changed.
struct two_players {
    constexpr auto operator()(auto scope) const {
        const auto a = scope.template variable<double>("a/w", {}, {.initializer = tg::init::constant{2}});
        const auto b = scope.template variable<double>("b/w", {}, {.initializer = tg::init::constant{-3}});
        const auto value = tg::eval(a * b + square(a));
        auto pairs = tg::compute_gradients(-value, {.variables = "b"});
        for (auto& [gradient, variable] : pairs) gradient = clip(gradient, -1, 1);
        const auto descend = tg::minimize(value, tg::momentum{.learning_rate = 0.1}, {.variables = "a"});
        const auto ascend = tg::apply_gradients(pairs, tg::sgd{.learning_rate = 0.5});
        return tg::fetches{tg::fetch("value", value), tg::fetch("a", descend), tg::fetch("b", ascend),
                           tg::fetch("both", tg::group(descend, ascend)), tg::fetch("slope", pairs[0].gradient)};
    }
};

/// A chain: what all gradients have in common, and state that does not begin at zero.
struct chained {
    constexpr auto operator()(auto scope) const {
        const auto a = scope.template variable<double>("a", {2}, {.initializer = tg::init::values{3, 0}});
        const auto b = scope.template variable<double>("b", {}, {.initializer = tg::init::constant{4}});
        const auto loss = tg::eval(0.5 * sum(square(a)) + 0.5 * square(b));
        return tg::fetches{tg::fetch("loss", loss),
                           tg::fetch("train", tg::minimize(loss, tg::chain{tg::clip_by_global_norm{.norm = 1},
                                                                           tg::adagrad{.learning_rate = 0.5}}))};
    }
};

struct with_layers {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {-1, 3});
        const auto rate = scope.template placeholder_with_default<float>("scale", 2);
        auto h = tg::batch_normalization(scope / "norm", x);
        h = scope.named("hidden", tg::dense(scope / "dense", h, {.units = 2}));
        const auto loss = tg::eval(rate * mean(square(h)));
        return tg::fetches{tg::fetch("loss", loss), tg::fetch("output", h),
                           tg::fetch("train", tg::minimize(loss, tg::sgd{}))};
    }
};

bool same_bits(const tg::tensor<float>& a, const tg::tensor<float>& b) { return a.to_vector() == b.to_vector(); }

} // namespace

TEST_CASE("session: a quadratic is minimized by gradient descent, with feeds") {
    tg::session<quadratic> session;
    const tg::tensor<double> target{3, -4};
    double x[2]{1, 2};
    for (int i = 0; i < 20; ++i) {
        double expected = 0;
        for (int k = 0; k < 2; ++k) expected += (x[k] - target(k)) * (x[k] - target(k));
        const double loss = session.run<"loss", "train">({{"target", target}}); // of before the step
        CHECK(loss == doctest::Approx(expected).epsilon(1e-14));                // the sum may be in another order
        for (int k = 0; k < 2; ++k) x[k] -= 0.1 * (2 * (x[k] - target(k)));
    }
    const tg::tensor<double> found = session.run<"x">();
    CHECK(found(0) == doctest::Approx(x[0]).epsilon(1e-14)); // multiply-adds may be fused
    CHECK(found(1) == doctest::Approx(x[1]).epsilon(1e-14));
    CHECK(session.iterations<"train">() == 20);
    CHECK(session.iterations<"adam">() == 0);
}

TEST_CASE("session: a run that fetches no operation leaves variables as they are; several fetches are a tuple") {
    tg::session<quadratic> session;
    const tg::tensor<double> target{0, 0};
    for (int i = 0; i < 2; ++i) {
        const auto [loss, x, away] = session.run<"loss", "x", "away">({{"target", target}});
        CHECK(loss.item() == 5);
        CHECK(x.to_vector() == std::vector<double>{1, 2});
        CHECK(away.to_vector() == std::vector<double>{1, 2});
    }
    static_assert(std::is_void_v<decltype(session.run<"train">({{"target", target}}))>);
}

TEST_CASE("session: an optimizer's numbers are constants of the model that may change, and follow its own steps") {
    tg::session<quadratic> session;
    const tg::tensor<double> target{0, 0};
    session.optimizer<"train">().learning_rate = 0.25;
    session.run<"train">({{"target", target}});
    CHECK(session.variables()["x"].value<double>().to_vector() == std::vector<double>{0.5, 1});
    // The first step of Adam, whatever another optimizer has done before: x - 0.1 sqrt(1 - b2) / (1 - b1) m / (sqrt(v) + e).
    session.run<"adam">({{"target", target}});
    const tg::adam adam{.learning_rate = 0.1};
    const auto n = adam.numbers(1);
    const double g = 1, m = n[1] * g, v = n[2] * g * g, expected = 0.5 - n[0] * m / (std::sqrt(v) + n[3]);
    CHECK(session.variables()["x"].value<double>()(0) == doctest::Approx(expected).epsilon(1e-14));
    CHECK(session.variables()["x/1/adam_m"].optimizer_state());
}

TEST_CASE("session: a value is given in the place of one that is computed, which then needs no feed") {
    tg::session<quadratic> session;
    CHECK(session.run<"loss">(tg::given<"away">(tg::tensor<double>{3, 4})).item() == 25);
    const auto [loss, x] = session.run<"loss", "x">({{"target", tg::tensor<double>{1, 1}}}, tg::given<"loss">(8.0));
    CHECK(loss.item() == 8);
    CHECK(x(0) == 1);
    CHECK_THROWS_WITH_AS(session.run<"loss">(tg::given<"away">(tg::tensor<double>{3, 4, 5})),
                         doctest::Contains("input 'away': extent of axis 0 is 3, expected 2"), tg::shape_error);
}

TEST_CASE("session: assign counts, and initialize_variables begins again") {
    tg::session<counter> session;
    for (int i = 1; i <= 3; ++i) CHECK(session.run<"increment">().item() == i);
    CHECK(session.run<"n">().item() == 3);
    CHECK(session.run<"less">().item() == 1);
    const auto m = session.run<"m">();
    CHECK(session.variables()["first"].value<float>().to_vector() == m.to_vector()); // init::value_of
    session.run<"both">();
    CHECK(session.run<"m">().to_vector() == std::vector<float>{7, 7});
    CHECK(session.run<"n">().item() == 2);
    session.run<"restart">();
    const auto [n, first] = session.run<"n", "m">();
    CHECK(n.item() == 0);
    CHECK(first.to_vector() == m.to_vector());
}

TEST_CASE("session: two graphs side by side, and two sessions of one graph, share nothing") {
    tg::session<counter> one, other;
    tg::session<quadratic> third;
    one.run<"increment">();
    one.run<"increment">();
    CHECK(other.run<"n">().item() == 0);
    CHECK(one.run<"n">().item() == 2);
    CHECK(third.run<"x">()(1) == 2);
    one.close();
    CHECK_THROWS_WITH_AS(one.run<"n">(), "session: it is closed", tg::argument_error);
    CHECK(other.run<"increment">().item() == 1);
}

TEST_CASE("session: optimizers of some variables, gradients changed between compute and apply, operations in a group") {
    double a = 2, b = -3, velocity = 0;
    tg::session<two_players> session;
    for (int i = 0; i < 6; ++i) {
        const double ga = b + 2 * a, gb = std::fmin(1, std::fmax(-1, -a));
        if (i < 2 || i > 3) velocity = 0.9 * velocity - 0.1 * ga;
        const double next_a = a + velocity, next_b = b - 0.5 * gb;
        if (i < 2) session.run<"a">(), a = next_a;
        if (i == 2 || i == 3) {
            CHECK(session.run<"b", "slope">().item() == gb);
            b = next_b;
        }
        if (i > 3) session.run<"both">(), a = next_a, b = next_b;
        CHECK(session.variables()["a/w"].value<double>().item() == doctest::Approx(a).epsilon(1e-14));
        CHECK(session.variables()["b/w"].value<double>().item() == doctest::Approx(b).epsilon(1e-14));
    }
    CHECK(session.iterations<"a">() == 4);
    CHECK(session.iterations<"both", 1>() == 4); // the optimizer of "b"
    session.variables()["a/w"].set_trainable(false);
    session.run<"both">();
    CHECK(session.variables()["a/w"].value<double>().item() == doctest::Approx(a).epsilon(1e-14));
}

TEST_CASE("session: chains of optimizers, with rates that follow a schedule once they are given one") {
    tg::session<chained> session;
    double w[2]{3, 4}, a[2]{0.1, 0.1};
    const auto decay = [](std::int64_t step) { return std::ldexp(0.5, -static_cast<int>(step)); };
    session.optimizer<"train">().get<tg::adagrad>().learning_rate = decay;
    for (int i = 0; i < 3; ++i) {
        const double norm = std::sqrt(w[0] * w[0] + w[1] * w[1]);
        session.run<"train">();
        double g[2];
        for (int k = 0; k < 2; ++k) g[k] = w[k] / std::fmax(norm, 1);
        for (int k = 0; k < 2; ++k) {
            a[k] += g[k] * g[k];
            w[k] -= decay(i) * g[k] / std::sqrt(a[k] + 1e-7);
        }
        CHECK(session.variables()["a"].value<double>()(0) == doctest::Approx(w[0]).epsilon(1e-13));
        CHECK(session.variables()["b"].value<double>().item() == doctest::Approx(w[1]).epsilon(1e-13));
    }
    session.initialize();
    CHECK(session.variables()["b/accumulator"].value<double>().item() == 0.1);
}

TEST_CASE("session: what only other fetches need is not fed; a fetched tensor prints as one") {
    tg::session<fitted> session;
    const tg::tensor<float> x{{1, 2}, {3, 4}, {5, 6}};
    std::ostringstream text;
    text << session.run<"prediction">({{"x", x}});
    CHECK(text.str() == "[[ 3.]\n [ 7.]\n [11.]]");
    CHECK(float(session.run<"loss">({{"x", x}, {"y", tg::tensor<float>{{3}, {7}, {10}}}})) == doctest::Approx(1.0 / 3));
    CHECK_THROWS_WITH_AS(session.run<"loss">({{"x", x}, {"y", tg::tensor<float>{{3}, {7}}}}),
                         doctest::Contains("extent"), tg::shape_error);
}

TEST_CASE("session: a run that trains is training to layers, others are not; placeholders have defaults") {
    tg::session<with_layers> session(3);
    const tg::tensor<float> x{{1, 2, 3}, {4, 6, 8}};
    const float before = session.run<"loss">({{"x", x}});
    CHECK(session.run<"loss">({{"x", x}, {"scale", 4.f}}).item() == 2 * before);
    CHECK(session.variables()["norm/moving_mean"].value<float>()(0) == 0);
    session.run<"train">({{"x", x}});
    CHECK(session.variables()["norm/moving_mean"].value<float>()(0) == doctest::Approx(0.025f)); // 0.01 of 2.5
    const tg::tensor<float> moved = session.variables()["norm/moving_mean"].value<float>();
    session.run<"output">({{"x", x}});
    CHECK(same_bits(session.variables()["norm/moving_mean"].value<float>(), moved));
    session.variables().set_trainable("norm", false);
    session.run<"train">({{"x", x}});
    CHECK(same_bits(session.variables()["norm/moving_mean"].value<float>(), moved));
}

TEST_CASE("session: variables of a model by collection, changed at the host") {
    tg::session<counter> session;
    auto& all = session.variables();
    CHECK(all.size() == 3);
    CHECK(all.collection("trainable").size() == 2);
    CHECK(all.collection("global").size() == 3);
    CHECK(all.collection("local").empty());
    all["n"].assign(tg::tensor<float>(5.f));
    all["n"].assign_add(tg::tensor<float>(2.f));
    all["n"].assign_sub(tg::tensor<float>(3.f));
    CHECK(session.run<"increment">().item() == 5);
    CHECK_THROWS_WITH_AS(all["n"].assign_add(tg::tensor<float>{1, 2}), "variable 'n' has shape [], given [2]",
                         tg::shape_error);
    session.initialize();
    CHECK(session.run<"n">().item() == 0);
}

TEST_CASE("session: a file holds variables, optimizers' state and their steps") {
    const support::temporary_folder folder;
    const auto file = folder.path() / "session.safetensors";
    const tg::tensor<double> target{3, -4};
    tg::session<quadratic> whole, first, second;
    for (int i = 0; i < 5; ++i) whole.run<"adam">({{"target", target}});
    for (int i = 0; i < 2; ++i) first.run<"adam">({{"target", target}});
    first.save(file);
    second.load(file); // before anything has run
    CHECK(second.iterations<"adam">() == 2);
    for (int i = 0; i < 3; ++i) second.run<"adam">({{"target", target}});
    CHECK(second.run<"x">().to_vector() == whole.run<"x">().to_vector());
    CHECK_THROWS_WITH_AS(tg::session<counter>().load(file), doctest::Contains("session.safetensors': no tensor 'n'"),
                         tg::data_error);
}

TEST_CASE("session: errors of feeds name the culprit") {
    tg::session<quadratic> session;
    const tg::tensor<double> target{1, 1};
    CHECK_THROWS_WITH_AS(session.run<"loss">({{"targt", target}}),
                         "session: no placeholder 'targt', there are 'target'; a value of the model is fed as "
                         "given<\"targt\">(...)",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(session.run<"loss">({{"target", target}, {"target", target}}),
                         "session: 'target' is fed twice", tg::argument_error);
    CHECK_THROWS_WITH_AS(session.run<"loss">(), "input 'target' has not been fed", tg::argument_error);
    CHECK_THROWS_AS(session.run<"train">({{"target", tg::tensor<double>{1, 1, 1}}}), tg::shape_error);
    CHECK(session.iterations<"train">() == 0);
    CHECK(session.run<"loss">({{"target", target}}).item() == 1); // an error leaves no feed behind
    CHECK_THROWS_WITH_AS(session.run<"loss">(), "input 'target' has not been fed", tg::argument_error);
}

namespace {
struct typed {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {-1});
        const auto n = scope.template placeholder<std::int32_t>("n", {});
        return tg::fetches{tg::fetch("twice", tg::eval(x * 2)), tg::fetch("n", tg::eval(n + 1))};
    }
};
} // namespace

TEST_CASE("session: numbers of another type are fed as NumPy would turn them") {
    tg::session<typed> session;
    const auto twice = [&](const auto& x) { return session.run<"twice">({{"x", x}}).to_vector(); };
    CHECK(twice(tg::tensor<std::int32_t>{1, -2}) == std::vector<float>{2, -4});
    CHECK(twice(tg::tensor<std::int64_t>{16777217}) == std::vector<float>{33554432}); // rounded once, as by a cast
    CHECK(twice(tg::tensor<double>{0.5, 0.1}) == std::vector<float>{1, 2 * 0.1f});
    CHECK(twice(tg::tensor<std::uint8_t>{255, 0}) == std::vector<float>{510, 0});
    CHECK(twice(tg::eval(tg::cast<tg::half>(tg::tensor<float>{0.5}))) == std::vector<float>{1});
    CHECK(twice(tg::eval(tg::cast<tg::bfloat16>(tg::tensor<float>{-2}))) == std::vector<float>{-4});
    CHECK(twice(tg::tensor<bool>{true, false}) == std::vector<float>{2, 0});
    CHECK(twice(tg::zeros<std::int32_t>(0)).empty());
    CHECK(session.run<"n">({{"n", 4}}).item() == 5);
    CHECK_THROWS_AS(session.run<"n">({{"n", 4.5}}), tg::dtype_error); // a fraction would be lost
    CHECK_THROWS_AS(session.run<"n">({{"n", std::int64_t(4)}}), tg::dtype_error);
}

} // namespace session_test
