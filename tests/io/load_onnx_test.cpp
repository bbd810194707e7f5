// Models that come as data: what export writes, and small files made here, byte by byte.

#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/traced.hpp>

#include <io/onnx_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace load_onnx_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

struct network {
    auto operator()(auto scope, auto x) const {
        auto h = tg::conv2d(scope / "conv", x, {.filters = 4, .kernel_size = 3, .padding = tg::padding::same()});
        h = relu(tg::batch_normalization(scope / "norm", h));
        h = tg::max_pooling2d(h, {.pool_size = 2});
        return tg::dense(scope / "score", tg::flatten(h), {.units = 3});
    }
};
using images = tg::spec<float, tg::dyn, 6, 4, 2>;

struct series {
    auto operator()(auto scope, auto x) const {
        const auto steps = tg::lstm(scope / "lstm", x, {.units = 5, .return_sequences = true});
        const auto last = tg::gru(scope / "gru", steps, {.units = 4});
        return tg::dense(scope / "out", last, {.units = 2});
    }
};

tg::tensor<float> numbers(const tg::shape& dims, std::uint64_t seed) {
    return tg::random::normal<float>(dims, {.seed = seed});
}
double distance(const tg::tensor<float>& a, const tg::tensor<float>& b) {
    REQUIRE(a.shape() == b.shape());
    double worst = 0;
    for (std::int64_t i = 0; i < a.size(); ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(a.data()[i]) - b.data()[i]));
    return worst;
}

} // namespace

TEST_CASE("what export writes is loaded and predicts the same, for any batch") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string();
    auto model = tg::compile<tg::traced>(network{}, images{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
    tg::io::export_onnx(model, path);
    const auto net = tg::io::load_onnx(path);
    REQUIRE(net.inputs().size() == 1);
    CHECK(net.inputs()[0].extents == std::vector<std::int64_t>{-1, 6, 4, 2});
    CHECK(net.inputs()[0].extent_names[0] == "batch");
    for (const std::int64_t batch : {1, 3, 2}) {
        const auto x = numbers({batch, 6, 4, 2}, 7);
        // The same sums in the same order but for the normalization's factor, which is one quotient here and two products there.
        CHECK(distance(model.predict(x), tg::tensor<float>(net.predict({x})[0])) < 1e-5);
        const auto by_name = net.predict({{net.inputs()[0].name, x}});
        CHECK(distance(model.predict(x), tg::tensor<float>(by_name.at(net.outputs()[0].name))) < 1e-5);
    }
    CHECK_THROWS_WITH_AS(net.predict({numbers({1, 6, 4, 3}, 1)}), doctest::Contains("'input' has shape [1, 6, 4, 3]"),
                         tg::shape_error);
    CHECK_THROWS_AS(net.predict({tg::tensor<double>(tg::any_tensor(tg::dtype::f64, {1, 6, 4, 2}))}), tg::dtype_error);
    CHECK_THROWS_AS(net.predict(std::map<std::string, tg::any_tensor>{{"image", numbers({1, 6, 4, 2}, 1)}}),
                    tg::argument_error);
}

TEST_CASE("predictions keep what they pack of a file's weights") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string();
    auto model = tg::compile<tg::traced>(network{}, images{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
    tg::io::export_onnx(model, path);
    const std::size_t before = tg::kept_memory_bytes();
    const auto net = tg::io::load_onnx(path);
    const auto x = numbers({3, 6, 4, 2}, 7);
    for (int i = 0; i < 3; ++i) net.predict({x});
    CHECK(tg::kept_memory_bytes() >= before + (4 * 3 * 2 + 24 * 3) * sizeof(float)); // the dense layer has 24 x 3
}

TEST_CASE("recurrent layers, of any number of steps") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "series.onnx").string();
    auto model = tg::compile<tg::traced>(series{}, tg::spec<float, tg::dyn, tg::dim<"time">, 3>{});
    tg::io::export_onnx(model, path);
    const auto net = tg::io::load_onnx(path);
    for (const std::int64_t steps : {2, 7}) {
        const auto x = numbers({2, steps, 3}, 3);
        CHECK(distance(model.predict(x), tg::tensor<float>(net.predict({x})[0])) <
              1e-6); // gates whose biases are added in another order
    }
}

