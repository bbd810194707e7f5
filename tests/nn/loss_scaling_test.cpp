#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/nn/optimizers/adagrad.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <nn/models.hpp>

#include <limits>

/// Scaling of the loss outside of tg::compile: in steps of one's own, sessions and loops, against the scales that the gradients ask
/// for. mixed_precision_test.cpp has compiled models.

namespace loss_scaling_test {

using namespace nn_test;

namespace {

/// Its derivative by w is z x, which passes half.
constexpr auto half_product(const auto& w, const auto& x, const auto& z) {
    return tg::eval(sum(tg::cast<float>(tg::cast<tg::half>(w) * tg::cast<tg::half>(x)) * z));
}
constexpr tg::chain optimizer{tg::loss_scaling{.initial_scale = 32768, .growth_steps = 3},
                              tg::clip_by_global_norm{.norm = 4}, tg::adam{.learning_rate = 0.125}};

template <class Scope>
constexpr auto weight(const Scope& scope, std::string_view name) {
    return scope.template variable<float>(
        name, {1}, {.initializer = tg::init::constant{0.5}, .regularizer = tg::regularizers::l2{0.25}});
}

struct product_step {
    constexpr auto operator()(auto step, auto x, auto z) const {
        const auto loss = half_product(weight(step, "w"), x, z);
        step.minimize(loss);
        return loss;
    }
};
/// The same as a model.
struct product {
    constexpr auto operator()(auto scope, auto x, auto z) const {
        scope.add_loss(half_product(weight(scope, "w"), x, z));
        return x;
    }
};
struct product_session {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {1});
        const auto z = scope.template placeholder<float>("z", {1});
        const auto loss = half_product(weight(scope, "w"), x, z);
        return tg::fetches{tg::fetch("loss", loss), tg::fetch("train", tg::minimize(loss, optimizer)),
                           tg::fetch("w", weight(scope.reuse(), "w")),
                           tg::fetch("other", tg::minimize(loss, tg::sgd{}))};
    }
};
/// Two losses, two scales.
struct two_products {
    constexpr auto operator()(auto step, auto x, auto z) const {
        const auto a = half_product(weight(step, "a"), x, z), b = half_product(weight(step, "b"), x, 2 * z);
        step.template minimize<0>(a, "a");
        step.template minimize<1>(b, "b");
        return tg::outputs{tg::output<"a">(a), tg::output<"b">(b)};
    }
};
const auto specs = tg::inputs{tg::input<"x">(tg::spec<float, 1>{}), tg::input<"z">(tg::spec<float, 1>{})};

const float nan = std::numeric_limits<float>::quiet_NaN();
// 3 times 2^15 is beyond half's 65504, 3 times 2^14 is not; NaN never passes.
const float slopes[]{1, 3, 3, 3, 0.5, nan, 1, 1, 1, 3};
const float scales[]{32768, 16384, 16384, 16384, 32768, 16384, 16384, 16384, 32768, 16384};

float value_of(auto& owner, const char* path) { return owner.variables()[path].template value<float>().data()[0]; }

} // namespace

TEST_CASE("loss_scaling: a step of one's own, a session and both modes of a model keep the same bits") {
    auto graph = tg::compile_step<tg::graph>(product_step{}, specs, optimizer);
    auto eager = tg::compile_step<tg::eager>(product_step{}, specs, optimizer);
    auto model = tg::compile<tg::graph>(product{}, specs, tg::added_losses{}, optimizer);
    tg::session<product_session> session;
    const tg::tensor<float> x{1};
    for (std::size_t i = 0; i < std::size(slopes); ++i) {
        CAPTURE(i);
        const tg::tensor<float> z{slopes[i]};
        const float before = value_of(model, "w");
        const tg::tensor<float> loss = graph(x, z);
        CHECK(same_bits(loss, eager(x, z)));
        model.train_on_batch(x, z);
        session.run<"train">({{"x", x}, {"z", z}});
        CHECK(value_of(model, "loss_scale") == scales[i]);
        CHECK(value_of(graph, "loss_scale") == scales[i]);
        CHECK(value_of(eager, "loss_scale") == scales[i]);
        CHECK(value_of(session, "optimizer/0/loss_scale") == scales[i]);
        const float after = value_of(model, "w");
        CHECK((after == before) == (i == 1 || i == 5 || i == 9));
        CHECK(value_of(graph, "w") == after);
        CHECK(value_of(eager, "w") == after);
        CHECK(value_of(session, "w") == after);
        for (const char* path : {"w/adam_m", "w/adam_v", "loss_scale_good_steps"})
            CHECK(value_of(graph, path) == value_of(eager, path));
    }
    CHECK(session.variables()["optimizer/0/loss_scale"].optimizer_state());
    CHECK(graph.variables()["loss_scale"].optimizer_state());
}

