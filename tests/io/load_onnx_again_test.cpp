// Loaded models that are exported again, and extents that stay symbols on their way through what exporters write.

#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/io/save_program.hpp>
#include <tapegraph/traced.hpp>

#include <io/onnx_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace load_onnx_again_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

constexpr int i32 = 6;

std::string list_of(const std::string& name, const std::vector<std::int64_t>& v) {
    return initializer<std::int64_t>(name, i64, {static_cast<std::int64_t>(v.size())}, v);
}
std::vector<float> items_of(const tg::any_tensor& t) {
    const tg::tensor<float> x(t);
    return {x.data(), x.data() + x.size()};
}
tg::tensor<float> numbers(const tg::shape& dims, std::uint64_t seed) {
    return tg::random::normal<float>(dims, {.seed = seed});
}
/// Written again, with both opsets and as a program, a model predicts the same.
void same_again(const support::temporary_folder& folder, const tg::io::onnx_model& net,
                const std::vector<tg::any_tensor>& x, double tolerance) {
    const auto expected = items_of(net.predict(std::span<const tg::any_tensor>(x))[0]);
    const std::string path = (folder.path() / "again.onnx").string();
    for (const int opset : {17, 22, 0}) {
        if (opset == 0)
            tg::io::save_program(net, path);
        else
            tg::io::export_onnx(net, path, {.opset = opset});
        const auto again = tg::io::load_onnx(path);
        CHECK(again.inputs()[0].name == net.inputs()[0].name);
        CHECK(again.outputs()[0].name == net.outputs()[0].name);
        const auto got = items_of(again.predict(std::span<const tg::any_tensor>(x))[0]);
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::fabs(got[i] - expected[i]) <= tolerance);
    }
}

} // namespace

TEST_CASE("Expand by a batch and -1, as PyTorch writes it; the weights of the moment are written") {
    const support::temporary_folder folder;
    const std::string graph =
        node("Shape", {"x"}, {"s"}) + node("Gather", {"s", "zero"}, {"b"}) + node("Unsqueeze", {"b", "zeros"}, {"b1"}) +
        node("Concat", {"b1", "minus", "minus"}, {"to"}, attribute("axis", 0)) +
        node("Equal", {"to", "all_minus"}, {"is"}) + node("Where", {"is", "ones", "to"}, {"extents"}) +
        node("Expand", {"token", "extents"}, {"many"}) + node("Concat", {"many", "x"}, {"y"}, attribute("axis", 1)) +
        initializer<std::int64_t>("zero", i64, {}, {0}) + list_of("zeros", {0}) + list_of("minus", {-1}) +
        list_of("all_minus", {-1, -1, -1}) + list_of("ones", {1, 1, 1}) +
        initializer<float>("token", f32, {1, 1, 2}, {7, 8}) + value(11, "x", f32, {"n", "2", "2"}) +
        value(12, "y", f32, {"n", "3", "2"});
    auto net = loaded(folder, model(graph));
    net.variables()["token"].assign(tg::tensor<float>{{{5, 6}}});
    for (const std::int64_t n : {1, 3}) {
        const auto x = numbers({n, 2, 2}, 2);
        const auto y = items_of(net.predict({x})[0]);
        REQUIRE(y.size() == static_cast<std::size_t>(6 * n));
        for (std::int64_t k = 0; k < n; ++k)
            CHECK((y[static_cast<std::size_t>(6 * k)] == 5 && y[static_cast<std::size_t>(6 * k) + 1] == 6));
        same_again(folder, net, {x}, 0);
    }
}

