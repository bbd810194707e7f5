#include <nn/models.hpp>

#include <tuple>

namespace taped_program_test {

using namespace nn_test;

// Compiled programs under a gradient_tape: the bits of eager mode, and an error where there is no derivative.

namespace {

// Results of three kinds: one that the last is made of, one without a derivative, one more.
struct several {
    constexpr auto operator()(const auto& x, const auto& w) const {
        const auto p = softmax(x);
        const auto h = tg::eval(tanh(matmul(x, w)) * p);
        return std::tuple{h, argmax(h, 1), tg::eval(exp(h) + x)};
    }
};
template <class Mode, class T>
auto make_several() {
    return tg::function<Mode>(several{}, tg::spec<T, tg::dyn, 4>{}, tg::spec<T, 4, 4>{});
}

struct noisy {
    constexpr auto operator()(const auto& x) const { return x * exp(tg::random::normal_like(x)); }
};
struct fetching {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {2});
        return tg::fetches{tg::fetch("y", tg::eval(square(x)))};
    }
};
struct quadratic {
    constexpr auto operator()(const auto& x) const { return sum(square(x) * x); }
};

struct nested {
    constexpr auto operator()(const auto& x) const {
        return std::tuple<std::tuple<decltype(tg::eval(x + 1))>>{std::tuple{tg::eval(x + 1)}};
    }
};
struct reshaped {
    constexpr auto operator()(auto scope, auto x) const { // [batch, 2, 3]
        const auto turned = tg::eval(tg::expand_dims(x, 1));
        return tg::dense(scope / "out", tg::flatten(turned), {.units = 2});
    }
};

} // namespace

TEST_CASE("a function that returns a tuple of one tuple gives one") {
    const auto of = [](auto f) {
        const std::tuple<std::tuple<tg::tensor<double>>> y = f(tg::tensor<double>{1, 2});
        return std::get<0>(std::get<0>(y));
    };
    const auto a = of(tg::function<tg::graph>(nested{}, tg::spec<double, 2>{}));
    CHECK(same_bits(a, tg::tensor<double>{2, 3}));
    CHECK(same_bits(a, of(tg::function<tg::eager>(nested{}, tg::spec<double, 2>{}))));
}

TEST_CASE("of the reshapes outside of layers the table shows flatten alone") {
    const auto table = tg::summarize(reshaped{}, tg::spec<float, tg::dyn, 2, 3>{});
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0].type == "flatten");
    CHECK(table.rows[0].output == "[?, 6]");
    CHECK(table.rows[1].path == "out");
}

TEST_CASE_TEMPLATE("compiled function on a tape: gradients by every argument, the bits of eager mode", T, float,
                   double) {
    const auto gradients = [](auto& f, std::int64_t batch, bool last) {
        tg::tensor<T> x = noise<T>({batch, 4}, 1), w = noise<T>({4, 4}, 2);
        tg::gradient_tape tape;
        tape.watch(x, w);
        const auto [h, i, y] = f(x, w);
        const tg::tensor<T> loss = last ? tg::tensor<T>(sum(square(y))) : tg::tensor<T>(sum(y) + sum(exp(h)));
        return tape.gradient(loss, x, w, h, y);
    };
    auto compiled = make_several<tg::graph, T>();
    auto eager = make_several<tg::eager, T>();
    for (const bool last : {false, true})
        for (const std::int64_t batch : {3, 1, 17}) {
            const auto a = gradients(compiled, batch, last), b = gradients(eager, batch, last);
            CHECK(same_bits(std::get<0>(a), std::get<0>(b)));
            CHECK(same_bits(std::get<1>(a), std::get<1>(b)));
            CHECK(same_bits(std::get<3>(a), std::get<3>(b)));

            if (last) CHECK(same_bits(std::get<2>(a), tg::zeros<T>({batch, 4}))); // results do not depend on each other
            CHECK(std::get<0>(a).data()[1] != 0);
        }
}

