// Operators of onnxruntime's own domain com.microsoft against formulas in double; tests/peers/onnx_contrib.py compares them with onnxruntime.

#include <io/onnx_files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace load_onnx_microsoft_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

const std::string domain = "com.microsoft";
constexpr int u8 = 2, i32 = 6;

std::string real_attribute(const std::string& name, float v) {
    std::string bytes(sizeof v, '\0');
    std::memcpy(bytes.data(), &v, sizeof v);
    return text(5, text(1, name) + varint(2 * 8 + 5) + bytes + number(20, 1));
}
std::vector<float> normal(std::size_t count, unsigned seed, double factor = 1) {
    std::mt19937 g(seed);
    std::normal_distribution<double> d;
    std::vector<float> v(count);
    for (float& x : v) x = static_cast<float>(factor * d(g));
    return v;
}
std::vector<std::int8_t> bytes_of(std::size_t count, unsigned seed) {
    std::mt19937 g(seed);
    std::vector<std::int8_t> v(count);
    for (auto& x : v) x = static_cast<std::int8_t>(static_cast<int>(g() % 255) - 127);
    return v;
}
tg::tensor<float> tensor_of(const std::vector<float>& items, const tg::shape& dims) {
    tg::tensor<float> t(tg::any_tensor(tg::dtype::f32, dims));
    std::copy(items.begin(), items.end(), t.mutable_data());
    return t;
}
void check_near(const tg::any_tensor& got, const std::vector<double>& expected, double tolerance) {
    const tg::tensor<float> y(got);
    REQUIRE(y.size() == static_cast<std::int64_t>(expected.size()));
    for (std::int64_t i = 0; i < y.size(); ++i) {
        const double e = expected[static_cast<std::size_t>(i)];
        CHECK(std::fabs(static_cast<double>(y.data()[i]) - e) <= tolerance * (1 + std::fabs(e)));
    }
}

// x [rows, in] as integers by its range, times a kernel [in, out] of integers with a scale for each column.
std::vector<double> dynamic_product(const std::vector<double>& x, std::size_t rows, std::size_t in,
                                    const std::vector<std::int8_t>& kernel, const std::vector<float>& scales) {
    const std::size_t out = scales.size();
    double low = 0, high = 0;
    for (const double v : x) low = std::min(low, v), high = std::max(high, v);
    const auto step = static_cast<float>((high - low) / 255);
    const float scale = step == 0 ? 1 : step;
    const double zero = std::nearbyint(std::clamp(-low / scale, 0.0, 255.0));
    std::vector<double> y(rows * out, 0);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t k = 0; k < in; ++k) {
            const auto quotient = static_cast<float>(x[r * in + k]) / scale;
            const double q = std::clamp(std::nearbyint(static_cast<double>(quotient)) + zero, 0.0, 255.0) - zero;
            for (std::size_t o = 0; o < out; ++o)
                y[r * out + o] += q * kernel[k * out + o] * static_cast<double>(scale * scales[o]);
        }
    return y;
}

} // namespace

