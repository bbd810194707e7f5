#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace stored_test {

/// Values of other libraries where conventions differ: PyTorch 2.15 (float64) unless a comment says NumPy. Each comment
/// is the snippet that made what follows, with F = torch.nn.functional.
///
/// Numbers are printed with all their digits, so what is left is the last rounding of a few operations on either side:
/// 1e-14 of the larger of 1 and the value.

namespace tg = tapegraph;
using tg::tensor;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Empty if the values agree, signs of zeros included.
std::string differs(const tensor<double>& got, const std::vector<double>& want) {
    if (got.size() != static_cast<std::int64_t>(want.size())) return "shape " + to_string(got.shape());
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const double x = got.data()[i], y = want[static_cast<std::size_t>(i)];
        if (std::isnan(x) && std::isnan(y)) continue;
        if (x == y && std::signbit(x) == std::signbit(y)) continue;
        if (x != y && y != 0 && std::abs(x - y) <= 1e-14 * std::max(1.0, std::abs(y))) continue;
        if (y == 0 && x != 0 && std::abs(x) <= 1e-14) continue;
        return "element " + std::to_string(i) + " is " + std::to_string(x) + ", expected " + std::to_string(y);
    }
    return {};
}
#define TG_GIVES(got, ...) CHECK_MESSAGE(differs(got, __VA_ARGS__).empty(), differs(got, __VA_ARGS__))

template <class F>
tensor<double> slope(const F& f, tensor<double> x) {
    return tg::gradient(f)(x);
}

tensor<double> counted(std::int64_t count, const tg::shape& dims) { // torch.arange(1., count + 1).reshape(dims) / 4
    return reshape(tensor<double>(tg::arange<double>(count, 1) / 4), dims);
}

} // namespace

TEST_CASE("stored: 'same' padding of strided convolutions puts the odd zero after") {
    const tensor<double> w = reshape(tensor<double>{0.5, -1, 2, 0.25}, {4, 1, 1});
    // F.conv1d(F.pad(x, (1, 1)), w, stride=3): TensorFlow pads (ceil(14 / 3) - 1) * 3 + 4 - 14 = 2 in all
    TG_GIVES(conv1d(counted(14, {1, 14, 1}), w, {.stride = 3, .padding = tg::padding::same()}),
             {0.9375, 2.25, 3.5625, 4.875, 5.25});
    // F.conv1d(F.pad(x, (0, 1)), w, stride=3): one in all, at the end
    TG_GIVES(conv1d(counted(12, {1, 12, 1}), w, {.stride = 3, .padding = tg::padding::same()}),
             {1.375, 2.6875, 4, 4.5});
    // x = ((torch.arange(36.) * 7) % 11 / 4).reshape(1, 1, 6, 6); F.conv2d(F.pad(x, (0, 1, 0, 1)), w, stride=2)
    auto x = tensor<double>::uninitialized({1, 6, 6, 1});
    for (int i = 0; i < 36; ++i) x.mutable_data()[i] = i * 7 % 11 / 4.0;
    const tensor<double> w2 = reshape(tensor<double>{1, -1, 0.5, 0.25, 2, -0.5, -1.5, 1, 0.75}, {3, 3, 1, 1});
    TG_GIVES(conv2d(x, w2, {.stride = {2, 2}, .padding = tg::padding::same()}),
             {1.5625, 0.6875, 2.75, 4.5625, 3.6875, -0.375, 2.5625, 1.5, 2.9375});
}

TEST_CASE("stored: averages at the border count the elements inside") {
    // F.avg_pool2d(torch.arange(1., 10.).reshape(1, 1, 3, 3), 2, 2, ceil_mode=True)
    const tensor<double> x = reshape(tensor<double>(tg::arange<double>(9, 1)), {1, 3, 3, 1});
    TG_GIVES(average_pooling2d(x, {.pool_size = {2, 2}, .padding = tg::padding::same()}), {3, 4.5, 7.5, 9});
}

TEST_CASE("stored: the first of equal elements, and NaN") {
    // np.argmax([[1, 3, 3], [2, 2, 1], [nan, 1, 5]], -1), np.argmin([[1, 1, 3], [2, 2, 1]], -1)
    const tensor<double> x{{1, 3, 3}, {2, 2, 1}, {not_a_number, 1, 5}}, y{{1, 1, 3}, {2, 2, 1}};
    CHECK(tg::argmax(x, -1).to_vector() == std::vector<std::int32_t>{1, 0, 0});
    CHECK(tg::argmin(y, -1).to_vector() == std::vector<std::int32_t>{0, 2});
}