TEST_CASE("compiled function on a tape: operands on the tape alone, one operand twice, several calls") {
    auto f = make_several<tg::graph, double>();
    auto e = make_several<tg::eager, double>();
    const auto both = [](auto& g) {
        const tg::tensor<double> x = noise<double>({5, 4}, 1);
        tg::tensor<double> w = noise<double>({4, 4}, 2);
        tg::gradient_tape tape;
        tape.watch(w);
        const tg::tensor<double> once = std::get<2>(g(x, w)), twice = std::get<0>(g(w, w));
        return tape.gradient(sum(once) + sum(square(twice)), w);
    };
    const tg::tensor<double> a = both(f), b = both(e);
    for (int i = 0; i < 16; ++i) CHECK(a.data()[i] == doctest::Approx(b.data()[i]).epsilon(1e-13));
}

TEST_CASE("compiled function on a tape: what is recorded outlives the function and does not see later writes") {
    tg::tensor<double> x{1, 2, 3}, y = 0.0;
    tg::gradient_tape tape;
    {
        auto f = tg::function<tg::graph>(quadratic{}, tg::spec<double, 3>{});
        tg::tensor<double> h = x;
        tape.watch(h);
        y = f(h);
        x = h;
        h = tg::tensor<double>{7, 8, 9};
    }
    CHECK(tape.gradient(y, x).to_vector() == std::vector<double>{3, 12, 27});
}

TEST_CASE("compiled function on a tape: random numbers are those of the call, also when a checkpoint calls again") {
    const auto gradients = [](auto&& f, bool checkpoint) {
        f.set_seed(5);
        tg::tensor<float> x = noise<float>({40}, 1);
        tg::gradient_tape tape;
        tape.watch(x);
        const auto call = [&f](const auto& v) { return tg::sum(f(v) * v); };
        const tg::tensor<float> y =
            checkpoint ? tg::eval(tg::checkpoint(call)(x) + tg::checkpoint(call)(x)) : tg::eval(call(x) + call(x));
        return tape.gradient(y, x);
    };
    const auto compiled = gradients(tg::function<tg::graph>(noisy{}, tg::spec<float, tg::dyn>{}), false);
    CHECK(compiled.data()[0] != 0);
    CHECK(same_bits(compiled, gradients(tg::function<tg::graph>(noisy{}, tg::spec<float, tg::dyn>{}), true)));
    CHECK(same_bits(compiled, gradients(tg::function<tg::eager>(noisy{}, tg::spec<float, tg::dyn>{}), false)));
    CHECK(same_bits(compiled, gradients(tg::function<tg::eager>(noisy{}, tg::spec<float, tg::dyn>{}), true)));
}

TEST_CASE("compiled function on a tape: nothing is recorded for constants, effects happen once") {
    static int printed = 0;
    printed = 0;
    tg::set_print_sink([](std::string_view) { ++printed; });
    auto f = tg::function<tg::graph>([](const auto& x) { return tg::print<"x">(square(x)); }, tg::spec<double, 2>{});
    tg::tensor<double> x{1, 2};
    const tg::tensor<double> constant{3, 4};
    tg::gradient_tape tape;
    tape.watch(x);
    CHECK(f(constant).tape_index().serial == 0);
    CHECK(tape.gradient(f(x) * f(constant), x).to_vector() == std::vector<double>{18, 64});
    tg::set_print_sink(nullptr);
    CHECK(printed == 3);
}

TEST_CASE("compiled function on a tape: integers are arguments without derivative") {
    auto f = tg::function<tg::graph>([](const auto& t, const auto& i) { return gather(t, i, 0); }, tg::spec<float, 3>{},
                                     tg::spec<std::int64_t, 2>{});
    tg::tensor<float> table{1, 2, 3};
    tg::gradient_tape tape;
    tape.watch(table);
    CHECK(tape.gradient(f(table, {2, 2}), table).to_vector() == std::vector<float>{0, 0, 2});
}

