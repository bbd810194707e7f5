#include <support/finite_differences.hpp>
#include <support/messages.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace corner_test {

/// Derivatives where finite differences are useless: kinks, ties, poles; and functions without one. What is expected is what
/// PyTorch and TensorFlow agree on, unless a comment says otherwise.

namespace tg = tapegraph;
using tg::tensor;
using vector = std::vector<double>;
using support::message_of;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class F>
vector slope(const F& f, tensor<double> x) {
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> y = f(x);
    return tape.gradient(y, x).to_vector();
}

bool same(const vector& a, const vector& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) return false;
    return true;
}

} // namespace

TEST_CASE("kinks: derivatives at the point itself") {
    const tensor<double> x{-1, 0, -0.0, 1};
    CHECK(slope([](auto v) { return relu(v); }, x) == vector{0, 0, 0, 1});
    CHECK(slope([](auto v) { return abs(v); }, x) == vector{-1, 0, 0, 1});
    CHECK(slope([](auto v) { return sign(v); }, x) == vector{0, 0, 0, 0});
    CHECK(same(slope([](auto v) { return sqrt(v); }, {0, 4, inf}), {inf, 0.25, 0}));
    CHECK(same(slope([](auto v) { return log(v); }, {0, 2, inf}), {inf, 0.5, 0}));
}

TEST_CASE("ties: those who attain a maximum share its derivative evenly") {
    tensor<double> x{1, 2, 3}, y{1, 3, 2};
    tg::gradient_tape tape;
    tape.watch(x, y);
    const tensor<double> z = maximum(x, y) + 10 * minimum(x, y);
    const auto [dx, dy] = tape.gradient(z, x, y);
    CHECK(dx.to_vector() == vector{5.5, 10, 1});
    CHECK(dy.to_vector() == vector{5.5, 1, 10});
    CHECK(slope([](auto v) { return max(v); }, {2, 5, 5, 1}) == vector{0, 0.5, 0.5, 0});
    CHECK(slope([](auto v) { return min(v, 0); }, {{1, 3}, {1, 2}}) == vector{0.5, 0, 0.5, 1});
    CHECK(slope([](auto v) { return max(v, {}, {.keepdims = true}); }, {{7, 7}, {7, 7}}) ==
          vector{0.25, 0.25, 0.25, 0.25});
    CHECK(slope([](auto v) { return max(v); }, {-inf, -inf}) == vector{0.5, 0.5});
    CHECK(slope([](auto v) { return max(v); }, {inf, 1}) == vector{1, 0});
    // NaN is equal to nothing: 0 / 0 for all, as in PyTorch.
    CHECK(same(slope([](auto v) { return max(v); }, {1, not_a_number}), {not_a_number, not_a_number}));
    // A pooling window gives to its first maximum.
    CHECK(slope([](auto v) { return max_pooling2d(reshape(v, {1, 2, 2, 1})); }, {3, 7, 7, 1}) == vector{0, 1, 0, 0});
    CHECK(slope([](auto v) { return maximum(v, v); }, {1, -2}) == vector{1, 1});
}

TEST_CASE("pow at zero and with negative bases") {
    tensor<double> x{0, 0, 0, 0, -2, -2}, n{0, 1, 2, 3, 3, 0};
    tg::gradient_tape tape;
    tape.watch(x, n);
    const tensor<double> y = pow(x, n);
    const auto [dx, dn] = tape.gradient(y, x, n);
    CHECK(y.to_vector() == vector{1, 0, 0, 0, -8, 1});
    CHECK(same(dx.to_vector(), {0, 1, 0, 0, 12, 0}));
    CHECK(same({dn.data()[0], dn.data()[1], dn.data()[2], dn.data()[3]}, {0, 0, 0, 0}));
    CHECK(std::isnan(dn.data()[4])); // the exponent of a negative base cannot move
}

TEST_CASE("where: the branch not taken contributes nothing, not even NaN, to what is taken") {
    CHECK(slope([](auto v) { return where(v > 0, 3 * v, -v); }, {-1, 0, 2}) == vector{-1, -1, 3});
    // The known trap of all reverse-mode libraries: the other branch's own derivative is 0 * inf.
    CHECK(same(slope([](auto v) { return where(v > 0, sqrt(v), 0 * v); }, {4}), {0.25}));
}

