// Formulas of gated activations become the library's operations, and formulas that only look like them do not.

#include <io/onnx_files.hpp>

#include <tapegraph/eager/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace load_onnx_gates_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

std::string number_of(const char* name, float v) { return initializer<float>(name, f32, {}, {v}); }

tg::tensor<float> operand() {
    constexpr float inf = std::numeric_limits<float>::infinity();
    tg::tensor<float> x = 4 * tg::random::normal<float>(tg::shape{67}, {.seed = 3});
    float* const p = x.mutable_data();
    p[0] = 0, p[1] = -0.0f, p[2] = inf, p[3] = -inf, p[4] = 90, p[5] = -90;
    p[6] = std::numeric_limits<float>::quiet_NaN();
    return x;
}

/// "y" of a graph of one input "x".
tg::tensor<float> value_of(const std::string& nodes, const tg::tensor<float>& x = operand()) {
    const support::temporary_folder folder;
    const std::string graph = nodes + value(11, "x", f32, {"n"}) + value(12, "y", f32, {"n"});
    return tg::tensor<float>(loaded(folder, model(graph)).predict({x})[0]);
}
bool same(const tg::tensor<float>& a, const tg::tensor<float>& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0;
}

std::string swish_nodes(const char* first, const char* second) {
    return node("Sigmoid", {"x"}, {"s"}) + node("Mul", {first, second}, {"y"});
}
/// x (1 + erf(...)) / 2 as exporters associate it: a gate of u with the number `one` added, and three factors in two products.
std::string gelu_nodes(const std::string& argument, const char* function, float half, float one,
                       const std::vector<std::string>& first, const std::vector<std::string>& second) {
    return number_of("half", half) + number_of("one", one) + argument + node(function, {"u"}, {"e"}) +
           node("Add", {"e", "one"}, {"gate"}) + node("Mul", first, {"part"}) + node("Mul", second, {"y"});
}
const std::string by_root = number_of("root", 1.4142135f) + node("Div", {"x", "root"}, {"u"});
const std::string by_half_root = number_of("root", 0.70710678f) + node("Mul", {"root", "x"}, {"u"});
std::string cubic(float scale, const std::string& cube) {
    return number_of("c", 0.044715f) + number_of("scale", scale) + cube + node("Mul", {"c", "cube"}, {"small"}) +
           node("Add", {"x", "small"}, {"inner"}) + node("Mul", {"inner", "scale"}, {"u"});
}
const std::string by_pow = number_of("three", 3) + node("Pow", {"x", "three"}, {"cube"});
const std::string by_products = node("Mul", {"x", "x"}, {"square"}) + node("Mul", {"square", "x"}, {"cube"});

} // namespace

TEST_CASE("load_onnx: x sigmoid(x) is swish, in either order") {
    const tg::tensor<float> wanted = swish(operand());
    CHECK(same(value_of(swish_nodes("x", "s")), wanted));
    CHECK(same(value_of(swish_nodes("s", "x")), wanted));
    CHECK(value_of(swish_nodes("x", "s"), tg::tensor<float>(tg::any_tensor(tg::dtype::f32, tg::shape{0}))).size() == 0);
    // In a layout of its own, as what follows a convolution is
    const std::string turned =
        node("Transpose", {"x"}, {"t"}) + node("Sigmoid", {"t"}, {"s"}) + node("Mul", {"t", "s"}, {"y"});
    CHECK(same(value_of(turned), wanted));
}

TEST_CASE("load_onnx: gelu by erf and by tanh, as exporters write them") {
    const tg::tensor<float> x = operand(), exact = gelu(x), rough = gelu(x, tg::approximate);
    for (const std::string& argument : {by_root, by_half_root}) {
        CHECK(same(value_of(gelu_nodes(argument, "Erf", 0.5f, 1, {"x", "gate"}, {"part", "half"})), exact)); // PyTorch
        CHECK(same(value_of(gelu_nodes(argument, "Erf", 0.5f, 1, {"x", "half"}, {"part", "gate"})), exact)); // ours
        CHECK(same(value_of(gelu_nodes(argument, "Erf", 0.5f, 1, {"half", "gate"}, {"x", "part"})), exact)); // Keras
    }
    for (const std::string& cube : {by_pow, by_products}) {
        const std::string argument = cubic(0.7978846f, cube);
        CHECK(same(value_of(gelu_nodes(argument, "Tanh", 0.5f, 1, {"half", "x"}, {"part", "gate"})), rough));
        CHECK(same(value_of(gelu_nodes(argument, "Tanh", 0.5f, 1, {"x", "gate"}, {"half", "part"})), rough));
    }
}

