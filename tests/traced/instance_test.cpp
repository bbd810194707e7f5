#include <nn/models.hpp>
#include <support/messages.hpp>

#include <tapegraph/compile/traced_instance.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/nn/regularizer.hpp>
#include <tapegraph/traced.hpp>

#include <string>
#include <vector>

namespace traced_instance_test {

/// Instances whose graph is made when the program runs: loops of one's own with the bits of eager mode.

using namespace nn_test;

namespace {

/// Moving averages, random numbers, a regularizer, a loss that the model adds, two outputs.
struct network {
    std::vector<int> units;

    constexpr auto operator()(auto scope, auto x, auto shift) const {
        auto h = tg::eval(1 * x);
        for (std::size_t i = 0; i < units.size(); ++i) {
            const auto layer = scope / static_cast<int>(i);
            h = tg::dense(layer / "dense", h, {.units = units[i], .kernel_regularizer = tg::regularizers::l2{0.01}});
            h = tg::batch_normalization(layer / "norm", tanh(h), {.momentum = 0.5});
        }
        h = tg::dropout(scope / "drop", h, {.rate = 0.25});
        scope.add_loss(0.1 * mean(square(h)));
        const auto score = tg::dense(scope / "score", h, {.units = 2});
        return tg::outputs{tg::output<"moved">(score + shift), tg::output<"hidden">(h)};
    }
};
struct fixed_network {
    constexpr auto operator()(auto scope, auto x, auto shift) const {
        auto h = tg::eval(1 * x);
        h = tg::dense(scope / 0 / "dense", h, {.units = 5, .kernel_regularizer = tg::regularizers::l2{0.01}});
        h = tg::batch_normalization(scope / 0 / "norm", tanh(h), {.momentum = 0.5});
        h = tg::dropout(scope / "drop", h, {.rate = 0.25});
        scope.add_loss(0.1 * mean(square(h)));
        const auto score = tg::dense(scope / "score", h, {.units = 2});
        return tg::outputs{tg::output<"moved">(score + shift), tg::output<"hidden">(h)};
    }
};
constexpr auto specs =
    tg::inputs{tg::input<"x">(tg::spec<double, tg::dyn, 3>{}), tg::input<"shift">(tg::spec<double, 2>{})};

const auto x = noise<double>({6, 3}, 1), y = noise<double>({6, 2}, 2), shift = noise<double>({2}, 3);

/// Three steps of a loop of one's own, the losses as text.
template <class Net>
std::string trained(Net& net) {
    tg::applied optimizer(tg::adam{.learning_rate = 0.1}, net.variables());
    std::string losses;
    for (int i = 0; i < 3; ++i) {
        tg::gradient_tape tape;
        const auto out = net.in_training(x, shift);
        const auto added = net.added_losses();
        const auto first = tg::eval(mean(square(out.template get<"moved">() - y)));
        const auto loss = tg::eval(first + 0.2 * mean(out.template get<"hidden">()) + added);
        optimizer.apply_gradients(net.gradients(tape, loss));
        losses += to_string(loss) + ' ' + to_string(added) + '\n';
    }
    return losses;
}

} // namespace

TEST_CASE("run-time instances: loops of one's own have the bits of eager mode") {
    auto eager = tg::instance(fixed_network{}, specs, {.seed = 5});
    auto traced = tg::instance<tg::traced>(network{{5}}, specs, {.seed = 5});
    CHECK(traced.summary() == eager.summary());
    REQUIRE(first_difference(eager, traced) == "");
    for (const bool frozen : {false, true}) { // a frozen normalization uses and keeps its averages
        CAPTURE(frozen);
        for (auto* const each : {&eager.variables(), &traced.variables()}) each->set_trainable("0/norm", !frozen);
        CHECK(trained(traced) == trained(eager));
        CHECK(first_difference(eager, traced) == "");
    }
    for (const std::int64_t batch : {6, 1, 40}) {
        const auto more = noise<double>({batch, 3}, 7);
        const auto right = eager(more, shift), found = traced(more, shift);
        CHECK(same_bits(right.get<"moved">(), found.get<"moved">()));
        CHECK(same_bits(right.get<"hidden">(), found.get<"hidden">()));
    }
}

TEST_CASE("run-time instances: gradients by inputs and variables, of calls that share a tape") {
    auto eager = tg::instance(fixed_network{}, specs);
    auto traced = tg::instance<tg::traced>(network{{5}}, specs);
    const auto slopes = [&](auto& net) {
        tg::tensor<double> a = x, b = shift;
        tg::gradient_tape tape({.persistent = true});
        tape.watch(a);
        tape.watch(b);
        const auto one = net(a, b);
        const auto two = net(tg::eval(2 * a), b);
        const auto loss = tg::eval(sum(square(one.template get<"moved">())) + sum(two.template get<"moved">()));
        std::vector<tg::any_tensor> all = net.gradients(tape, loss);
        all.push_back(tape.gradient(loss, a));
        all.push_back(tape.gradient(loss, b));
        return all;
    };
    const auto right = slopes(eager), found = slopes(traced);
    REQUIRE(found.size() == right.size());
    for (std::size_t k = 0; k < right.size(); ++k) {
        CAPTURE(k);
        CHECK(same_bits(tg::tensor<double>(right[k]), tg::tensor<double>(found[k])));
    }
}

TEST_CASE("run-time instances: layers are data; two nets share a tape") {
    auto maker = tg::instance<tg::traced>(network{{4, 6, 3}}, specs);
    auto judge = tg::instance<tg::traced>([](auto scope, auto v) { return tg::dense(scope / "out", v, {.units = 1}); },
                                          tg::spec<double, tg::dyn, 2>{});
    CHECK(maker.variables().find("2/dense/kernel") != nullptr);
    const tg::tensor<double> slope = [&] {
        tg::gradient_tape tape({.persistent = true});
        const auto made = maker(x, shift);
        const auto loss = tg::eval(mean(square(judge(made.get<"moved">()))));
        CHECK(judge.gradients(tape, loss).size() == 2);
        return tg::tensor<double>(maker.gradients(tape, loss)[0]);
    }();
    const auto moved = [&](double by) {
        const tg::tensor<double> before = maker.variables()["0/dense/kernel"].value<double>();
        tg::tensor<double> w = before;
        w.set(w(1, 2) + by, 1, 2);
        maker.variables()["0/dense/kernel"].assign(w);
        const double at = tg::eval(mean(square(judge(maker(x, shift).get<"moved">())))).item();
        maker.variables()["0/dense/kernel"].assign(before);
        return at;
    };
    CHECK(slope(1, 2) == doctest::Approx((moved(1e-6) - moved(-1e-6)) / 2e-6).epsilon(1e-7));
}

TEST_CASE("run-time instances: errors name the culprit") {
    auto net = tg::instance<tg::traced>(network{{4}}, specs);
    CHECK_THROWS_AS(net(noise<double>({6, 4}, 1), shift), tg::shape_error);
    {
        tg::gradient_tape tape;
        const auto loss = tg::eval(sum(net.in_training(x, shift).get<"moved">()));
        CHECK_THROWS_WITH_AS(net.gradients(tape, loss), doctest::Contains("the model adds to its loss"),
                             tg::argument_error);
    }
    const auto refused = support::message_of<tg::shape_error>([] {
        tg::instance<tg::traced>([](auto scope, auto v) { return tg::dense(scope / "out", v, {.units = 0}); },
                                 tg::spec<float, tg::dyn, 2>{});
    });
    CHECK(refused.find("units") != refused.npos);
}

} // namespace traced_instance_test