TEST_CASE("stop_gradient and cast") {
    CHECK(slope([](auto v) { return v * stop_gradient(v); }, {2, -3}) == vector{2, -3});
    CHECK(slope([](auto v) { return stop_gradient(v * v); }, {2, -3}) == vector{0, 0});
    // Through float and back: the derivative keeps its operand's type.
    CHECK(slope([](auto v) { return tg::cast<double>(tg::cast<float>(v) * 3); }, {0.5, -2}) == vector{3, 3});
    // Indices and answers have no derivative.
    CHECK(slope([](auto v) { return v * tg::cast<double>(v > 0); }, {2, -3}) == vector{1, 0});
    CHECK(slope([](auto v) { return v * tg::cast<double>(tg::cast<std::int32_t>(v)); }, {2.5, -3.5}) == vector{2, -3});
}

TEST_CASE("integers: arithmetic, comparison, cast, sum") {
    const tensor<std::int32_t> a{7, -7, 3}, b{2, 2, -3};
    CHECK(tensor<std::int32_t>(a * b + 1).to_vector() == std::vector<std::int32_t>{15, -13, -8});
    CHECK(tensor<std::int32_t>(a / b).to_vector() == std::vector<std::int32_t>{3, -3, -1}); // as C++ divides
    CHECK(tensor<bool>(a > b).to_vector() == std::vector<bool>{true, false, true});
    CHECK(tensor<bool>(a == 3).to_vector() == std::vector<bool>{false, false, true});
    CHECK(tensor<std::int32_t>(maximum(a, 2)).to_vector() == std::vector<std::int32_t>{7, 2, 3});
    CHECK(tensor<std::int32_t>(minimum(b, a) + abs(a)).to_vector() == std::vector<std::int32_t>{9, 0, 0});
    CHECK(tensor<std::int32_t>(sign(a)).to_vector() == std::vector<std::int32_t>{1, -1, 1});
    CHECK(tensor<std::int32_t>(where(a > 0, a, -a)).to_vector() == std::vector<std::int32_t>{7, 7, 3});
    CHECK(tensor<float>(tg::cast<float>(a) * 0.5).to_vector() == std::vector<float>{3.5f, -3.5f, 1.5f});
    const tensor<std::int64_t> large{std::int64_t{1} << 40, -1};
    CHECK(tensor<std::int64_t>(large + large).to_vector() == std::vector<std::int64_t>{std::int64_t{1} << 41, -2});
    CHECK(tensor<double>(tg::cast<double>(large)).to_vector() == vector{1099511627776.0, -1});
    const tensor<std::uint8_t> bytes{0, 200, 255};
    CHECK(tensor<float>(tg::cast<float>(bytes) / 255).to_vector()[2] == 1.0f);
}

TEST_CASE("NaN and infinity through reductions") {
    CHECK(std::isnan(max(tensor<double>{1, not_a_number, 3}).item()));
    CHECK(std::isnan(min(tensor<double>{not_a_number, 1}).item()));
    CHECK(std::isnan(sum(tensor<double>{inf, -inf}).item()));
    CHECK(max(tensor<float>{-INFINITY, -INFINITY}).item() == -INFINITY);
    std::vector<float> many(1000, -1.0f);
    many[777] = NAN;
    CHECK(std::isnan(max(tg::from_range<float>(many, {1000})).item()));
    CHECK(std::isnan(tensor<float>(max(tg::from_range<float>(many, {10, 100}), 1)).data()[7]));
    CHECK(tensor<float>(max(tg::from_range<float>(many, {10, 100}), 1)).data()[6] == -1.0f);
    // Shifting by an infinite maximum would make NaN of these.
    CHECK(logsumexp(tensor<double>{-inf, -inf}).item() == -inf);
    CHECK(logsumexp(tensor<double>{1, inf}).item() == inf);
    CHECK(logsumexp(tensor<double>{-inf, 3}).item() == 3);
    CHECK(logsumexp(tensor<double>{1000, 1000}).item() == doctest::Approx(1000 + std::log(2.0)).epsilon(1e-15));
    CHECK(softmax(tensor<double>{1000, -1000, -inf}).to_vector() == vector{1, 0, 0});
}

