// Random operators of loaded models: laws, seeds, and numbers of their own for each prediction.

#include <io/onnx_files.hpp>

#include <tapegraph/eager/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace load_onnx_random_test {

namespace tg = tapegraph;
using namespace onnx_files;

namespace {

std::string real_attribute(const std::string& name, float v) {
    std::string bytes(sizeof v, '\0');
    std::memcpy(bytes.data(), &v, sizeof v);
    return text(5, text(1, name) + varint(2 * 8 + 5) + bytes + number(20, 1));
}
struct moments {
    double mean = 0, variance = 0, low = 1e300, high = -1e300;
};
template <class T>
moments moments_of(const tg::any_tensor& t) {
    const tg::tensor<T> x(t);
    moments m;
    const auto n = static_cast<double>(x.size());
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const auto v = static_cast<double>(x.data()[i]);
        m.mean += v / n, m.low = std::min(m.low, v), m.high = std::max(m.high, v);
    }
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const double d = static_cast<double>(x.data()[i]) - m.mean;
        m.variance += d * d / n;
    }
    return m;
}
bool same(const tg::any_tensor& a, const tg::any_tensor& b) {
    return a.size() == b.size() && std::memcmp(a.read(), b.read(), static_cast<std::size_t>(a.size()) * 4) == 0;
}
constexpr std::int64_t count = 40000; // means are known to 1/200 of a deviation: bounds below are five of these

} // namespace

TEST_CASE("uniform and normal numbers have the file's law, each prediction its own, each seed the same") {
    const support::temporary_folder folder;
    const std::vector<std::int64_t> extents{200, 200};
    const auto net = loaded(
        folder, model(node("RandomNormal", {}, {"n"},
                           attribute("shape", extents) + real_attribute("mean", 3) + real_attribute("scale", 2) +
                               real_attribute("seed", 7)) +
                      node("RandomUniformLike", {"x"}, {"u"}, real_attribute("low", -1) + real_attribute("high", 5)) +
                      node("RandomNormalLike", {"x"}, {"m"}) + value(11, "x", f32, {"rows", "200"}) +
                      value(12, "n", f32, {}) + value(12, "u", f32, {}) + value(12, "m", f32, {})));
    const tg::any_tensor x = tg::zeros<float>(tg::shape{200, 200});
    tg::random::set_seed(5);
    const auto a = net.predict({x}), b = net.predict({x});
    tg::random::set_seed(5);
    const auto again = net.predict({x});
    tg::random::set_seed(6);
    const auto other = net.predict({x});
    for (std::size_t k = 0; k < 3; ++k) {
        CHECK(same(a[k], again[k]));
        CHECK_FALSE(same(a[k], b[k]));
        CHECK_FALSE(same(a[k], other[k]));
    }
    const moments n = moments_of<float>(a[0]), u = moments_of<float>(a[1]), m = moments_of<float>(a[2]);
    CHECK(std::fabs(n.mean - 3) < 5 * 2 / 200.0);
    CHECK(std::fabs(n.variance - 4) < 5 * 4 * std::sqrt(2.0) / 200);
    CHECK(u.low >= -1);
    CHECK(u.high < 5);
    CHECK(std::fabs(u.mean - 2) < 5 * std::sqrt(3.0) / 200);
    CHECK(std::fabs(u.variance - 3) < 0.1);
    CHECK(std::fabs(m.mean) < 5 / 200.0);
    CHECK(std::fabs(m.variance - 1) < 5 * std::sqrt(2.0) / 200);
    double together = 0; // two operators of one law are independent
    const tg::tensor<float> first(a[0]), third(a[2]);
    for (std::int64_t i = 0; i < count; ++i)
        together += (static_cast<double>(first.data()[i]) - 3) / 2 * static_cast<double>(third.data()[i]) /
                    static_cast<double>(count);
    CHECK(std::fabs(together) < 5 / 200.0);
}

