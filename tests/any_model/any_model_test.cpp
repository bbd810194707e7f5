#include <nn/models.hpp>
#include <support/messages.hpp>

#include <tapegraph/any_model/hidden_model.hpp>
#include <tapegraph/nn/metrics/all.hpp>
#include <tapegraph/traced.hpp>
#include <tapegraph/train/callbacks/early_stopping.hpp>

#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace any_model_test {

/// Models whose type is hidden: the bits of those whose type is known, and what they refuse.

using namespace nn_test;
using support::message_of;

namespace {

/// Two inputs, and two outputs of several ranks.
struct pair_model {
    constexpr auto operator()(auto scope, auto wide, auto narrow) const {
        const auto a = tg::dense(scope / "wide", wide, {.units = 4});
        const auto b = tg::dense(scope / "narrow", narrow, {.units = 4});
        const auto h = tanh(a + b);
        const auto kind = tg::dense(scope / "kind", h, {.units = 3});
        const auto size = tg::dense(scope / "size", h, {.units = 1});
        return tg::outputs{tg::output<"kind">(kind), tg::output<"size">(size)};
    }
};
using pair_spec = tg::inputs<tg::named_input<"wide", tg::spec<float, tg::dyn, 5>>,
                             tg::named_input<"narrow", tg::spec<float, tg::dyn, 2>>>;
constexpr auto pair_losses = [] {
    return tg::losses{tg::on<"kind">(tg::sparse_softmax_cross_entropy{}), tg::on<"size">(tg::mean_squared_error{})};
};

/// A model of a known type and one of the same that is hidden, which are asked the same.
struct twins {
    std::string name;
    tg::any_model hidden;
    std::function<tg::step_result(const std::vector<tg::any_tensor>&)> train, measure;
    std::function<std::vector<tg::any_tensor>(const std::vector<tg::any_tensor>&)> predict;
    std::function<const tg::variable_list&()> variables;
    std::function<std::vector<tg::any_tensor>(std::int64_t, std::uint64_t)> batch; // inputs and labels
    std::size_t inputs = 1;
};

template <std::size_t... I>
auto called(const auto& f, const auto& types, const std::vector<tg::any_tensor>& x, std::index_sequence<I...>) {
    return f(std::tuple_element_t<I, std::remove_cvref_t<decltype(types)>>(x[I])...);
}

/// `Columns`: the types of the inputs, then of the labels.
template <class... Columns, class Compile, class Batch>
twins twins_of(std::string name, std::size_t inputs, const Compile& compile, const Batch& batch) {
    auto typed = std::make_shared<decltype(compile())>(compile());
    twins t;
    t.name = std::move(name);
    t.hidden = compile();
    const auto all = std::index_sequence_for<Columns...>();
    t.train = [=](const auto& x) {
        return called([&](const auto&... c) { return typed->train_on_batch(c...); }, std::tuple<Columns...>(), x, all);
    };
    t.measure = [=](const auto& x) {
        return called([&](const auto&... c) { return typed->evaluate(c...); }, std::tuple<Columns...>(), x, all);
    };
    t.predict = [=](const auto& x) { return typed->predict_any(x); };
    t.variables = [=]() -> const tg::variable_list& { return typed->variables(); };
    t.batch = batch;
    t.inputs = inputs;
    return t;
}

template <class T>
std::vector<tg::any_tensor> mlp_batch(std::int64_t size, std::uint64_t seed) {
    return {noise<T>({size, 6}, seed), classes(size, 3, seed)};
}
std::vector<tg::any_tensor> pair_batch(std::int64_t size, std::uint64_t seed) {
    return {noise<float>({size, 5}, seed), noise<float>({size, 2}, seed + 1), classes(size, 3, seed),
            noise<float>({size, 1}, seed + 2)};
}

template <class T, class Mode, class Optimizer>
twins mlp_twins(const char* name, const Optimizer& optimizer) {
    return twins_of<tg::tensor<T>, tg::tensor<std::int32_t>>(
        name, 1,
        [=] {
            return tg::compile<Mode>(small_mlp{}, mlp_spec<T>{}, tg::sparse_softmax_cross_entropy{}, optimizer,
                                     {.seed = 5});
        },
        &mlp_batch<T>);
}
template <class Mode>
twins pair_twins(const char* name) {
    using image = tg::tensor<float>;
    return twins_of<image, image, tg::tensor<std::int32_t>, image>(
        name, 2,
        [] {
            return tg::compile<Mode>(pair_model{}, pair_spec{}, pair_losses(), tg::adam{.learning_rate = 0.01},
                                     {.seed = 6});
        },
        &pair_batch);
}

std::vector<twins> ten() {
    std::vector<twins> all;
    all.push_back(mlp_twins<float, tg::graph>("graph, float", tg::adam{}));
    all.push_back(mlp_twins<float, tg::eager>("eager, float", tg::adam{}));
    all.push_back(mlp_twins<float, tg::traced>("traced, float", tg::adam{}));
    all.push_back(mlp_twins<double, tg::graph>("graph, double", tg::momentum{}));
    all.push_back(mlp_twins<double, tg::eager>("eager, double", tg::momentum{}));
    all.push_back(mlp_twins<double, tg::traced>("traced, double", tg::momentum{}));
    all.push_back(pair_twins<tg::graph>("graph, two inputs and outputs"));
    all.push_back(pair_twins<tg::eager>("eager, two inputs and outputs"));
    all.push_back(pair_twins<tg::traced>("traced, two inputs and outputs"));
    const int units = 7;
    all.push_back(twins_of<tg::tensor<float>, tg::tensor<std::int32_t>>(
        "traced, a lambda that captures, metrics", 1,
        [units] {
            return tg::compile<tg::traced>(
                [units](auto scope, auto x) {
                    const auto h = relu(tg::dense(scope / "in", x, {.units = units}));
                    return tg::dense(scope / "out", h, {.units = 3});
                },
                mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::sgd{.learning_rate = 0.1},
                tg::metrics{tg::sparse_top_k_categorical_accuracy<2>{}});
        },
        &mlp_batch<float>));
    return all;
}

tg::any_model trained_mlp(std::uint64_t seed = 1) {
    return tg::compile<tg::traced>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::adam{.learning_rate = 0.02}, {.seed = seed});
}

} // namespace