TEST_CASE("reductions of nothing") {
    const auto none = tg::zeros<double>({0}), wide = tg::zeros<double>({3, 0});
    CHECK(sum(none).item() == 0);
    CHECK(prod(none).item() == 1);
    CHECK(std::isnan(mean(none).item()));
    CHECK(sum(wide, 1).to_vector() == vector{0, 0, 0});
    CHECK(prod(wide, 1).to_vector() == vector{1, 1, 1});
    CHECK(sum(wide, 0).shape() == tg::shape{0});
    CHECK(max(wide, 0).shape() == tg::shape{0});
    // torch.logsumexp, jax.scipy.special.logsumexp and tf.reduce_logsumexp alike: the logarithm of a sum that is 0
    CHECK(logsumexp(none).item() == -inf);
    CHECK(logsumexp(wide, 1).to_vector() == vector{-inf, -inf, -inf});
    CHECK(logsumexp(wide, 1, {.keepdims = true}).shape() == tg::shape{3, 1});
    CHECK(logsumexp(wide, 0).shape() == tg::shape{0});
    CHECK(slope([](auto v) { return logsumexp(reshape(v, {3, 0}), 1); }, {}).empty());
    for (const auto& text : {message_of([&] { max(none); }), message_of([&] { min(wide, 1); })})
        CHECK_MESSAGE(text.find("has no elements") != std::string::npos, text);
}

TEST_CASE("sorting with NaN and ties") {
    const tensor<double> x{3, not_a_number, -inf, 3, 1};
    CHECK(argsort(x).to_vector() == std::vector<std::int32_t>{2, 4, 0, 3, 1});
    CHECK(argsort(x, {.descending = true}).to_vector() == std::vector<std::int32_t>{0, 3, 4, 2, 1});
    CHECK(argmax(x).item() == 1); // as NumPy: NaN is the largest and the smallest
    CHECK(argmin(x).item() == 1);
    CHECK(argmax(tensor<double>{1, 5, 5}).item() == 1);
    CHECK(slope([](auto v) { return sort(v) * tensor<double>{1, 2, 3}; }, {30, 10, 20}) == vector{3, 1, 2});
}

TEST_CASE("random numbers: reproducible, in range, of the right moments") {
    const auto u =
        tg::eager::create<tg::random_op<double>>({0, std::int64_t(tg::distribution::uniform), -1, 3}, {20011}, {7, 0});
    const auto n =
        tg::eager::create<tg::random_op<double>>({0, std::int64_t(tg::distribution::normal), 2, 0.5}, {20011}, {7, 0});
    CHECK(min(u).item() >= -1);
    CHECK(max(u).item() < 3);
    // Standard errors: 4 / sqrt(12 n) = 0.008 and 0.5 / sqrt(n) = 0.0035; five of them are allowed.
    CHECK(std::abs(mean(u).item() - 1) < 0.041);
    CHECK(std::abs(mean(n).item() - 2) < 0.018);
    CHECK(std::abs(variance(u).item() - 16.0 / 12) < 0.05);
    CHECK(std::abs(variance(n).item() - 0.25) < 0.0125);
    const auto again =
        tg::eager::create<tg::random_op<double>>({0, std::int64_t(tg::distribution::uniform), -1, 3}, {20011}, {7, 0});
    CHECK(again.to_vector() == u.to_vector());
    const auto other =
        tg::eager::create<tg::random_op<double>>({0, std::int64_t(tg::distribution::uniform), -1, 3}, {20011}, {8, 0});
    CHECK(sum(tg::cast<double>(other == u)).item() < 5);
    // Element i does not depend on how many there are.
    const auto few =
        tg::eager::create<tg::random_op<double>>({0, std::int64_t(tg::distribution::uniform), -1, 3}, {5}, {7, 0});
    for (int i = 0; i < 5; ++i) CHECK(few(i) == u(i));
    const auto none = tg::eager::create<tg::random_op<float>>({0, 0, 0, 1}, {0, 3}, {7, 0});
    CHECK(none.size() == 0);
}

} // namespace corner_test
