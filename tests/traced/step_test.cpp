#include "words.hpp"

#include <support/messages.hpp>

#include <string>
#include <vector>

namespace traced_step_test {

/// Steps of one's own whose graph is made when the program runs.

using namespace nn_test;
using support::message_of;

namespace {

/// Layers as a type, and as data.
struct one_layer {
    constexpr auto operator()(auto scope, auto x, int outputs) const {
        const auto h = tg::dense(scope / "layer_1", x, {.units = 5});
        return tg::dense(scope / "out", tg::eval(tanh(h)), {.units = outputs});
    }
};
struct some_layers {
    std::vector<int> units;

    auto operator()(auto scope, auto x, int outputs) const {
        auto h = x;
        for (std::size_t i = 0; i < units.size(); ++i)
            h = tanh(tg::dense(scope / ("layer_" + std::to_string(i + 1)), h, {.units = units[i]}));
        return tg::dense(scope / "out", h, {.units = outputs});
    }
};
/// A generator and a discriminator.
template <class Layers>
struct gan {
    Layers layers{};

    constexpr auto operator()(auto step, auto real, auto noise) const {
        const auto fake = layers(step / "generator", noise, 2);
        const auto judge = (step / "discriminator").reuse();
        const auto of_real = layers(judge, real, 1);
        const auto of_fake = layers(judge, fake, 1);
        const auto when_real = tg::eval(mean(softplus(-of_real)));
        const auto when_fake = tg::eval(mean(softplus(of_fake)));
        const auto d_loss = tg::eval(when_real + when_fake);
        const auto g_loss = tg::eval(mean(softplus(-of_fake)));
        step.template minimize<0>(d_loss, "discriminator");
        step.template minimize<1>(g_loss, "generator");
        return tg::outputs{tg::output<"d_loss">(d_loss), tg::output<"g_loss">(g_loss)};
    }
};
struct fixed_gan {
    constexpr auto operator()(auto step, auto real, auto noise) const { return gan<one_layer>{}(step, real, noise); }
};

constexpr auto specs =
    tg::inputs{tg::input<"real">(tg::spec<double, tg::dyn, 2>{}), tg::input<"noise">(tg::spec<double, tg::dyn, 3>{})};
const tg::optimizers both{tg::adam{.learning_rate = 0.05}, tg::sgd{.learning_rate = 0.5}};

} // namespace

TEST_CASE("run-time graphs: a step of two losses whose layers are data is that of graph mode") {
    auto compiled = tg::compile_step<tg::graph>(fixed_gan{}, specs, both, {.seed = 2});
    auto traced = tg::compile_step<tg::traced>(gan<some_layers>{{{5}}}, specs, both, {.seed = 2});
    REQUIRE(first_difference(compiled, traced) == "");
    CHECK(compiled.summary() == traced.summary());
    for (int i = 0; i < 4; ++i) {
        const std::int64_t batch = 7 - 2 * i;
        const auto real = noise<double>({batch, 2}, 1), z = noise<double>({batch, 3}, 2);
        if (i == 2) compiled.optimizer<0>().learning_rate = traced.optimizer<0>().learning_rate = 0.01;
        const auto [d, g] = compiled(real, z);
        const auto found = traced(real, z);
        CHECK(d.item() == found.get<"d_loss">().item());
        CHECK(g.item() == found.get<"g_loss">().item());
        REQUIRE(first_difference(compiled, traced) == "");
    }
    CHECK(traced.step() == 4);
    const auto before = traced.variables()["generator/out/bias"].value<double>();
    CHECK_THROWS_AS(traced(noise<double>({3, 4}, 1), noise<double>({3, 3}, 2)), tg::shape_error);
    CHECK(traced.step() == 4);
    CHECK(same_bits(before, traced.variables()["generator/out/bias"].value<double>()));
}

TEST_CASE("run-time graphs: deeper steps, whose words are the compiler's, shared with a model") {
    auto compiled = tg::compile_step<tg::graph>(fixed_gan{}, specs, both);
    auto traced = tg::compile_step<tg::traced>(fixed_gan{}, specs, both);
    CHECK(words_test::difference(compiled.training_view(), traced.training_view()) == "");
    auto deep = tg::compile_step<tg::traced>(gan<some_layers>{{{4, 6, 4}}}, specs, both);
    const some_layers layers{{4, 6, 4}};
    auto made = tg::compile<tg::traced>([layers](auto scope, auto z) { return layers(scope, z, 2); },
                                        tg::spec<double, tg::dyn, 3>{},
                                        {.shared = &deep.variables(), .shared_scope = "generator"});
    const auto real = noise<double>({7, 2}, 1), z = noise<double>({7, 3}, 2);
    const auto first = made.predict(z);
    deep(real, z);
    CHECK(!same_bits(first, made.predict(z)));
}

TEST_CASE("run-time graphs: errors of a step name the culprit") {
    const auto refused = [](auto step) {
        return message_of<tg::shape_error>(
            [&] { static_cast<void>(tg::compile_step<tg::traced>(step, tg::spec<float, tg::dyn, 3>{}, tg::sgd{})); });
    };
    CHECK(refused([](auto, auto x) { return mean(x); }).find("a step minimizes nothing") == 0);
    CHECK(refused([](auto step, auto x) {
              const auto loss = tg::eval(mean(tg::dense(step / "out", x, {.units = 1})));
              step.minimize(loss, "none");
              return loss;
          }).find("minimize: no trainable variable has a path of this pattern") == 0);
}

} // namespace traced_step_test
