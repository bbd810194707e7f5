#include <support/messages.hpp>
#include <support/temporary_folder.hpp>

#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/optimizers/adagrad.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/traced.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace traced_session_test {

/// Sessions whose graphs are made when the program runs: the bits of graph mode run by run, and what only they take.

namespace {

namespace tg = tapegraph;

/// Two losses, optimizers of several kinds, an assignment, a layer with moving averages and one that draws. The same function
/// in both modes; `Where` says what is placed on devices.
template <bool Placed>
struct network {
    static constexpr auto on(const auto& scope, const char* name) {
        if constexpr (Placed)
            return scope.with_device(name);
        else
            return name;
    }
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<double>("x", {-1, 3});
        const auto rate = scope.template placeholder_with_default<double>("rate", 2);
        auto h = tg::eval(x * rate);
        {
            [[maybe_unused]] const auto here = on(scope, "/cpu:1");
            h = tg::dense(scope / "first", h, {.units = 4});
            h = tg::batch_normalization(scope / "norm", tanh(h));
        }
        {
            [[maybe_unused]] const auto here = on(scope, "/gpu:0"); // without one it is the CPU
            const auto dropped = tg::dropout(scope / "drop", h, {.rate = 0.5});
            h = scope.named("dropped", 1.5 * dropped);
        }
        auto y = h;
        {
            [[maybe_unused]] const auto here = on(scope, "/cpu:1");
            y = tg::dense(scope / "second", h, {.units = 2});
        }
        const auto a = tg::eval(mean(square(y)));
        const auto b = tg::eval(mean(square(h)));
        const auto loss = tg::eval(a + 0.5 * b);
        const auto n = scope.template variable<double>("n", {}, {.initializer = tg::init::zeros{}, .trainable = false});
        const auto by_adam = tg::minimize(loss, tg::adam{.learning_rate = 0.1});
        auto pairs = tg::compute_gradients(a, {.variables = "second"});
        for (auto& [gradient, variable] : pairs) gradient = clip(gradient, -0.1, 0.1);
        const auto by_hand = tg::apply_gradients(pairs, tg::momentum{.learning_rate = 0.2});
        const auto chained =
            tg::minimize(b, tg::chain{tg::clip_by_global_norm{.norm = 1}, tg::adagrad{.learning_rate = 0.5}},
                         {.variables = "first"});
        return tg::fetches{tg::fetch("loss", loss),
                           tg::fetch("y", y),
                           tg::fetch("n", n),
                           tg::fetch("count", tg::assign_add(n, 1)),
                           tg::fetch("adam", tg::group(by_adam, tg::assign_add(n, 2))),
                           tg::fetch("hand", by_hand),
                           tg::fetch("both", tg::group(by_hand, chained)),
                           tg::fetch("restart", tg::initialize_variables())};
    }
};

const tg::tensor<double> x{{1, 2, 3}, {-1, 0, 2}, {0.5, 0.25, 1}, {3, -2, 1}, {0, 1, -1}};

std::string text_of(const tg::any_tensor& values) { return to_string(tg::tensor<double>(values)); }
std::string variables_of(auto& session) {
    std::string all;
    for (const tg::variable& v : session.variables()) all += v.path() + text_of(v.data()) + '\n';
    return all;
}

// Each line of the one is the same run of the other.
template <bool Placed>
std::string compiled_runs() {
    tg::session<network<Placed>> s(7);
    std::string all;
    for (int i = 0; i < 3; ++i) {
        const auto [loss, n] = s.template run<"adam", "loss", "n">({{"x", x}});
        all += text_of(loss) + text_of(n) + '\n';
    }
    all += text_of(s.template run<"y">({{"x", x}, {"rate", 1.0}}));
    all += text_of(s.template run<"y">(tg::given<"dropped">(tg::ones<double>({5, 4}))));
    s.template run<"hand">({{"x", x}});
    s.variables().set_trainable("norm", false);
    s.template run<"both">({{"x", x}});
    all += text_of(s.template run<"count">());
    all += text_of(s.template run<"dropped">({{"x", x}}));
    all += variables_of(s);
    s.template run<"restart">();
    return all + variables_of(s) + std::to_string(s.template iterations<"both", 0>());
}
template <bool Placed>
std::string traced_runs() {
    auto s = tg::make_session<tg::traced>(network<Placed>{}, 7);
    std::string all;
    for (int i = 0; i < 3; ++i) {
        const auto found = s.run({"adam", "loss", "n"}, {{"x", x}});
        CHECK(found.size() == 2);
        all += text_of(found["loss"]) + text_of(found[1]) + '\n';
    }
    all += text_of(s.run("y", {{"x", x}, {"rate", 1.0}}).only());
    all += text_of(s.run({"y"}, {}, {{"dropped", tg::ones<double>({5, 4})}}).only());
    CHECK(s.run({"hand"}, {{"x", x}}).size() == 0);
    s.variables().set_trainable("norm", false);
    s.run("both", {{"x", x}});
    all += text_of(s.run("count").only());
    all += text_of(s.run(std::string("dropped"), {{"x", x}}).only());
    all += variables_of(s);
    s.run("restart");
    return all + variables_of(s) + std::to_string(s.iterations("both", 0));
}