TEST_CASE("load_onnx: formulas that are like gates keep their values") {
    const tg::tensor<float> x = tg::random::normal<float>(tg::shape{67}, {.seed = 5});
    const auto close = [&](const std::string& nodes, const auto& f) {
        const tg::tensor<float> y = value_of(nodes, x);
        REQUIRE(y.size() == x.size());
        for (std::int64_t i = 0; i < x.size(); ++i) {
            const double wanted = f(static_cast<double>(x.data()[i]));
            CHECK(std::fabs(static_cast<double>(y.data()[i]) - wanted) <= 1e-5 * (1 + std::fabs(wanted)));
        }
    };
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    const std::string twice = number_of("two", 2) + node("Mul", {"x", "two"}, {"d"});
    close(twice + node("Sigmoid", {"d"}, {"s"}) + node("Mul", {"x", "s"}, {"y"}),
          [&](double v) { return v * sigmoid(2 * v); });
    close(twice + node("Sigmoid", {"x"}, {"s"}) + node("Mul", {"d", "s"}, {"y"}),
          [&](double v) { return 2 * v * sigmoid(v); });
    close(node("Sigmoid", {"x"}, {"s"}) + node("Mul", {"s", "s"}, {"y"}),
          [&](double v) { return sigmoid(v) * sigmoid(v); });
    close(node("Sigmoid", {"x"}, {"s"}) + node("Add", {"x", "s"}, {"y"}), [&](double v) { return v + sigmoid(v); });
    const auto erf_gate = [](double v, double half, double one, double root) {
        return v * half * (one + std::erf(v * root));
    };
    const double root = std::sqrt(0.5);
    close(gelu_nodes(by_root, "Erf", 0.25f, 1, {"x", "gate"}, {"part", "half"}),
          [&](double v) { return erf_gate(v, 0.25, 1, root); });
    close(gelu_nodes(by_root, "Erf", 0.5f, 2, {"x", "gate"}, {"part", "half"}),
          [&](double v) { return erf_gate(v, 0.5, 2, root); });
    const std::string other = number_of("root", 1.5f) + node("Div", {"x", "root"}, {"u"});
    close(gelu_nodes(other, "Erf", 0.5f, 1, {"x", "gate"}, {"part", "half"}),
          [&](double v) { return erf_gate(v, 0.5, 1, 1 / 1.5); });
    close(gelu_nodes(by_root, "Tanh", 0.5f, 1, {"x", "gate"}, {"part", "half"}),
          [&](double v) { return v * 0.5 * (1 + std::tanh(v * root)); });
    close(gelu_nodes(cubic(0.5f, by_pow), "Tanh", 0.5f, 1, {"x", "gate"}, {"part", "half"}),
          [&](double v) { return v * 0.5 * (1 + std::tanh(0.5 * (v + 0.044715 * v * v * v))); });
    close(gelu_nodes(by_root, "Erf", 0.5f, 1, {"gate", "gate"}, {"part", "half"}),
          [&](double v) { return 0.5 * std::pow(1 + std::erf(v * root), 2); });
    // A long product of numbers and values
    std::string many = number_of("two", 1.0625f) + node("Mul", {"x", "two"}, {"p0"});
    for (int k = 0; k < 40; ++k)
        many += node("Mul", {"p" + std::to_string(k), k % 8 == 0 ? "x" : "two"}, {"p" + std::to_string(k + 1)});
    close(many + node("Identity", {"p40"}, {"y"}), [](double v) { return std::pow(v, 6) * std::pow(1.0625, 36); });
}

} // namespace load_onnx_gates_test