TEST_CASE("any_model: ten models of all modes in a vector, trained side by side, have the bits of their types") {
    std::vector<twins> all = ten();
    REQUIRE(all.size() == 10);
    for (int step = 0; step < 3; ++step)
        for (twins& t : all) {
            CAPTURE(t.name);
            CAPTURE(step);
            const auto columns = t.batch(4 + step, static_cast<std::uint64_t>(step));
            const tg::step_result typed = t.train(columns), hidden = t.hidden.train_on_batch(columns);
            REQUIRE(typed.loss == hidden.loss);
            REQUIRE(typed.accuracy == hidden.accuracy);
        }
    for (twins& t : all) {
        CAPTURE(t.name);
        CHECK(t.name.find(t.hidden.mode()) == 0);
        for (const std::string& path : t.hidden.variable_names())
            CHECK_MESSAGE(same_bits(t.variables()[path].data(), t.hidden.value(path)), path);
        CHECK(t.hidden.variables().size() == t.variables().size());
        CHECK(t.hidden.step() == 3);
        auto columns = t.batch(9, 50);
        CHECK(t.measure(columns).loss == t.hidden.evaluate(columns).loss);
        columns.resize(t.inputs);
        const std::vector<tg::any_tensor> expected = t.predict(columns);
        const tg::any_outputs found = t.hidden.predict(columns);
        REQUIRE(static_cast<std::size_t>(found.size()) == expected.size());
        for (int k = 0; k < found.size(); ++k) CHECK(same_bits(found[k], expected[static_cast<std::size_t>(k)]));
    }
}

TEST_CASE("any_model: fit, evaluate and predict over data sets, callbacks, metrics, gradients, as of the type") {
    const auto compile = [] {
        return tg::compile<tg::traced>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{},
                                       tg::metrics{tg::sparse_top_k_categorical_accuracy<2>{}}, {.seed = 5});
    };
    auto typed = compile();
    tg::any_model hidden = compile();
    const auto x = noise<float>({50, 6}, 1);
    const auto y = classes(50, 3, 2);
    tg::data::dataset set;
    set.add("x", x).add("y", y);
    int seen = 0;
    const auto count = [&] {
        struct counter {
            int& to;
            void on_epoch_end(tg::training_state& s) { to += static_cast<int>(s.model().variables().size()) > 0; }
        };
        return counter{seen};
    };
    const tg::fit_options options{.epochs = 3, .batch_size = 16, .validation_data = set, .verbose = 0};
    const tg::history a = typed.fit(set, options), b = hidden.fit(set, options, count());
    CHECK(seen == 3);
    REQUIRE(a.epochs.size() == b.epochs.size());
    for (std::size_t i = 0; i < a.epochs.size(); ++i) {
        CHECK(a.epochs[i].loss == b.epochs[i].loss);
        CHECK(a.epochs[i].validation_loss == b.epochs[i].validation_loss);
        CHECK(a.epochs[i].metrics[0].value == b.epochs[i].metrics[0].value);
    }
    const tg::measured_result measured = hidden.evaluate(set), expected = typed.evaluate(set);
    CHECK(measured.loss == expected.loss);
    CHECK(measured["sparse_top_k_categorical_accuracy"] == expected["sparse_top_k_categorical_accuracy"]);
    CHECK(hidden.metrics()[0].value == typed.metrics()[0].value);
    hidden.reset_metrics();
    CHECK(hidden.metrics()[0].value != typed.metrics()[0].value);
    CHECK(same_bits(hidden.predict(set, 7).only(), typed.predict(set, 7)));
    const tg::gradient_list g = hidden.gradients(x, y), h = typed.gradients(x, y);
    REQUIRE(g.size() == h.size());
    CHECK(same_bits(g["out/kernel"], h["out/kernel"]));
    CHECK(hidden.summary() == typed.summary());
    CHECK(hidden.arena_bytes() == typed.arena_bytes());
    tg::early_stopping stop{.patience = 0};
    CHECK(hidden.fit(x, y, {.epochs = 2, .validation_split = 0.2, .verbose = 0}, stop).epochs.size() <= 2);
}

