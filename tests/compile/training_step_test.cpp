#include <nn/models.hpp>
#include <tapegraph/compile/training_step.hpp>

namespace training_step_test {

using namespace nn_test;

namespace {

struct generator {
    constexpr auto operator()(auto scope, auto noise) const {
        return tg::dense(scope / "out", tanh(tg::dense(scope / "hidden", noise, {.units = 5})), {.units = 2});
    }
};
struct discriminator {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", tanh(tg::dense(scope / "hidden", x, {.units = 4})), {.units = 1});
    }
};
/// Both losses of a generative adversarial network, in one step.
struct gan {
    constexpr auto operator()(auto step, auto real, auto noise) const {
        const auto fake = generator{}(step / "generator", noise);
        const auto judge = (step / "discriminator").reuse();
        const auto of_real = discriminator{}(judge, real), of_fake = discriminator{}(judge, fake);
        const auto d_loss = tg::eval(mean(softplus(-of_real)) + mean(softplus(of_fake)));
        const auto g_loss = tg::eval(mean(softplus(-of_fake)));
        step.template minimize<0>(d_loss, "discriminator");
        step.template minimize<1>(g_loss, "generator");
        return tg::outputs{tg::output<"d_loss">(d_loss), tg::output<"g_loss">(g_loss)};
    }
};
constexpr auto gan_specs =
    tg::inputs{tg::input<"real">(tg::spec<double, tg::dyn, 2>{}), tg::input<"noise">(tg::spec<double, tg::dyn, 3>{})};

/// A model and its loss, by hand.
struct fit_line {
    constexpr auto operator()(auto step, auto x, auto y) const {
        const auto error = tg::eval(tg::dense(step / "line", x, {.units = 1}) - y);
        const auto loss = tg::eval(mean(square(error)));
        step.minimize(loss);
        return loss;
    }
};
struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "line", x, {.units = 1}); }
};

} // namespace

TEST_CASE("a step with one loss trains as a model with that loss") {
    const auto specs =
        tg::inputs{tg::input<"x">(tg::spec<double, tg::dyn, 3>{}), tg::input<"y">(tg::spec<double, tg::dyn, 1>{})};
    each_mode([&](auto mode) {
        auto step = tg::compile_step<decltype(mode)>(fit_line{}, specs, tg::adam{.learning_rate = 0.1});
        auto model = tg::compile<decltype(mode)>(line{}, tg::spec<double, tg::dyn, 3>{}, tg::mean_squared_error{},
                                                 tg::adam{.learning_rate = 0.1});
        const auto x = noise<double>({6, 3}, 1), y = noise<double>({6, 1}, 2);
        for (int i = 0; i < 4; ++i) {
            if (i == 2) step.template optimizer<0>().learning_rate = model.optimizer().learning_rate = 0.01;
            CHECK(step(x, y).item() == model.train_on_batch(x, y).loss);
        }
        CHECK(first_difference(step, model) == "");
        CHECK(step.step() == 4);
        CHECK_THROWS_AS(step(x, noise<double>({5, 1}, 2)), tg::shape_error);
        CHECK(step.step() == 4);
        step.variables().set_trainable("line/bias", false);
        const auto bias = step.variables()["line/bias"].template value<double>();
        step(x, y);
        CHECK(same_bits(bias, step.variables()["line/bias"].template value<double>()));
    });
}

TEST_CASE("two losses, each with variables and an optimizer of its own, alike in both modes") {
    const tg::optimizers both{tg::adam{.learning_rate = 0.05}, tg::sgd{.learning_rate = 0.5}};
    auto a = tg::compile_step<tg::graph>(gan{}, gan_specs, both);
    auto b = tg::compile_step<tg::eager>(gan{}, gan_specs, both);
    const auto real = noise<double>({7, 2}, 1), z = noise<double>({7, 3}, 2);
    for (int i = 0; i < 3; ++i) {
        const auto before = a.variables()["generator/out/bias"].value<double>();
        const auto [d, g] = a(real, z);
        const auto right = b(real, z);
        CHECK(d.item() == right.get<"d_loss">().item());
        CHECK(g.item() == right.get<"g_loss">().item());
        REQUIRE(first_difference(a, b) == "");
        if (i > 0) continue;
        // sgd: the change is -0.5 times the derivative of the generator's loss alone, which central differences show.
        const auto after = a.variables()["generator/out/bias"].value<double>();
        auto c = tg::compile_step<tg::eager>(
            gan{}, gan_specs, tg::optimizers{tg::adam{.learning_rate = 1e-300}, tg::sgd{.learning_rate = 1e-300}});
        const auto loss = [&](double at) {
            auto moved = before;
            moved.set(before(1) + at, 1);
            c.variables()["generator/out/bias"].assign(moved);
            return c(real, z).get<"g_loss">().item();
        };
        const double slope = (loss(1e-5) - loss(-1e-5)) / 2e-5;
        CHECK((after(1) - before(1)) / -0.5 == doctest::Approx(slope).epsilon(1e-8)); // h^2 = 1e-10, rounding 1e-11
    }
    CHECK(a.variables().find("discriminator/score/kernel/adam_m") != nullptr);
    CHECK(a.variables().find("generator/out/kernel/adam_m") == nullptr);
}

TEST_CASE("a model shares a step's variables, and has them after each of its steps") {
    each_mode([](auto mode) {
        auto train = tg::compile_step<decltype(mode)>(gan{}, gan_specs,
                                                      tg::optimizers{tg::sgd{}, tg::sgd{.learning_rate = 0.5}});
        auto made = tg::compile<decltype(mode)>(generator{}, tg::spec<double, tg::dyn, 3>{},
                                                {.shared = &train.variables(), .shared_scope = "generator"});
        const auto real = noise<double>({7, 2}, 1), z = noise<double>({7, 3}, 2);
        const auto first = made.predict(z);
        train(real, z);
        CHECK(!same_bits(first, made.predict(z)));
        CHECK(same_bits(made.variables()["out/kernel"].template value<double>(),
                        train.variables()["generator/out/kernel"].template value<double>()));
        CHECK_THROWS_WITH_AS(
            static_cast<void>(tg::compile<decltype(mode)>(generator{}, tg::spec<double, tg::dyn, 4>{},
                                                          {.shared = &train.variables(), .shared_scope = "generator"})),
            "shared variable 'generator/hidden/kernel' has shape [3, 5], the model takes [4, 5]", tg::shape_error);
    });
}

} // namespace training_step_test