TEST_CASE("loss_scaling: each of a step's optimizers has a scale, and each optimizer its first values") {
    const tg::optimizers both{tg::chain{tg::loss_scaling{.initial_scale = 32768}, tg::adagrad{.learning_rate = 0.125}},
                              tg::chain{tg::loss_scaling{.initial_scale = 16384}, tg::adam{.learning_rate = 0.125}}};
    auto graph = tg::compile_step<tg::graph>(two_products{}, specs, both);
    auto eager = tg::compile_step<tg::eager>(two_products{}, specs, both);
    CHECK(value_of(graph, "a/accumulator") == 0.1f);
    CHECK(value_of(eager, "a/accumulator") == 0.1f);
    CHECK(value_of(graph, "b/adam_m") == 0);
    const tg::tensor<float> x{1};
    const auto step = [&](float z) {
        graph(x, tg::tensor<float>{z});
        eager(x, tg::tensor<float>{z});
    };
    for (const char* path : {"loss_scale", "optimizer/1/loss_scale"})
        CHECK(value_of(graph, path) == (path[0] == 'l' ? 32768 : 16384));
    step(1.5f); // 1.5 2^15 and 3 2^14: both pass
    CHECK(value_of(graph, "loss_scale") == 32768);
    CHECK(value_of(graph, "optimizer/1/loss_scale") == 16384);
    const float a = value_of(graph, "a"), b = value_of(graph, "b");
    step(2.5f); // 2.5 2^15 does not pass, nor does 5 2^14
    CHECK(value_of(graph, "loss_scale") == 16384);
    CHECK(value_of(graph, "optimizer/1/loss_scale") == 8192);
    CHECK(value_of(graph, "a") == a);
    CHECK(value_of(graph, "b") == b);
    step(2.5f); // both pass
    graph.variables()["optimizer/1/loss_scale"].assign(tg::tensor<float>(65536.f));
    eager.variables()["optimizer/1/loss_scale"].assign(tg::tensor<float>(65536.f));
    const float b_before = value_of(graph, "b"), a_before = value_of(graph, "a");
    step(1); // 2 2^16 does not: the other goes on
    CHECK(value_of(graph, "b") == b_before);
    CHECK(value_of(graph, "a") != a_before);
    for (const tg::variable& v : graph.variables()) {
        CAPTURE(v.path());
        CHECK(same_bits(v.data(), eager.variables()[v.path()].data()));
    }
}

TEST_CASE("loss_scaling: applied by hand") {
    tg::tensor<float> w{0.5f};
    tg::applied by_hand(optimizer, w);
    CHECK(by_hand.loss_scale() == 32768);
    tg::tensor<float> plain{0.5f};
    tg::applied in_two_parts(optimizer, plain);
    const tg::tensor<float> x{1};
    for (std::size_t i = 0; i < std::size(slopes); ++i) {
        CAPTURE(i);
        const tg::tensor<float> z{slopes[i]};
        const float before = w(0);
        const auto loss = by_hand.minimize([&] { return half_product(w, x, z); });
        if (i != 5) CHECK(loss.item() == static_cast<float>(tg::half(before)) * slopes[i]); // unscaled
        CHECK(by_hand.loss_scale() == scales[i]);
        CHECK((w(0) == before) == (i == 1 || i == 5 || i == 9));
        // Gradients from elsewhere are of the loss times loss_scale().
        tg::gradient_tape tape;
        tape.watch(plain);
        const auto scaled = tg::eval(half_product(plain, x, z) * in_two_parts.loss_scale());
        const std::vector<tg::any_tensor> gradients = tape.gradient(scaled, std::vector<tg::any_tensor>{plain});
        plain.set_tape_index({});
        in_two_parts.apply_gradients(gradients);
        CHECK(same_bits(w, plain));
    }
    CHECK(by_hand.state()["loss_scale"].optimizer_state());
    CHECK(by_hand.step() == static_cast<std::int64_t>(std::size(slopes)));

    tg::tensor<float> narrow{0.5f};
    tg::tensor<double> wide{0.5};
    tg::applied mixed(tg::chain{tg::loss_scaling{.initial_scale = 4, .growth_steps = 1}, tg::sgd{.learning_rate = 0.5}},
                      narrow, wide);
    mixed.minimize([&] { return tg::eval(sum(tg::cast<double>(narrow) * 3 + wide)); });
    CHECK(narrow(0) == -1);
    CHECK(wide(0) == 0);
    CHECK(mixed.loss_scale() == 8);
    tg::applied never(tg::chain{tg::loss_scaling{.growth_steps = 0}, tg::sgd{}}, narrow);
    CHECK_THROWS_WITH_AS(never.minimize([&] { return sum(narrow); }),
                         "loss_scaling: growth_steps must be positive, given 0", tg::argument_error);
    CHECK(tg::applied(tg::sgd{}, narrow).loss_scale() == 1);
}

} // namespace loss_scaling_test