TEST_CASE("elements are one with their probability, classes are drawn by the logarithms of their weights") {
    const support::temporary_folder folder;
    const auto net = loaded(
        folder, model(node("Bernoulli", {"p"}, {"b"}) +
                      node("Multinomial", {"w"}, {"c"}, attribute("sample_size", count) + attribute("dtype", i64)) +
                      value(11, "p", f32, {"n"}) + value(11, "w", f32, {"rows", "3"}) + value(12, "b", f32, {}) +
                      value(12, "c", i64, {})));
    tg::tensor<float> p(tg::any_tensor(tg::dtype::f32, {count}));
    std::fill(p.mutable_data(), p.mutable_data() + count, 0.3F);
    p.mutable_data()[0] = 0, p.mutable_data()[1] = 1;
    // Weights 1 : 2 : 5, not normalized, and a row whose second class alone is possible.
    const float none = -std::numeric_limits<float>::infinity();
    const tg::tensor<float> w{{10, 10 + std::log(2.0F), 10 + std::log(5.0F)}, {none, 0, none}};
    const auto y = net.predict({p, w});
    const tg::tensor<float> b(y[0]);
    CHECK(b.data()[0] == 0);
    CHECK(b.data()[1] == 1);
    CHECK(std::fabs(moments_of<float>(y[0]).mean - 0.3) < 5 * std::sqrt(0.21) / 200);
    const tg::tensor<std::int64_t> c(y[1]);
    REQUIRE(c.shape() == tg::shape{2, count});
    double shares[3]{};
    for (std::int64_t i = 0; i < count; ++i) shares[c.data()[i]] += 1.0 / static_cast<double>(count);
    for (int k = 0; k < 3; ++k) {
        const double expected = k == 0 ? 0.125 : k == 1 ? 0.25 : 0.625;
        CHECK(std::fabs(shares[k] - expected) < 5 * std::sqrt(expected * (1 - expected)) / 200);
    }
    CHECK(std::all_of(c.data() + count, c.data() + 2 * count, [](std::int64_t v) { return v == 1; }));
}

TEST_CASE("dropout in training mode keeps the mean and says what it kept; outside of it nothing is dropped") {
    const support::temporary_folder folder;
    const auto with_mode = [&](bool trains) {
        return loaded(
            folder, model(node("Dropout", {"x", "r", "t"}, {"y", "kept"}) + initializer<float>("r", f32, {}, {0.25F}) +
                          initializer<std::uint8_t>("t", boolean, {}, {static_cast<std::uint8_t>(trains)}) +
                          value(11, "x", f32, {"n"}) + value(12, "y", f32, {}) + value(12, "kept", boolean, {})));
    };
    tg::tensor<float> x(tg::any_tensor(tg::dtype::f32, {count}));
    std::fill(x.mutable_data(), x.mutable_data() + count, 3.0F);
    const auto y = with_mode(true).predict({x});
    const tg::tensor<float> values(y[0]);
    const tg::tensor<bool> kept(y[1]);
    double share = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        CHECK_MESSAGE(values.data()[i] == (kept.data()[i] ? 4.0F : 0.0F), i);
        share += kept.data()[i] ? 1.0 / static_cast<double>(count) : 0;
    }
    CHECK(std::fabs(share - 0.75) < 5 * std::sqrt(0.1875) / 200);
    CHECK(moments_of<float>(with_mode(false).predict({x})[0]).low == 3);
}

TEST_CASE("what draws numbers names what it cannot draw") {
    const support::temporary_folder folder;
    const auto io = value(11, "x", f32, {"2", "3"}) + value(12, "y", f32, {});
    CHECK(refusal(folder, model(node("RandomUniform", {}, {"y"},
                                     attribute("shape", std::vector<std::int64_t>{2}) + attribute("dtype", i64)) +
                                io))
              .find("of i64") != std::string::npos);
    CHECK(refusal(
              folder,
              model(node("RandomUniformLike", {"x"}, {"y"}, real_attribute("low", 2) + real_attribute("high", 2)) + io))
              .find("low must lie below high") != std::string::npos);
    CHECK(refusal(folder, model(node("Multinomial", {"x"}, {"y"}, attribute("sample_size", -1)) + io))
              .find("sample_size = -1") != std::string::npos);
}

} // namespace load_onnx_random_test