TEST_CASE("stored: variance of data far from zero") {
    // (torch.arange(5.) + 1e9).var(unbiased=False)
    TG_GIVES(variance(tensor<double>(tg::arange<double>(5, 1e9))), {2});
    // torch.tensor([1e4 + 0.5 * i for i in range(7)], dtype=torch.float32).var(unbiased=False): one pass
    // over squares in float gives 8
    CHECK(tg::variance(tensor<float>(tg::arange<float>(7, 1e4f, 0.5f))).item() == 1.0f);
}

TEST_CASE("stored: batch normalization uses the population's variance") {
    // bn = torch.nn.BatchNorm1d(2, eps=1e-3); y = bn(x); (y * w).sum().backward(); y, x.grad
    const tensor<double> w{{1, 2}, {-1, 0.5}, {3, 1}, {0.25, -2}};
    const auto normalized = [](auto x) {
        const auto middle = tg::mean(x, 0);
        return tg::eval((x - middle) / sqrt(tg::variance(x, 0) + 1e-3));
    };
    const tensor<double> x{{1, 2}, {3, -4}, {0.5, 6}, {2, 1}};
    TG_GIVES(normalized(x), {-0.6505917872017966, 0.21055042451289574, 1.4313019318439522, -1.47385297159027,
                             -1.1710652169632336, 1.3334860219150062, 0.3903550723210778, -0.07018347483763188});
    TG_GIVES(slope([&](auto v) { return sum(normalized(v) * w); }, x),
             {-0.7355925779284457, 0.43908023074622504, 0.1609780681105562, 0.154878227307492, 0.6016850498461153,
              0.06708043433765856, -0.027070540028226075, -0.6610388923913757});
}

TEST_CASE("stored: powers of awkward numbers") {
    // torch.pow(a, b)
    const tensor<double> a{0, 0, -0.0, -0.0, -0.0, -8, -8, 1, not_a_number, inf, -inf, -inf, 0.5, -1, 2, -1};
    const tensor<double> b{0, -1, -1, -2, 3, 1.0 / 3, 3, not_a_number, 0, -1, 3, 2, -inf, inf, 1024, not_a_number};
    TG_GIVES(tensor<double>(pow(a, b)),
             {1, inf, -inf, inf, -0.0, not_a_number, -512, 1, 1, 0, -inf, inf, inf, 1, inf, not_a_number});
}

TEST_CASE("stored: signs, maxima, logarithms of sums") {
    // np.sign([-0., 0., nan]); torch.sign gives 0 for NaN, and where NumPy and PyTorch differ we follow NumPy
    TG_GIVES(tensor<double>(sign(tensor<double>{-0.0, 0, not_a_number, -inf, 3})), {0, 0, not_a_number, -1, 1});
    // torch.maximum([nan, 1, nan], [1, nan, nan]); the sign of maximum(0, -0) is nobody's promise
    TG_GIVES(tensor<double>(
                 maximum(tensor<double>{not_a_number, 1, not_a_number}, tensor<double>{1, not_a_number, not_a_number})),
             {not_a_number, not_a_number, not_a_number});
    // torch.logsumexp([[-inf, -inf], [inf, 1], [-inf, 3], [1000, 1000], [nan, 1]], 1)
    const tensor<double> x{{-inf, -inf}, {inf, 1}, {-inf, 3}, {1000, 1000}, {not_a_number, 1}};
    TG_GIVES(logsumexp(x, 1), {-inf, inf, 3, 1000.6931471805599, not_a_number});
    // F.softplus([-800, -1, 0, 30, 800]); PyTorch's is x itself from 20 on
    TG_GIVES(tensor<double>(softplus(tensor<double>{-800, -1, 0, 800})),
             {0, 0.31326168751822286, 0.6931471805599453, 800});
}

TEST_CASE("stored: derivatives at ties") {
    // torch.max(x, [1, 2, 0]).sum().backward() for x = [1, 1, 3]: half to each
    TG_GIVES(slope([](auto x) { return sum(maximum(x, tensor<double>{1, 2, 0})); }, {1, 1, 3}), {0.5, 0, 1});
}

TEST_CASE("stored: casts truncate, and NaN is true") {
    // torch.tensor([1.9, -1.9, 0.5, -0.5, 2147483646.9]).to(torch.int32)
    const tensor<double> x{1.9, -1.9, 0.5, -0.5, 2147483646.9};
    CHECK(tensor<std::int32_t>(tg::cast<std::int32_t>(x)).to_vector() ==
          std::vector<std::int32_t>{1, -1, 0, 0, 2147483646});
    // torch.tensor([nan, 0., -0., 1e-320, -inf]).to(torch.bool)
    const tensor<bool> truth = tg::cast<bool>(tensor<double>{not_a_number, 0, -0.0, 1e-320, -inf});
    CHECK(truth.to_vector() == std::vector<bool>{true, false, false, true, true});
}

} // namespace stored_test