TEST_CASE("any_model: what it takes and gives, by name, in any order") {
    tg::any_model model = tg::compile<tg::graph>(pair_model{}, pair_spec{}, pair_losses(), tg::sgd{});
    const tg::model_signature& s = model.signature();
    REQUIRE(s.inputs.size() == 2);
    CHECK(s.inputs[0].name == "wide");
    CHECK(s.inputs[0].text() == "f32[?, 5]");
    CHECK(s.labels[0].name == "kind");
    CHECK(s.labels[1].text() == "f32[?, 1]");
    CHECK(s.outputs[0].name + s.outputs[0].text() == "kindf32[?, 3]");
    const auto columns = pair_batch(4, 1);
    const double in_order = model.evaluate(columns).loss;
    CHECK(model.evaluate({{"size", columns[3]}, {"narrow", columns[1]}, {"kind", columns[2]}, {"wide", columns[0]}})
              .loss == in_order);
    CHECK(model.evaluate(columns[0], columns[1], columns[2], columns[3]).loss == in_order);
    const tg::any_outputs y = model.predict({{"narrow", columns[1]}, {"wide", columns[0]}});
    CHECK(y.names() == std::vector<std::string>{"kind", "size"});
    CHECK(&y["size"] == &y[1]);
    CHECK(tg::tensor<float>(y["kind"]).shape() == tg::shape{4, 3});
    model.fit({{"wide", columns[0]}, {"narrow", columns[1]}, {"size", columns[3]}, {"kind", columns[2]}},
              {.epochs = 2, .verbose = 0});
    CHECK(model.step() == 2);

    const std::string given = message_of<tg::argument_error>([&] { model.predict(columns[0]); });
    CHECK(given == "predict: given 1 tensor, the model takes 2 inputs (wide: f32[?, 5], narrow: f32[?, 2])");
    const std::string name = message_of<tg::argument_error>([&] { model.predict({{"wide", columns[0]}}); });
    CHECK(name.find("predict: 'narrow' is missing") == 0);
    const std::string other = message_of<tg::argument_error>([&] { model.predict({{"broad", columns[0]}}); });
    CHECK(other.find("predict: 'broad' is not one of 2 columns (wide") == 0);
    CHECK(message_of<tg::argument_error>([&] { y.only(); }) == "outputs: the model has 2, say which by name or number");
    CHECK(message_of<tg::argument_error>([&] { y["score"]; }) == "outputs: none is 'score', there are 'kind', 'size'");
    CHECK_THROWS_AS(y[2], tg::range_error);
}

TEST_CASE("any_model: tensors that do not fit are named") {
    tg::any_model model = trained_mlp();
    const auto y = classes(4, 3, 1);
    const std::string type = message_of<tg::dtype_error>([&] { model.predict(noise<double>({4, 6}, 1)); });
    CHECK(type == "predict: input 'input' is f64, the model takes f32");
    const std::string extent = message_of<tg::shape_error>([&] { model.train_on_batch(noise<float>({4, 5}, 1), y); });
    CHECK(extent == "train_on_batch: input 'input' has shape [4, 5], the model takes f32[?, 6]");
    const std::string rank = message_of<tg::shape_error>([&] { model.gradients(noise<float>({6}, 1), y); });
    CHECK(rank == "gradients: input 'input' has shape [6], the model takes f32[?, 6]");
    const std::string count = message_of<tg::argument_error>([&] { model.evaluate(noise<float>({4, 6}, 1)); });
    CHECK(count == "evaluate: given 1 tensor, the model takes 1 input (input: f32[?, 6]) and 1 column of labels "
                   "(labels: i32[?])");
    const tg::any_outputs scores = model.predict(noise<float>({4, 6}, 1));
    CHECK_THROWS_AS(static_cast<void>(tg::tensor<double>(scores)), tg::dtype_error);
    CHECK_THROWS_AS(model.train_on_batch(noise<float>({4, 6}, 1), classes(5, 3, 1)), tg::shape_error);
    CHECK(model.step() == 0);
}

