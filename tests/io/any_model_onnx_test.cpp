#include <tapegraph/any_model/hidden_model.hpp>
#include <tapegraph/any_model/any_onnx.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/traced.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace any_model_onnx_test {

/// Models of ONNX files whose type is hidden: those that only predict, and those that are trained further.

namespace tg = tapegraph;

namespace {

struct network {
    auto operator()(auto scope, auto x) const {
        const auto h = relu(tg::dense(scope / "hidden", x, {.units = 8}));
        return tg::dense(scope / "score", h, {.units = 3});
    }
};
using spec = tg::spec<float, tg::dyn, 5>;

tg::tensor<float> numbers(const tg::shape& dims, std::uint64_t seed) {
    return tg::random::normal<float>(dims, {.seed = seed});
}
bool same_bits(const tg::any_tensor& a, const tg::any_tensor& b) {
    return a.type() == b.type() && a.shape() == b.shape() &&
           std::memcmp(a.read(), b.read(), a.outline_view().bytes()) == 0;
}
double distance(const tg::tensor<float>& a, const tg::tensor<float>& b) {
    double worst = 0;
    for (std::int64_t i = 0; i < a.size(); ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(a.data()[i]) - b.data()[i]));
    return worst;
}

} // namespace

TEST_CASE("any_model: an ONNX file that only predicts") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string();
    tg::io::export_onnx(tg::compile<tg::traced>(network{}, spec{}, {.seed = 2}), path);
    const auto net = tg::io::load_onnx(path);
    const tg::any_model model = tg::compile<tg::traced>(net, spec{});
    CHECK(model.mode() == "traced");
    CHECK(!model.trains());
    CHECK(model.signature().inputs[0].text() == "f32[?, 5]");
    for (const std::int64_t batch : {1, 4, 2}) {
        const auto x = numbers({batch, 5}, 7);
        CHECK(same_bits(model.predict(x).only(), net.predict({x})[0]));
    }
    CHECK_THROWS_AS(tg::any_model(tg::compile<tg::traced>(net, spec{}))
                        .train_on_batch(numbers({2, 5}, 1), tg::tensor<std::int32_t>{0, 1}),
                    tg::argument_error);
}

TEST_CASE("any_model: an ONNX file without compiling anything") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string(), weights = (folder.path() / "w.safetensors").string();
    tg::io::export_onnx(tg::compile<tg::traced>(network{}, spec{}, {.seed = 2}), path);
    const auto net = tg::io::load_onnx(path);
    tg::any_model model = tg::io::any_onnx(path);
    CHECK(model.mode() == "onnx");
    CHECK(!model.trains());
    REQUIRE(model.signature().inputs.size() == 1);
    CHECK(model.signature().inputs[0].text() == "f32[?, 5]");
    CHECK(model.signature().outputs[0].type == tg::dtype::f32);
    const auto x = numbers({7, 5}, 4);
    const tg::any_tensor right = net.predict({x})[0];
    CHECK(same_bits(model.predict(x).only(), right));
    CHECK(same_bits(model.predict({{net.inputs()[0].name, x}}).only(), right));
    tg::data::dataset set;
    set.add("x", x.to_vector(), {5});
    CHECK(distance(tg::tensor<float>(model.predict(set, 3)), tg::tensor<float>(right)) <
          1e-6); // batches of other sizes
    CHECK(model.variable_names().size() == static_cast<std::size_t>(net.variables().size()));
    CHECK(model.parameter_count() == 5 * 8 + 8 + 8 * 3 + 3);
    CHECK(model.summary().find("1 input (input: f32[?, 5])\n1 output (") == 0);
    model.save(weights);
    const std::string name = model.variable_names()[0];
    const tg::any_tensor before = model.value(name);
    model.assign(name, tg::zeros<float>(before.shape()));
    CHECK(!same_bits(model.predict(x).only(), right));
    model.load(weights);
    CHECK(same_bits(model.predict(x).only(), right));
    CHECK_THROWS_AS(model.predict(numbers({7, 4}, 4)), tg::shape_error);
    CHECK_THROWS_AS(model.fit(x, x), tg::argument_error);
    CHECK_THROWS_AS(model.learning_rate(), tg::argument_error);
}

TEST_CASE("any_model: an ONNX file is trained on, saved, and exported again") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string(), weights = (folder.path() / "w.safetensors").string(),
               again = (folder.path() / "again.onnx").string();
    tg::io::export_onnx(tg::compile<tg::traced>(network{}, spec{}, {.seed = 2}), path);
    const auto net = tg::io::load_onnx(path);
    const auto compiled = [&] {
        return tg::compile<tg::traced>(net, spec{}, tg::sparse_softmax_cross_entropy{},
                                       tg::adam{.learning_rate = 0.05});
    };
    const auto x = numbers({12, 5}, 3);
    tg::tensor<std::int32_t> y = tg::zeros<std::int32_t>({12});
    for (std::int64_t i = 0; i < 12; ++i) y.mutable_data()[i] = static_cast<std::int32_t>(i % 3);
    tg::any_model model = compiled();
    const tg::history h = model.fit(x, y, {.epochs = 30, .batch_size = 4, .verbose = 0});
    CHECK(h.epochs.back().loss < 0.5 * h.epochs.front().loss);
    CHECK(model.variable_names().size() == 4);
    model.save(weights);
    // The typed model has its weights, and its file.
    auto typed = compiled();
    typed.load(weights);
    CHECK(same_bits(typed.predict(x), model.predict(x).only()));
    tg::io::export_onnx(typed, again);
    const tg::any_model exported = tg::compile<tg::traced>(tg::io::load_onnx(again), spec{});
    CHECK(distance(tg::tensor<float>(exported.predict(x)), typed.predict(x)) <
          1e-5); // the file's products have biases of their own
}

} // namespace any_model_onnx_test