TEST_CASE("extents in 32-bit integers, their product and their maximum, as TensorFlow's converter writes them") {
    const support::temporary_folder folder;
    const std::string graph =
        node("Shape", {"x"}, {"s"}) + node("Cast", {"s"}, {"narrow"}, attribute("to", i32)) +
        node("Slice", {"narrow", "zeros", "two"}, {"front"}) +
        node("ReduceProd", {"front"}, {"rows"}, attribute("keepdims", 1)) + node("Max", {"rows", "none"}, {"most"}) +
        node("Concat", {"most", "three"}, {"to"}, attribute("axis", 0)) +
        node("Cast", {"to"}, {"wide"}, attribute("to", 7)) + node("Reshape", {"x", "wide"}, {"y"}) +
        list_of("zeros", {0}) + list_of("two", {2}) + initializer<std::int32_t>("none", i32, {1}, {0}) +
        initializer<std::int32_t>("three", i32, {1}, {3}) + value(11, "x", f32, {"n", "4", "3"}) +
        value(12, "y", f32, {"m", "3"});
    const auto net = loaded(folder, model(graph));
    for (const std::int64_t n : {1, 5}) {
        const auto x = numbers({n, 4, 3}, 2);
        CHECK(net.predict({x})[0].shape() == tg::shape{4 * n, 3});
        same_again(folder, net, {x}, 0); // one graph for all batches
    }
}

TEST_CASE("Resize leaves a batch of any extent alone") {
    const support::temporary_folder folder;
    const auto net =
        loaded(folder, model(node("Resize", {"x", "", "scales"}, {"y"},
                                  attribute("mode", std::string("nearest")) +
                                      attribute("coordinate_transformation_mode", std::string("asymmetric"))) +
                             initializer<float>("scales", f32, {3}, {1, 1, 2}) + value(11, "x", f32, {"n", "1", "3"}) +
                             value(12, "y", f32, {"n", "1", "6"})));
    const auto x = numbers({2, 1, 3}, 2);
    CHECK(net.predict({x})[0].shape() == tg::shape{2, 1, 6});
    same_again(folder, net, {x}, 1e-6);
}

TEST_CASE("recurrent kernels are kept in the library's order, and written in ONNX's") {
    const support::temporary_folder folder;
    for (const std::string& type : {std::string("LSTM"), std::string("GRU"), std::string("RNN")})
        for (const int directions : {1, 2}) {
            const std::int64_t gates = type == "LSTM" ? 4 : type == "GRU" ? 3 : 1, d = directions;
            const auto some = [&](const std::string& name, const std::vector<std::int64_t>& dims, std::uint64_t seed) {
                std::int64_t size = 1;
                for (const std::int64_t each : dims) size *= each;
                return initializer<float>(name, f32, dims, items_of(numbers({size}, seed)));
            };
            const auto net =
                loaded(folder, model(node(type, {"x", "w", "r", "b"}, {"y"},
                                          attribute("hidden_size", 5) +
                                              (d == 2 ? attribute("direction", std::string("bidirectional")) : "")) +
                                     some("w", {d, gates * 5, 3}, 1) + some("r", {d, gates * 5, 5}, 2) +
                                     some("b", {d, gates * 10}, 3) + value(11, "x", f32, {"t", "n", "3"}) +
                                     value(12, "y", f32, {"t", std::to_string(d), "n", "5"})));
            CHECK(net.variables()["w"].shape() == tg::shape{d, 3, gates * 5});
            same_again(folder, net, {numbers({4, 2, 3}, 4)}, 1e-5);
        }
}

TEST_CASE("what has no single graph, or integers of another width, is not written again") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "again.onnx").string();
    const auto narrow =
        loaded(folder, model(node("Identity", {"x"}, {"y"}) + value(11, "x", i8, {"2"}) + value(12, "y", i8, {"2"})));
    CHECK_THROWS_WITH_AS(tg::io::export_onnx(narrow, path), doctest::Contains("'x' is i8, which nodes hold as i32"),
                         tg::argument_error);
    const auto sized =
        loaded(folder, model(node("Resize", {"x", "", "scales"}, {"y"}, attribute("mode", std::string("linear"))) +
                             initializer<float>("scales", f32, {1}, {2}) + value(11, "x", f32, {"n"}) +
                             value(12, "y", f32, {"m"})));
    CHECK_THROWS_WITH_AS(tg::io::export_onnx(sized, path), doctest::Contains("an extent that is not a number"),
                         tg::argument_error);
}

} // namespace load_onnx_again_test