TEST_CASE("any_model: outputs of other element types than the inputs'") {
    tg::any_model model = tg::compile<tg::traced>(
        [](auto scope, auto x) {
            const auto score = tg::dense(scope / "out", x, {.units = 3});
            return tg::outputs{tg::output<"score">(score), tg::output<"class">(argmax(score, 1))};
        },
        mlp_spec<float>{});
    CHECK(model.signature().outputs[1].type == tg::dtype::i32);
    tg::data::dataset set;
    const auto x = noise<float>({5, 6}, 1);
    set.add("x", x);
    for (const tg::any_outputs& y : {model.predict(x), model.predict(set, 2)}) {
        const tg::tensor<float> score(y["score"]);
        const tg::tensor<std::int32_t> best(y["class"]);
        CHECK(best.to_vector() == tg::argmax(score, 1).to_vector());
    }
}

TEST_CASE("any_model: variables, learning rate, files") {
    tg::any_model model = trained_mlp(), other = trained_mlp(2);
    const auto x = noise<float>({8, 6}, 1);
    const auto y = classes(8, 3, 1);
    CHECK(model.variable_names() == std::vector<std::string>{"hidden/kernel", "hidden/bias", "out/kernel", "out/bias"});
    CHECK(model.parameter_count() == 6 * 9 + 9 + 9 * 3 + 3);
    CHECK(model.set_trainable("hidden", false) == 2);
    CHECK(model.trainable_parameter_count() == 9 * 3 + 3);
    model.set_trainable("hidden", true);
    model.assign("out/bias", tg::tensor<float>{1, 2, 3});
    CHECK(same_bits(model.value("out/bias"), tg::tensor<float>{1, 2, 3}));
    CHECK_THROWS_AS(model.assign("out/bias", tg::tensor<float>{1, 2}), tg::shape_error);
    CHECK_THROWS_AS(model.value("out/scale"), tg::argument_error);

    CHECK(model.learning_rate() == 0.02);
    model.set_learning_rate(0);
    const tg::any_tensor before = model.value("out/kernel");
    model.train_on_batch(x, y);
    CHECK(same_bits(model.value("out/kernel"), before));
    CHECK_THROWS_AS(model.set_learning_rate(-1), tg::argument_error);
    CHECK_THROWS_AS(model.set_learning_rate(std::numeric_limits<double>::quiet_NaN()), tg::argument_error);

    const std::string path = "any_model_test.safetensors";
    model.set_learning_rate(0.02);
    model.train_on_batch(x, y);
    model.save(path, {.optimizer_state = true});
    CHECK(other.load(path).matched.size() > 4);
    std::remove(path.c_str());
    CHECK(other.step() == 2);
    CHECK(same_bits(model.predict(x).only(), other.predict(x).only()));
    CHECK_THROWS_AS(other.load("no_such_file.safetensors"), tg::data_error);
}

TEST_CASE("any_model: a model for prediction alone trains nothing, and an empty one is none") {
    tg::any_model predicts = tg::compile<tg::eager>(small_mlp{}, mlp_spec<float>{});
    const auto x = noise<float>({8, 6}, 1);
    const auto y = classes(8, 3, 1);
    CHECK(!predicts.trains());
    CHECK(predicts.predict(x).only().shape() == tg::shape{8, 3});
    CHECK(predicts.signature().labels.empty());
    const std::string text = message_of<tg::argument_error>([&] { predicts.train_on_batch(x, y); });
    CHECK(text == "train_on_batch: the model was compiled for prediction, without a loss");
    CHECK_THROWS_AS(predicts.fit(x, y), tg::argument_error);
    CHECK_THROWS_AS(predicts.gradients(x, y), tg::argument_error);
    CHECK_THROWS_AS(predicts.evaluate(x, y), tg::argument_error);
    CHECK_THROWS_AS(predicts.learning_rate(), tg::argument_error);

    tg::any_model moved = std::move(predicts);
    CHECK(moved);
    CHECK(!predicts); // NOLINT: that is the question
    CHECK(message_of<tg::argument_error>([&] { predicts.predict(x); }) == "any_model: it holds no model");
}

TEST_CASE("any_model: a prediction on a tape has its gradient") {
    tg::any_model model = trained_mlp();
    tg::tensor<float> x = noise<float>({3, 6}, 1);
    tg::gradient_tape tape;
    tape.watch(x);
    const tg::tensor<float> y = model.predict(x);
    const tg::tensor<float> slope(tape.gradient(sum(y), x));
    CHECK(slope.shape() == x.shape());
    for (const float each : slope.to_vector()) CHECK(each != 0);
}

} // namespace any_model_test