TEST_CASE("an LSTM whose kernels are integers quantises what it multiplies at each step") {
    constexpr std::size_t steps = 5, batch = 1, in = 7, units = 3;
    const auto w = bytes_of(in * 4 * units, 1), r = bytes_of(units * 4 * units, 2);
    const auto b = normal(8 * units, 3, 0.5), w_scale = normal(4 * units, 4, 0.001),
               r_scale = normal(4 * units, 5, 0.001);
    std::vector<float> ws = w_scale, rs = r_scale;
    for (float& v : ws) v = std::fabs(v) + 0.004F;
    for (float& v : rs) v = std::fabs(v) + 0.004F;
    const auto x = normal(steps * batch * in, 6);
    const std::vector<std::int8_t> zeros(4 * units, 0);
    const support::temporary_folder folder;
    const auto net =
        loaded(folder, model(node("DynamicQuantizeLSTM", {"x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"},
                                  {"y", "h", "c"}, attribute("hidden_size", 3), domain) +
                             initializer("w", i8, {1, 7, 12}, w) + initializer("r", i8, {1, 3, 12}, r) +
                             initializer("b", f32, {1, 24}, b) + initializer("ws", f32, {1, 12}, ws) +
                             initializer("wz", i8, {1, 12}, zeros) + initializer("rs", f32, {1, 12}, rs) +
                             initializer("rz", i8, {1, 12}, zeros) + value(11, "x", f32, {"steps", "1", "7"}) +
                             value(12, "y", f32, {}) + value(12, "h", f32, {}) + value(12, "c", f32, {})));
    CHECK(net.variables().size() == 1); // the bias: scales belong to their integers
    const auto y = net.predict({tensor_of(x, {5, 1, 7})});

    const auto from_x = dynamic_product({x.begin(), x.end()}, steps, in, w, ws);
    std::vector<double> h(units, 0), c(units, 0), expected;
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    for (std::size_t t = 0; t < steps; ++t) {
        const auto from_h = dynamic_product(h, 1, units, r, rs);
        const auto gate = [&](std::size_t k, std::size_t u) {
            const std::size_t at = k * units + u;
            return from_x[t * 4 * units + at] + from_h[at] + static_cast<double>(b[at]) +
                   static_cast<double>(b[4 * units + at]);
        };
        for (std::size_t u = 0; u < units; ++u) { // ONNX's order: input, output, forget, new
            c[u] = sigmoid(gate(2, u)) * c[u] + sigmoid(gate(0, u)) * std::tanh(gate(3, u));
            h[u] = sigmoid(gate(1, u)) * std::tanh(c[u]);
        }
        expected.insert(expected.end(), h.begin(), h.end());
    }
    CHECK(y[0].shape() == tg::shape{5, 1, 1, 3});
    check_near(y[0], expected, 1e-5);
    check_near(y[1], h, 1e-5);
    check_near(y[2], c, 1e-5);
}

