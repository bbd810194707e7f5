#include <support/captured_stderr.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <string>
#include <tuple>

namespace session_devices_test {

/// Parts of a session's model on devices by name: the bits of the same model in one place. Virtual CPUs show it on any machine.

namespace {

namespace tg = tapegraph;

/// `Placed`: on three places, one of them twice. A layer with moving averages, an optimizer with state, random numbers.
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
        auto h = tg::eval(x * 2);
        {
            [[maybe_unused]] const auto here = on(scope, "/cpu:1");
            h = tg::dense(scope / "first", h, {.units = 4});
            h = tg::batch_normalization(scope / "norm", tanh(h));
        }
        {
            [[maybe_unused]] const auto here = on(scope, "/gpu:0"); // without one it is the CPU
            h = scope.named("dropped", 1.5 * tg::dropout(scope / "drop", h, {.rate = 0.5}));
        }
        auto y = h;
        {
            [[maybe_unused]] const auto here = on(scope, "/device:CPU:1");
            y = tg::dense(scope / "second", h, {.units = 2});
        }
        const auto loss = tg::eval(mean(square(y)) + 0.5 * mean(square(h)));
        const auto n = scope.template variable<double>("n", {}, {.initializer = tg::init::zeros{}, .trainable = false});
        const auto first = tg::minimize(loss, tg::adam{.learning_rate = 0.1});
        return tg::fetches{tg::fetch("loss", loss), tg::fetch("y", y), tg::fetch("n", n),
                           tg::fetch("train", tg::group(first, tg::assign_add(n, 1)))};
    }
};

template <bool Placed>
auto trained(const tg::tensor<double>& x) {
    tg::session<network<Placed>> session(7);
    std::string all;
    for (int i = 0; i < 3; ++i) {
        const auto [loss, n] = session.template run<"train", "loss", "n">({{"x", x}});
        all += to_string(loss) + ' ' + to_string(n) + '\n';
    }
    all += to_string(session.template run<"y">({{"x", x}})) + '\n';
    all += to_string(session.template run<"y">(tg::given<"dropped">(tg::ones<double>({5, 4})))) + '\n';
    session.variables().set_trainable("first", false);
    session.template run<"train">({{"x", x}});
    for (const tg::variable& v : session.variables()) all += v.path() + to_string(v.template value<double>()) + '\n';
    return all;
}

} // namespace

TEST_CASE("session: parts of a model on devices by name give the bits of one device") {
    const tg::tensor<double> x{{1, 2, 3}, {-1, 0, 2}, {0.5, 0.25, 1}, {3, -2, 1}, {0, 1, -1}};
    const std::string one = trained<false>(x);
    CHECK(one.find("first/kernel") != one.npos);
    CHECK(trained<true>(x) == one);
}

TEST_CASE("session: the placement log names the copies between devices") {
    tg::session<network<true>> session;
    const tg::tensor<double> x{{1, 2, 3}, {4, 5, 6}};
    session.run<"y">({{"x", x}}); // says once that there is no GPU
    tg::log_placement(true);
    const std::string text = test::captured_stderr([&] {
        session.run<"loss">({{"x", x}});
        session.run<"loss">({{"x", x}});
    });
    tg::log_placement(false);
    const std::string copy = "tapegraph: copy f64[2, 4] from /cpu:1 to /gpu:0\n";
    CHECK(text.find("tapegraph: copy f64[2, 3] from the model's device to /cpu:1\n") != text.npos);
    CHECK(text.find(copy) != text.npos);
    CHECK(text.find(copy, text.find(copy) + 1) == text.npos); // once
}

TEST_CASE("session: without soft placement a GPU that is not there is an error") {
    tg::session<network<true>> session;
    session.set_soft_placement(false);
    if (tg::list_devices().size() == 1)
        CHECK_THROWS_AS(session.run<"y">({{"x", tg::zeros<double>({2, 3})}}), tg::device_error);
}

} // namespace session_devices_test