/// A model that is data: its towers have names that are made when the program runs.
struct towers {
    int count;

    auto operator()(auto scope) const {
        const auto in = scope.template placeholder<float>("in", {-1, 3});
        auto sum = tg::eval(0 * tg::sum(in, {1}, {.keepdims = true}));
        for (int i = 0; i < count; ++i) {
            const auto tower = scope / ("tower_" + std::to_string(i));
            const auto score = tg::dense(tower, in, {.units = 1, .kernel_initializer = tg::init::ones{}});
            sum = tg::eval(sum + tower.named("score", score));
        }
        const auto loss = tg::eval(mean(square(sum)));
        return tg::fetches{tg::fetch("sum", sum),
                           tg::fetch("train", tg::minimize(loss, tg::sgd{.learning_rate = rate}))};
    }
    double rate = 0.01;
};

} // namespace

TEST_CASE("run-time sessions: the bits of graph mode, run by run") {
    const std::string right = compiled_runs<false>();
    CHECK(right.find("first/kernel") != right.npos);
    CHECK(traced_runs<false>() == right);
}

TEST_CASE("run-time sessions: parts on devices by name have the bits of one device") {
    CHECK(traced_runs<true>() == traced_runs<false>());
}

TEST_CASE("run-time sessions: a model is data, and so are names and values of a run") {
    const tg::tensor<float> in{{1, 2, 3}, {0, 0, 1}};
    for (const int count : {1, 5}) {
        auto s = tg::make_session<tg::traced>(towers{count}, 3);
        CHECK(s.variables().size() == 2 * count);
        const tg::tensor<float> sum = s.run("sum", {{"in", in}});
        CHECK(sum.to_vector() == std::vector<float>{6.f * static_cast<float>(count), 1.f * static_cast<float>(count)});
        std::vector<std::string> names;
        for (int i = 0; i < count; ++i) names.push_back("tower_" + std::to_string(i) + "/score");
        const std::vector<std::string_view> wanted(names.begin(), names.end());
        const std::vector<tg::feed> feeds{{"in", in}};
        const auto found = s.run(wanted, feeds);
        REQUIRE(found.size() == count);
        for (const std::string& name : names)
            CHECK(tg::tensor<float>(found[name]).to_vector() == std::vector<float>{6, 1});
        s.run("train", {{"in", in}});
        CHECK(s.iterations("train") == 1);
        s.optimizer<tg::sgd>("train").learning_rate = 0;
        const tg::tensor<float> moved = s.run("sum", {{"in", in}});
        s.run("train", {{"in", in}});
        CHECK(tg::tensor<float>(s.run("sum", {{"in", in}})).to_vector() == moved.to_vector());
    }
    // A lambda that captures is a model; its one number converts.
    double factor = 3;
    auto s = tg::make_session<tg::traced>([factor](auto scope) {
        const auto n = scope.template placeholder<std::int32_t>("n", {});
        return tg::fetches{tg::fetch("n", tg::eval(n + 1)), tg::fetch("y", tg::eval(factor * tg::cast<float>(n)))};
    });
    factor = 0;
    const int n = s.run("n", {{"n", 4}});
    const double y = s.run("y", {{"n", 4}});
    CHECK(n == 5);
    CHECK(y == 12);
    CHECK(tg::make_session<tg::graph>(network<false>{}, 7).run<"n">().item() == 0);
}