TEST_CASE("operators on integers are the floating ones between their scales") {
    const support::temporary_folder folder;
    const std::vector<std::uint8_t> zero{10}, other{200};
    const auto number_of = [](const char* name, float v) { return initializer<float>(name, f32, {}, {v}); };
    const auto net =
        loaded(folder, model(node("QLinearAdd", {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"}, {}, domain) +
                             node("QLinearSigmoid", {"y", "ys", "yz", "ss", "sz"}, {"s"}, {}, domain) +
                             number_of("as", 0.5F) + number_of("bs", 0.25F) + number_of("ys", 1.0F) +
                             number_of("ss", 1.0F / 256) + initializer("az", u8, {}, zero) +
                             initializer("bz", u8, {}, other) + initializer("yz", u8, {}, zero) +
                             initializer<std::uint8_t>("sz", u8, {}, {0}) + value(11, "a", u8, {"3"}) +
                             value(11, "b", u8, {"3"}) + value(12, "y", u8, {}) + value(12, "s", u8, {})));
    const auto got = net.predict({tg::tensor<std::uint8_t>{10, 20, 255}, tg::tensor<std::uint8_t>{200, 180, 255}});
    // 0.5 (a - 10) + 0.25 (b - 200) + 10: 10, 10, and 146.25
    const tg::tensor<std::uint8_t> y(got[0]), s(got[1]);
    for (int i = 0; i < 3; ++i) CHECK(int{y.data()[i]} == (i < 2 ? 10 : 146));
    CHECK(int{s.data()[0]} == 128); // sigmoid(0) = 128 / 256
    CHECK(int{s.data()[2]} == 255);
}

TEST_CASE("weights of four bits have a scale and a zero point for each block of a row") {
    constexpr std::size_t n = 3, k = 37, block = 16, blocks = 3;
    std::mt19937 g(1);
    std::vector<std::uint8_t> packed(n * blocks * block / 2), zeros(n * 2);
    for (auto& v : packed) v = static_cast<std::uint8_t>(g());
    for (auto& v : zeros) v = static_cast<std::uint8_t>(g());
    const auto scales = normal(n * blocks, 2), x = normal(2 * k, 3);
    const std::string nodes =
        node("MatMulNBits", {"x", "w", "s", "z"}, {"y"},
             attribute("N", 3) + attribute("K", 37) + attribute("bits", 4) + attribute("block_size", 16), domain);
    const auto with_weights = [&](const std::vector<std::int64_t>& dims, const std::vector<std::uint8_t>& w) {
        return model(nodes + initializer("w", u8, dims, w) + initializer("s", f32, {9}, scales) +
                     initializer("z", u8, {6}, zeros) + value(11, "x", f32, {"rows", "37"}) + value(12, "y", f32, {}));
    };
    const support::temporary_folder folder;
    const auto y = loaded(folder, with_weights({3, 3, 8}, packed)).predict({tensor_of(x, {2, 37})});
    std::vector<double> expected;
    for (std::size_t row = 0; row < 2; ++row)
        for (std::size_t o = 0; o < n; ++o) {
            double sum = 0;
            for (std::size_t i = 0; i < k; ++i) {
                const std::size_t at = i / block;
                const auto nibble = [](std::uint8_t byte, std::size_t place) {
                    return place % 2 == 0 ? byte & 15 : byte >> 4;
                };
                const int q = nibble(packed[o * blocks * block / 2 + i / 2], i),
                          zero = nibble(zeros[o * 2 + at / 2], at);
                sum += static_cast<double>(x[row * k + i]) * (q - zero) * static_cast<double>(scales[o * blocks + at]);
            }
            expected.push_back(sum);
        }
    check_near(y[0], expected, 1e-5);
    packed.pop_back();
    CHECK(refusal(folder, with_weights({71}, packed)).find("weights, scales or zero points of another extent") !=
          std::string::npos);
}

TEST_CASE("attention with one matrix for queries, keys and values, and a mask of lengths") {
    constexpr std::size_t length = 3, width = 4, heads = 2, size = 2;
    const auto x = normal(length * width, 1), w = normal(width * 3 * width, 2), b = normal(3 * width, 3);
    const support::temporary_folder folder;
    const auto net =
        loaded(folder, model(node("Attention", {"x", "w", "b", "mask"}, {"y"}, attribute("num_heads", 2), domain) +
                             initializer("w", f32, {4, 12}, w) + initializer("b", f32, {12}, b) +
                             initializer<std::int32_t>("mask", i32, {1}, {2}) +
                             value(11, "x", f32, {"1", "length", "4"}) + value(12, "y", f32, {})));
    const auto y = net.predict({tensor_of(x, {1, 3, 4})});
    const auto projected = [&](std::size_t row, std::size_t column) {
        double sum = static_cast<double>(b[column]);
        for (std::size_t k = 0; k < width; ++k)
            sum += static_cast<double>(x[row * width + k]) * static_cast<double>(w[k * 3 * width + column]);
        return sum;
    };
    std::vector<double> expected(length * width, 0);
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < length; ++i) {
            double total = 0;
            for (std::size_t j = 0; j < 2; ++j) { // the third one does not count
                double score = 0;
                for (std::size_t k = 0; k < size; ++k)
                    score += projected(i, h * size + k) * projected(j, width + h * size + k);
                const double power = std::exp(score / std::sqrt(2.0));
                total += power;
                for (std::size_t k = 0; k < size; ++k)
                    expected[i * width + h * size + k] += power * projected(j, 2 * width + h * size + k);
            }
            for (std::size_t k = 0; k < size; ++k) expected[i * width + h * size + k] /= total;
        }
    check_near(y[0], expected, 1e-5);
}

TEST_CASE("that domain's operators are not the standard's of the same name, and others are refused by name") {
    const support::temporary_folder folder;
    const auto io = value(11, "x", f32, {"2"}) + value(12, "y", f32, {});
    CHECK(refusal(folder, model(node("BeamSearch", {"x"}, {"y"}, {}, domain) + io))
              .find("BeamSearch 'the BeamSearch': no such operator of domain 'com.microsoft' here") !=
          std::string::npos);
    CHECK(refusal(folder, model(node("Relu", {"x"}, {"y"}, {}, domain) + io)).find("no such operator of domain") !=
          std::string::npos);
    const auto gelu = loaded(folder, model(node("QuickGelu", {"x"}, {"y"}, real_attribute("alpha", 2), domain) + io))
                          .predict({tg::tensor<float>{0.5F, -1}});
    check_near(gelu[0], {0.5 / (1 + std::exp(-1.0)), -1 / (1 + std::exp(2.0))}, 1e-6);
}

TEST_CASE("kernels of integers become floating numbers once, in the order of axes of convolutions") {
    const auto w = bytes_of(2 * 3 * 2 * 2, 1);
    const std::vector<float> scales{0.5F, 0.25F}, x = normal(3 * 4 * 4, 2);
    const support::temporary_folder folder;
    const auto net =
        loaded(folder, model(node("DequantizeLinear", {"w", "s", "z"}, {"f"}, attribute("axis", 0)) +
                             node("Conv", {"x", "f"}, {"y"}) + initializer("w", i8, {2, 3, 2, 2}, w) +
                             initializer("s", f32, {2}, scales) + initializer<std::int8_t>("z", i8, {2}, {3, -7}) +
                             value(11, "x", f32, {"1", "3", "4", "4"}) + value(12, "y", f32, {})));
    CHECK(net.variables().size() == 0);
    std::vector<double> expected;
    for (std::size_t o = 0; o < 2; ++o)
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = 0; j < 3; ++j) {
                double sum = 0;
                for (std::size_t c = 0; c < 3; ++c)
                    for (std::size_t a = 0; a < 2; ++a)
                        for (std::size_t b = 0; b < 2; ++b)
                            sum += static_cast<double>(x[c * 16 + (i + a) * 4 + j + b]) *
                                   (w[((o * 3 + c) * 2 + a) * 2 + b] - (o == 0 ? 3 : -7)) * (o == 0 ? 0.5 : 0.25);
                expected.push_back(sum);
            }
    check_near(net.predict({tensor_of(x, {1, 3, 4, 4})})[0], expected, 1e-5);
}

