#include <nn/models.hpp>
#include <tapegraph/compile/instance.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/nn/sequential.hpp>

namespace instance_test {

using namespace nn_test;

namespace {
struct normalized {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 5});
        h = tg::batch_normalization(scope / "norm", tanh(h), {.momentum = 0.5});
        h = tg::dropout(scope / "drop", h, {.rate = 0.25});
        return tg::dense(scope / "out", h, {.units = 2});
    }
};
using spec = tg::spec<double, tg::dyn, 3>;
} // namespace

TEST_CASE("a loop of one's own over an instance makes fit's steps, bit for bit") {
    auto model = tg::compile<tg::eager>(normalized{}, spec{}, tg::mean_squared_error{}, tg::adam{.learning_rate = 0.1});
    auto net = tg::instance(normalized{}, spec{});
    tg::applied optimizer(tg::adam{.learning_rate = 0.1}, net.variables());
    const auto x = noise<double>({6, 3}, 1), y = noise<double>({6, 2}, 2);
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        tg::gradient_tape tape;
        const auto loss = tg::eval(tg::mean_squared_error{}(net.in_training(x), y));
        optimizer.apply_gradients(net.gradients(tape, loss));
        CHECK(loss.item() == model.train_on_batch(x, y).loss);
    }
    for (const char* path : {"hidden/kernel", "norm/gamma", "norm/moving_mean", "norm/moving_variance", "out/bias"}) {
        CAPTURE(path);
        CHECK(same_bits(net.variables()[path].data(), model.variables()[path].data()));
    }
    CHECK(same_bits(net(x), model.predict(x)));
    CHECK(net.summary() == model.summary());
}

TEST_CASE("an instance called twice under a tape adds its gradients; inputs have theirs; frozen variables have none") {
    auto net = tg::instance(normalized{}, spec{});
    auto a = noise<double>({6, 3}, 1);
    const auto b = noise<double>({6, 3}, 2);
    const auto of = [&](auto&&... x) {
        tg::gradient_tape tape;
        const auto loss = tg::eval((sum(square(net(x))) + ...));
        return net.gradients(tape, loss);
    };
    const auto both = of(a, b), first = of(a), second = of(b);
    REQUIRE(both.size() == 6);
    for (std::size_t k = 0; k < both.size(); ++k) {
        const tg::tensor<double> sum(both[k]), x(first[k]), y(second[k]);
        for (std::int64_t i = 0; i < sum.size(); ++i) // a few sums of numbers below 100 in another order
            CHECK(std::abs(sum.data()[i] - x.data()[i] - y.data()[i]) < 1e-12);
    }
    {
        tg::gradient_tape tape;
        tape.watch(a);
        const auto loss = tg::eval(sum(net(a)));
        const tg::tensor<double> slope = tape.gradient(loss, a);
        auto moved = a;
        moved.set(a(2, 1) + 1e-6, 2, 1);
        auto back = a;
        back.set(a(2, 1) - 1e-6, 2, 1);
        CHECK(slope(2, 1) == doctest::Approx((tg::eval(sum(net(moved))).item() - tg::eval(sum(net(back))).item()) / 2e-6).epsilon(1e-7));
    }
    net.variables().set_trainable("hidden", false);
    CHECK(of(a).size() == 4);
    CHECK_THROWS_AS(net(noise<double>({6, 4}, 1)), tg::shape_error);
}

namespace {
constexpr tg::sequential tower{[](auto scope, auto x) { return tanh(tg::dense(scope, x, {.units = 4})); },
                               [](auto x) { return 2 * x; },
                               [](auto scope, auto x) { return tg::dense(scope, x, {.units = 2}); }};
struct same_tower {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / 2, 2 * tanh(tg::dense(scope / 0, x, {.units = 4})), {.units = 2});
    }
};
} // namespace

TEST_CASE("sequential is the chain of its layers, each in a scope of its place") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(tower, spec{}, tg::mean_squared_error{}, tg::sgd{});
        auto same = tg::compile<decltype(mode)>(same_tower{}, spec{}, tg::mean_squared_error{}, tg::sgd{});
        const auto x = noise<double>({6, 3}, 1), y = noise<double>({6, 2}, 2);
        CHECK(model.train_on_batch(x, y).loss == same.train_on_batch(x, y).loss);
        CHECK(first_difference(model, same) == "");
        CHECK(model.variables().find("2/bias") != nullptr);
    });
}

} // namespace instance_test