TEST_CASE("compiled function on a tape: higher derivatives, forward mode and derivatives within are refused, when "
          "requested") {
    auto f = tg::function<tg::graph>(quadratic{}, tg::spec<double, 2>{});
    const auto value = [&f](const auto& x) { return f(x); };
    tg::tensor<double> x{1, 2};
    CHECK(tg::gradient(value)(x).to_vector() == std::vector<double>{3, 12});
    CHECK(tg::vjp(value)(2.0, x).gradient.to_vector() == std::vector<double>{6, 24});

    const char* const second =
        "gradient_tape: the gradient of a compiled program has no derivative on the tape; take both "
        "inside the program, or call it in eager mode";
    const char* const forward =
        "jvp: a compiled program on the tape has no forward mode; compile its jvp, or call it in eager mode";
    CHECK_THROWS_WITH_AS(tg::gradient([&](const auto& v) { return sum(tg::gradient(value)(v)); })(x), second,
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::jvp(value)(x, x), forward, tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::hvp(value)(x, x), forward, tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::hessian(value)(x), forward, tg::argument_error);

    {
        tg::gradient_tape tape({.persistent = true});
        tape.watch(x);
        const tg::tensor<double> y = f(x);
        const auto dx = tape.gradient(y, x);
        CHECK(dx.to_vector() == std::vector<double>{3, 12});
        const tg::tensor<double> z = sum(dx) + sum(x);
        CHECK(tape.gradient(y, x).to_vector() == std::vector<double>{3, 12}); // as often as one likes
        CHECK_THROWS_WITH_AS(tape.gradient(z, x), second, tg::argument_error);
    }
    auto g = tg::function<tg::graph>(tg::gradient(quadratic{}), tg::spec<double, 2>{});
    tg::gradient_tape tape;
    tape.watch(x);
    const tg::tensor<double> y = sum(g(x));
    CHECK_THROWS_WITH_AS(
        tape.gradient(y, x),
        "gradient_tape: a compiled program has no gradient on the tape: it takes derivatives itself; call "
        "it in eager mode",
        tg::argument_error);
}

TEST_CASE("predict on a tape: the gradient by the model's input, the bits of eager mode") {
    const auto model = [](auto mode) {
        using Mode = decltype(mode);
        return tg::compile<Mode>(small_mlp{}, mlp_spec<double>{}, tg::sparse_softmax_cross_entropy{},
                                 tg::sgd{.learning_rate = 0.5}, {.seed = 3});
    };
    const auto saliency = [](auto m, bool trained) {
        tg::tensor<double> x = noise<double>({7, 6}, 4);
        m.train_on_batch(x, tg::tensor<std::int32_t>{0, 1, 2, 0, 1, 2, 0});
        tg::gradient_tape tape;
        tape.watch(x);
        const tg::tensor<double> score = slice(m.predict(x), {tg::all, {1, 2}});
        tape.stop_recording();
        if (trained) m.train_on_batch(noise<double>({7, 6}, 5), tg::zeros<std::int32_t>({7}));
        { const auto gone = std::move(m); }
        return tape.gradient(score, x);
    };
    const auto expected = saliency(model(tg::eager{}), false);
    CHECK(expected.data()[0] != 0);
    CHECK(same_bits(saliency(model(tg::graph{}), false), expected));
    CHECK(same_bits(saliency(model(tg::graph{}), true), expected)); // of the variables as they were
}

TEST_CASE("session under a tape: requesting the gradient of a fetch throws the reason") {
    tg::session<fetching> session;
    tg::tensor<float> x{1, 2};
    tg::gradient_tape tape;
    tape.watch(x);
    const tg::tensor<float> y = session.run<"y">({{"x", x}});
    CHECK(y.to_vector() == std::vector<float>{1, 4});
    CHECK_THROWS_WITH_AS(tape.gradient(y, x), doctest::Contains("a session's runs have no gradient on the tape"),
                         tg::argument_error);
}

} // namespace taped_program_test