TEST_CASE("a loaded model is trained on: weights are the file's, what is frozen stays, and it is exported again") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string(), again = (folder.path() / "again.onnx").string();
    auto first = tg::compile<tg::traced>(network{}, images{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
    tg::io::export_onnx(first, path);
    const auto net = tg::io::load_onnx(path);
    auto model =
        tg::compile<tg::traced>(net, images{}, tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01});
    const auto x = numbers({4, 6, 4, 2}, 5);
    const tg::tensor<std::int32_t> labels{0, 1, 2, 1};
    CHECK(distance(first.predict(x), model.predict(x)) < 1e-5);
    CHECK(model.variables().set_trainable("conv", false) > 0);
    const tg::any_tensor frozen = model.variables()["conv/kernel"].data();
    const double before = model.train_on_batch(x, labels).loss;
    for (int i = 0; i < 30; ++i) model.train_on_batch(x, labels);
    CHECK(model.train_on_batch(x, labels).loss < 0.5 * before);
    CHECK(std::memcmp(frozen.read(), model.variables()["conv/kernel"].data().read(), frozen.view().bytes()) == 0);
    tg::io::export_onnx(model, again);
    CHECK(distance(model.predict(x), tg::tensor<float>(tg::io::load_onnx(again).predict({x})[0])) < 1e-5);

    // Another head, on what the graph has in front of its own.
    const auto body = net.until(net.outputs()[0].name);
    const auto headed = [body](auto scope, auto image) {
        return tg::dense(scope / "head", body(scope, image), {.units = 2});
    };
    const auto other = tg::compile<tg::traced>(headed, images{}, tg::mean_squared_error{}, tg::sgd{});
    CHECK(other.predict(x).shape() == tg::shape{4, 2});

    // Weights as a file of their own.
    auto copy = tg::io::load_onnx(path);
    copy.variables()["score/bias"].assign(numbers({3}, 9));
    copy.save((folder.path() / "w.safetensors").string());
    auto third = tg::io::load_onnx(path);
    third.load((folder.path() / "w.safetensors").string());
    CHECK(distance(tg::tensor<float>(copy.predict({x})[0]), tg::tensor<float>(third.predict({x})[0])) == 0);
}

TEST_CASE("shapes computed from shapes stay symbols; a weight that is used twice is one variable") {
    const support::temporary_folder folder;
    // y = reshape(x w w^T, [shape(x)[0], 2, -1])
    const std::string graph =
        node("MatMul", {"x", "w"}, {"h"}) + node("Transpose", {"w"}, {"t"}) + node("MatMul", {"h", "t"}, {"g"}) +
        node("Shape", {"x"}, {"s"}) + node("Gather", {"s", "zero"}, {"n"}, attribute("axis", 0)) +
        node("Unsqueeze", {"n", "axes"}, {"n1"}) + node("Concat", {"n1", "rest"}, {"dims"}, attribute("axis", 0)) +
        node("Reshape", {"g", "dims"}, {"y"}) +
        initializer<float>("w", f32, {4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}) +
        initializer<std::int64_t>("zero", i64, {}, {0}) + initializer<std::int64_t>("axes", i64, {1}, {0}) +
        initializer<std::int64_t>("rest", i64, {2}, {2, -1}) + value(11, "x", f32, {"batch", "4"}) +
        value(12, "y", f32, {"batch", "2", "2"});
    const auto net = loaded(folder, model(graph));
    REQUIRE(net.variables().size() == 1);
    CHECK(net.variables().at(0).path() == "w");
    for (const std::int64_t batch : {1, 5}) {
        tg::tensor<float> x(tg::any_tensor(tg::dtype::f32, {batch, 4}));
        for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = static_cast<float>(i % 3);
        const tg::tensor<float> y(net.predict({x})[0]);
        CHECK(y.shape() == tg::shape{batch, 2, 2});
        // x[0] = 0 1 2 0: x w = [18, 21, 24], times the rows of w
        CHECK(y.data()[0] == 18 + 42 + 72);
        CHECK(y.data()[3] == 18 + 42 + 72);
    }
}

