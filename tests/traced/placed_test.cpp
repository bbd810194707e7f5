#include <nn/models.hpp>
#include <support/captured_stderr.hpp>

#include <tapegraph/nn/metrics/all.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/traced.hpp>

#include <string>
#include <vector>

namespace traced_placed_test {

/// Parts on devices by name in graphs that are made when the program runs: the bits of the same model in graph mode, on one
/// device and in parts. Virtual CPUs show it on any machine.

using namespace nn_test;

namespace {

/// A layer with moving averages, random numbers; the names of devices are data.
struct network {
    std::vector<std::string> devices;

    auto operator()(auto scope, auto x) const {
        const auto on = [&](std::size_t part) { return scope.with_device(devices[part]); };
        auto h = tg::eval(x * 2);
        {
            const auto here = on(0);
            h = tg::dense(scope / "first", h, {.units = 4});
            h = tg::batch_normalization(scope / "norm", tanh(h));
        }
        {
            const auto here = on(1);
            h = tg::dropout(scope / "drop", h, {.rate = 0.5});
        }
        const auto here = on(2);
        return tg::dense(scope / "second", h, {.units = 3});
    }
};
/// The same as a type, placed or not.
template <bool Placed>
struct fixed_network {
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
const network in_parts{{"/cpu:1", "/gpu:0", "/cpu:1"}};

template <class Mode, class Model>
auto make(const Model& model, const tg::compile_options& options = {.seed = 7}) {
    return tg::compile<Mode>(model, tg::spec<double, tg::dyn, 6>{}, tg::sparse_softmax_cross_entropy{}, optimizer,
                             tg::metrics{tg::confusion_matrix<3>{}}, options);
}

const tg::tensor<double> x = noise<double>({5, 6}, 3);
const tg::tensor<std::int32_t> labels{0, 2, 1, 1, 0};

/// All that a model gives in a few steps, an epoch with a frozen layer, evaluations and predictions.
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

template <class Model, class Other>
void check_same_variables(Model& a, Other& b) {
    for (const tg::variable& v : a.variables()) {
        CAPTURE(v.path());
        CHECK(same_bits(v.data(), b.variables()[v.path()].data()));
    }
}

} // namespace

TEST_CASE("run-time graphs: parts on devices by name have the bits of graph mode, in parts and on one device") {
    auto compiled = make<tg::graph>(fixed_network<true>{});
    auto whole = make<tg::traced>(fixed_network<false>{});
    auto traced = make<tg::traced>(in_parts);
    const std::string right = all_of(compiled);
    CHECK(right.find("first/kernel") != right.npos);
    CHECK(all_of(whole) == right);
    CHECK(all_of(traced) == right);
    check_same_variables(compiled, traced);
    // A prediction on a tape is one program, whose derivative is one.
    const auto slope = [](auto& model) {
        tg::tensor<double> at = x;
        tg::gradient_tape tape;
        tape.watch(at);
        return tape.gradient(sum(square(model.predict(at))), at);
    };
    CHECK(same_bits(slope(whole), slope(traced)));
}

TEST_CASE("run-time graphs: the placement log names the copies between parts") {
    auto model = make<tg::traced>(in_parts);
    model.predict(x); // says once that there is no GPU
    tg::log_placement(true);
    const auto step = [&] { model.train_on_batch(x, labels); };
    const std::string first = test::captured_stderr(step), second = test::captured_stderr(step);
    tg::log_placement(false);
    CHECK(first.find("tapegraph: copy f64[5, 4] from /cpu:1 to /gpu:0\n") != first.npos);
    CHECK(second.find("copy") == second.npos); // once
}

TEST_CASE("run-time graphs: without soft placement a GPU that is not there is refused, and nothing has changed") {
    if (tg::list_devices().size() != 1) return;
    auto model = make<tg::traced>(in_parts, {.seed = 7, .soft_placement = false});
    const tg::tensor<double> before = model.variables()["first/kernel"].value<double>();
    CHECK_THROWS_AS(model.train_on_batch(x, labels), tg::device_error);
    CHECK_THROWS_AS(model.train_on_batch(x, labels), tg::device_error); // again
    CHECK_NOTHROW(model.predict(x));                                    // dropout is for training
    CHECK(same_bits(before, model.variables()["first/kernel"].value<double>()));
    CHECK(model.step() == 0);
    CHECK_THROWS_AS(make<tg::traced>(network{{"/tpu:0", "/cpu:1", "/cpu:1"}}), tg::shape_error);
}

TEST_CASE("run-time graphs: a step of one's own with parts on devices by name") {
    const tg::spec<double, tg::dyn, 6> spec;
    const auto step_of = [](const auto& net) {
        return [net](auto step, auto in) {
            const auto y = net(step / "net", in);
            const auto loss = tg::eval(mean(square(y)));
            step.minimize(loss);
            return tg::outputs{tg::output<"loss">(loss), tg::output<"y">(y)};
        };
    };
    auto one = tg::compile_step<tg::traced>(step_of(fixed_network<false>{}), spec, optimizer);
    auto several = tg::compile_step<tg::traced>(step_of(in_parts), spec, optimizer);
    for (int i = 0; i < 3; ++i) {
        if (i == 2)
            for (auto* each : {&one.variables(), &several.variables()}) each->set_trainable("net/first", false);
        const auto right = one(x), found = several(x);
        CHECK(same_bits(right.get<"y">(), found.get<"y">()));
        CHECK(same_bits(right.get<"loss">(), found.get<"loss">()));
    }
    check_same_variables(one, several);
}

} // namespace traced_placed_test