TEST_CASE("run-time sessions: a file goes from one mode to the other") {
    const support::temporary_folder folder;
    const auto file = folder.path() / "session.safetensors";
    tg::session<network<false>> compiled(7), next(7);
    auto traced = tg::make_session<tg::traced>(network<false>{}, 7);
    for (int i = 0; i < 2; ++i) traced.run("adam", {{"x", x}});
    traced.save(file);
    next.load(file);
    CHECK(next.iterations<"adam">() == 2);
    for (int i = 0; i < 2; ++i) compiled.run<"adam">({{"x", x}});
    compiled.run<"adam">({{"x", x}});
    next.run<"adam">({{"x", x}});
    traced.run("adam", {{"x", x}});
    CHECK(next.variables().size() == traced.variables().size()); // with the state of all optimizers
    for (const tg::variable& v : next.variables()) {
        CAPTURE(v.path());
        CHECK(text_of(v.data()) == text_of(traced.variables()[v.path()].data()));
    }
    const tg::tensor<double> found = traced.run("y", {{"x", x}}), right = compiled.run<"y">({{"x", x}});
    CHECK(found.to_vector() == right.to_vector());
}

TEST_CASE("run-time sessions: errors name the culprit, and nothing has changed") {
    auto s = tg::make_session<tg::traced>(network<false>{}, 7);
    const std::string before = variables_of(s);
    const auto refused = [&](auto... arguments) {
        return support::message_of<tg::shape_error>([&] { s.run(arguments...); });
    };
    CHECK(refused("loos").find("session: the model has no fetch of this name") == 0);
    const auto replaced = [&](const char* name) {
        return support::message_of<tg::shape_error>([&] { s.run({"y"}, {}, {{name, 1.0}}); });
    };
    CHECK(replaced("first/kernel").find("session: nothing of the model that could be given has this name") == 0);
    CHECK(replaced("n").find("session: a variable is not given: assign to it") == 0);
    const auto twice = support::message_of<tg::shape_error>([&] { s.run({"adam", "both"}, {{"x", x}}); });
    CHECK(twice.find("session: two operations of one run assign one variable") == 0);
    CHECK_THROWS_WITH_AS(s.run("y"), "input 'x' has not been fed", tg::argument_error);
    CHECK_THROWS_WITH_AS(s.run("y", {{"x", x}, {"x", x}}), "session: 'x' is fed twice", tg::argument_error);
    CHECK_THROWS_WITH_AS(s.run("y", {{"z", x}}),
                         doctest::Contains("session: no placeholder 'z', there are 'x', 'rate'"), tg::argument_error);
    CHECK_THROWS_AS(s.run("adam", {{"x", tg::ones<double>({2, 4})}}), tg::shape_error);
    CHECK(s.iterations("adam") == 0);
    CHECK_THROWS_WITH_AS(s.iterations("loss"), doctest::Contains("the fetch 'loss' has no such optimizer"),
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(s.optimizer<tg::sgd>("adam"), doctest::Contains("there are those of 'adam'"),
                         tg::argument_error);
    CHECK_THROWS_AS([&] { [[maybe_unused]] const double y = s.run("y", {{"x", x}}); }(), tg::shape_error);
    CHECK_THROWS_AS([&] { [[maybe_unused]] const tg::tensor<float> y = s.run("y", {{"x", x}}); }(), tg::dtype_error);
    CHECK(variables_of(s).find(before) == 0); // what follows them is state of optimizers
    s.close();
    CHECK_THROWS_WITH_AS(s.run("y", {{"x", x}}), "session: it is closed", tg::argument_error);
    // A model that cannot be made is told where the session is.
    const auto text = support::message_of<tg::shape_error>([] {
        tg::make_session<tg::traced>([](auto scope) {
            const auto v = scope.template placeholder<float>("v", {2, 3});
            return tg::fetches{tg::fetch("product", matmul(v, v))};
        });
    });
    CHECK(text.find("matmul: inner extents differ: f32[2,3] and f32[2,3]") == 0);
}

TEST_CASE("run-time sessions: a run has no gradient on a tape, and requesting one throws") {
    auto s = tg::make_session<tg::traced>(network<false>{}, 7);
    tg::tensor<double> at = x;
    tg::gradient_tape tape;
    tape.watch(at);
    const tg::tensor<double> y = s.run("y", {{"x", at}});
    CHECK_THROWS_WITH_AS(tape.gradient(sum(y), at), doctest::Contains("a session's runs have no gradient"),
                         tg::argument_error);
}

} // namespace traced_session_test