TEST_CASE("axes that are inputs: a program for each of their values; integers of any width") {
    const support::temporary_folder folder;
    const auto sums = loaded(folder, model(node("ReduceSum", {"x", "axes"}, {"y"}) + value(11, "x", f32, {"2", "3"}) +
                                           value(11, "axes", i64, {"1"}) + value(12, "y", f32, {"n", "m"})));
    const tg::tensor<float> x{{1, 2, 3}, {4, 5, 6}};
    CHECK(sums.predict({x, tg::tensor<std::int64_t>{0}})[0].shape() == tg::shape{1, 3});
    CHECK(sums.predict({x, tg::tensor<std::int64_t>{-1}})[0].shape() == tg::shape{2, 1});

    const auto wraps = loaded(folder, model(node("Add", {"a", "b"}, {"y"}) + value(11, "a", i8, {"2"}) +
                                            value(11, "b", i8, {"2"}) + value(12, "y", i8, {"2"})));
    const tg::tensor<std::int8_t> a{100, -100};
    const tg::any_tensor y = wraps.predict({a, a})[0];
    REQUIRE(y.type() == tg::dtype::i8);
    CHECK(static_cast<const std::int8_t*>(y.read())[0] == -56);
    CHECK(static_cast<const std::int8_t*>(y.read())[1] == 56);
}

TEST_CASE("one error names everything that cannot be imported, and attributes that no rule reads") {
    const support::temporary_folder folder;
    const std::string ends = value(11, "x", f32, {"2"}) + value(12, "y", f32, {"2"});
    const std::string why =
        refusal(folder, model(node("Nonsense", {"x"}, {"a"}) + node("Elu", {"x"}, {"b"}, attribute("gamma", 3)) +
                              node("Whatever", {"a"}, {"c"}) + node("Add", {"c", "b"}, {"y"}) + ends));
    for (const char* const part :
         {"m.onnx", "Nonsense 'the Nonsense'", "Elu 'the Elu': attribute gamma = 3, which no rule reads",
          "Whatever 'the Whatever'"})
        CHECK_MESSAGE(why.find(part) != why.npos, why);
    CHECK(refusal(folder, model(node("Two\nlines", {"x"}, {"y"}) + ends)).find("Two\\nlines") != std::string::npos);
    CHECK(refusal(folder, model(node("Relu", {"z"}, {"y"}) + ends)).find("reads 'z', which nothing before it gives") !=
          std::string::npos);
    CHECK(refusal(folder,
                  model(node("MatMul", {"x", "w"}, {"y"}) + initializer<float>("w", f32, {3, 1}, {1, 2, 3}) + ends))
              .find("MatMul 'the MatMul'") != std::string::npos);
    // Integers that become doubles here, and would lose their last bit.
    const std::string whole = value(11, "x", i64, {"2"}) + value(12, "y", i64, {"n"});
    const std::int64_t odd = (std::int64_t{1} << 53) + 1;
    const auto number = [](const char* name, std::int64_t n) { return initializer<std::int64_t>(name, i64, {}, {n}); };
    const auto amounts = initializer<std::int64_t>("p", i64, {2}, {1, 1});
    CHECK(refusal(folder, model(node("Pad", {"x", "p", "v"}, {"y"}) + amounts + number("v", odd) + whole))
              .find("Pad 'the Pad': a value of 9007199254740993, beyond 2^53") != std::string::npos);
    CHECK(refusal(folder, model(node("Pad", {"x", "p", "v"}, {"y"}) + amounts + number("v", odd - 1) + whole)) ==
          "none");
    CHECK(refusal(folder, model(node("Range", {"a", "b", "d"}, {"r"}) + node("Add", {"r", "x"}, {"y"}) +
                                number("a", odd) + number("b", odd + 4) + number("d", 2) + whole))
              .find("Range 'the Range': of 9007199254740993, beyond 2^53") != std::string::npos);
}

TEST_CASE("a damaged file is refused by its name, wherever it is damaged") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "whole.onnx").string();
    const auto model = tg::compile<tg::traced>(
        [](auto scope, auto x) { return tg::dense(scope / "out", x, {.units = 2}); }, tg::spec<float, tg::dyn, 3>{});
    tg::io::export_onnx(model, path);
    const std::string whole = support::read_text(path);
    int refused = 0, tried = 0;
    const auto attempt = [&](const std::string& bytes) {
        ++tried;
        const std::string why = refusal(folder, bytes);
        if (why == "none") return;
        ++refused;
        CHECK_MESSAGE(why.find("m.onnx") != why.npos, why);
    };
    for (std::size_t n = 0; n < whole.size(); n += 3) attempt(whole.substr(0, n));
    CHECK(refused > tried / 2); // what follows the graph is not needed
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string other = whole;
        other[i] = static_cast<char>(other[i] ^ (1 + i % 255));
        attempt(other);
    }
    CHECK(refusal(folder, "").find("has no graph") != std::string::npos);
    CHECK_THROWS_AS(tg::io::load_onnx((folder.path() / "none.onnx").string()), tg::data_error);
}

} // namespace load_onnx_test
