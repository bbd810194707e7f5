#include <support/captured_stderr.hpp>

#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/nn/metrics/all.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>

#include <nn/models.hpp>

#include <string>
#include <vector>

namespace placed_model_test {

/// Compiled models with parts on devices by name: the bits of the same model on one device. Virtual CPUs show it on any machine.

using namespace nn_test;

namespace {

/// `Placed`: on three places, one of them twice. A layer with moving averages, random numbers, two outputs.
template <bool Placed>
struct network {
    static constexpr auto on(const auto& scope, const char* name) {
        if constexpr (Placed)
            return scope.with_device(name);
        else
            return name;
    }
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::eval(x * 2);
        {
            [[maybe_unused]] const auto here = on(scope, "/cpu:1");
            h = tg::dense(scope / "first", h, {.units = 4});
            h = tg::batch_normalization(scope / "norm", tanh(h));
        }
        {
            [[maybe_unused]] const auto here = on(scope, "/gpu:0"); // without one it is the CPU
            h = tg::dropout(scope / "drop", h, {.rate = 0.5});
        }
        [[maybe_unused]] const auto here = on(scope, "/cpu:1");
        return tg::dense(scope / "second", h, {.units = 3});
    }
};

const tg::chain optimizer{tg::clip_by_global_norm{.norm = 1}, tg::adam{.learning_rate = 0.1}};

template <class Mode, bool Placed>
auto make(const tg::compile_options& options = {.seed = 7}) {
    return tg::compile<Mode>(network<Placed>{}, tg::spec<double, tg::dyn, 6>{}, tg::sparse_softmax_cross_entropy{},
                             optimizer, tg::metrics{tg::confusion_matrix<3>{}}, options);
}

const tg::tensor<double> x = noise<double>({5, 6}, 3);
const tg::tensor<std::int32_t> labels{0, 2, 1, 1, 0};

template <class Model>
std::string all_of(Model& model) {
    tg::data::dataset set;
    set.add("x", x.to_vector(), {6}).add("label", labels.to_vector());
    std::string text;
    for (int i = 0; i < 3; ++i) {
        const auto r = model.train_on_batch(x, labels);
        text += std::to_string(r.loss) + ' ' + std::to_string(r.accuracy) + '\n';
    }
    text += to_string(model.predict(x)) + to_string(model.predict(noise<double>({2, 6}, 4))) + '\n';
    model.variables().set_trainable("first", false);
    text += model.fit(set, {.epochs = 2, .batch_size = 2, .validation_data = set, .verbose = 0}).csv().substr(0, 60);
    const auto measured = model.evaluate(set, 2);
    text += to_string(measured.tensor("confusion_matrix")) + std::to_string(measured.loss);
    text += to_string(tg::tensor<double>(model.gradients(x, labels)["second/kernel"]));
    for (const tg::variable& v : model.variables()) text += v.path() + to_string(v.template value<double>()) + '\n';
    return text;
}

} // namespace

TEST_CASE("a compiled model with parts on devices by name gives the bits of one device, in both modes") {
    auto one = make<tg::graph, false>();
    auto several = make<tg::graph, true>();
    auto eager = make<tg::eager, true>();
    const std::string right = all_of(one);
    CHECK(right.find("first/kernel") != right.npos);
    CHECK(all_of(several) == right);
    CHECK(all_of(eager) == right);
    for (const tg::variable& v : one.variables()) {
        CAPTURE(v.path());
        CHECK(same_bits(v.data(), several.variables()[v.path()].data()));
        CHECK(same_bits(v.data(), eager.variables()[v.path()].data()));
    }
    // A prediction on a tape has a derivative.
    const auto slope = [](auto& model) {
        tg::tensor<double> at = x;
        tg::gradient_tape tape;
        tape.watch(at);
        return tape.gradient(sum(square(model.predict(at))), at);
    };
    CHECK(same_bits(slope(one), slope(several)));
}

TEST_CASE("a compiled model's placement log names the copies between devices") {
    auto model = make<tg::graph, true>();
    model.predict(x); // says once that there is no GPU
    tg::log_placement(true);
    const auto step = [&] { model.train_on_batch(x, labels); };
    const std::string first = test::captured_stderr(step), second = test::captured_stderr(step);
    tg::log_placement(false);
    CHECK(first.find("tapegraph: copy f64[5, 4] from /cpu:1 to /gpu:0\n") != first.npos);
    CHECK(second.find("copy") == second.npos); // once
}

TEST_CASE("a compiled model without soft placement refuses a GPU that is not there, and has not changed") {
    if (tg::list_devices().size() != 1) return;
    auto model = make<tg::graph, true>({.seed = 7, .soft_placement = false});
    const tg::tensor<double> before = model.variables()["first/kernel"].value<double>();
    CHECK_THROWS_AS(model.train_on_batch(x, labels), tg::device_error);
    CHECK_THROWS_AS(model.train_on_batch(x, labels), tg::device_error); // again
    CHECK_NOTHROW(model.predict(x));                                    // dropout is for training
    CHECK(same_bits(before, model.variables()["first/kernel"].value<double>()));
    CHECK(model.step() == 0);
}

namespace {
template <bool Placed>
struct own_step {
    constexpr auto operator()(auto step, auto in) const {
        const auto y = network<Placed>{}(step / "net", in);
        const auto loss = tg::eval(mean(square(y)));
        step.minimize(loss);
        return tg::outputs{tg::output<"loss">(loss), tg::output<"y">(y)};
    }
};
} // namespace

TEST_CASE("a step of one's own with parts on devices by name gives the bits of one device") {
    const tg::spec<double, tg::dyn, 6> spec;
    auto one = tg::compile_step<tg::graph>(own_step<false>{}, spec, optimizer);
    auto several = tg::compile_step<tg::graph>(own_step<true>{}, spec, optimizer);
    auto eager = tg::compile_step<tg::eager>(own_step<true>{}, spec, optimizer);
    for (int i = 0; i < 3; ++i) {
        if (i == 2)
            for (auto* each : {&one.variables(), &several.variables(), &eager.variables()})
                each->set_trainable("net/first", false);
        const auto right = one(x);
        CHECK(same_bits(right.get<"y">(), several(x).get<"y">()));
        CHECK(same_bits(right.get<"loss">(), eager(x).get<"loss">()));
    }
    for (const tg::variable& v : one.variables()) {
        CAPTURE(v.path());
        CHECK(same_bits(v.data(), several.variables()[v.path()].data()));
        CHECK(same_bits(v.data(), eager.variables()[v.path()].data()));
    }
}

} // namespace placed_model_test