TEST_CASE("inputs that a program for all does not take get one of their own") {
    const support::temporary_folder folder;
    // The file says of both axes that they are "?", and converters write 1000000000 for "up to the end".
    const std::string list = initializer<std::int64_t>("from", i64, {2}, {0, 1}) +
                             initializer<std::int64_t>("to", i64, {2}, {1000000000, 1000000000});
    const auto net = loaded(folder, model(node("Slice", {"x", "from", "to"}, {"y"}) + list +
                                          value(11, "x", f32, {"?", "?"}) + value(12, "y", f32, {})));
    CHECK(net.predict({tg::zeros<float>(tg::shape{3, 3})})[0].shape() == tg::shape{3, 2});
    CHECK(net.predict({tg::zeros<float>(tg::shape{2, 5})})[0].shape() == tg::shape{2, 4});
    CHECK(net.predict({tg::zeros<float>(tg::shape{1, 2})})[0].shape() == tg::shape{1, 1});
    // Five at most: shorter inputs are not refused for it.
    const auto first = loaded(
        folder,
        model(node("Slice", {"x", "from", "to"}, {"y"}) + initializer<std::int64_t>("from", i64, {1}, {0}) +
              initializer<std::int64_t>("to", i64, {1}, {5}) + value(11, "x", f32, {"n"}) + value(12, "y", f32, {})));
    CHECK(first.predict({tg::zeros<float>(tg::shape{7})})[0].shape() == tg::shape{5});
    CHECK(first.predict({tg::zeros<float>(tg::shape{3})})[0].shape() == tg::shape{3});
    const auto sum = loaded(folder, model(node("Add", {"x", "z"}, {"y"}) + value(11, "x", f32, {"n"}) +
                                          value(11, "z", f32, {"n"}) + value(12, "y", f32, {})));
    CHECK_THROWS_AS((void)sum.predict({tg::zeros<float>(tg::shape{3}), tg::zeros<float>(tg::shape{4})}),
                    tg::shape_error);
}

} // namespace load_onnx_microsoft_test
