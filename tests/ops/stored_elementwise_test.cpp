#if __has_include(<tapegraph/ops/elementwise/gated_activation.hpp>) && __has_include(<tapegraph/ops/elementwise/rounding.hpp>)

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace stored_elementwise_test {

/// gelu in both forms and rounding, against PyTorch 2.15 (float64); F = torch.nn.functional. Digits are all there, so
/// what is left are the roundings of a few operations.

namespace tg = tapegraph;
using tg::tensor;

namespace {

bool close(const tensor<double>& x, const std::vector<double>& y) {
    for (std::size_t i = 0; i < y.size(); ++i)
        if (!(std::abs(x.data()[i] - y[i]) <= 1e-15 * std::max(1.0, std::abs(y[i])))) return false;
    return x.size() == static_cast<std::int64_t>(y.size());
}
// gelu's tails are small beside 1, and their relative error counts.
bool close_in_tails(const tensor<double>& x, const std::vector<double>& y) {
    for (std::size_t i = 0; i < y.size(); ++i)
        if (!(std::abs(x.data()[i] - y[i]) <= 1e-9 * std::abs(y[i]))) return false;
    return close(x, y);
}

/// The second derivative of f, element by element, by the library's own transform of its own transform.
template <class F>
std::vector<double> second(const F& f, const tensor<double>& x) {
    const auto slopes = [&](const auto& v) { return sum(tg::gradient([&](const auto& w) { return sum(f(w)); })(v)); };
    return tensor<double>(tg::gradient(slopes)(x)).to_vector();
}

const tensor<double> points{-6, -3, -1, -0.5, 0, 0.5, 1, 3, 6};

} // namespace

TEST_CASE("stored: gelu by the error function") {
    // x = torch.tensor([-6., -3., -1., -0.5, 0., 0.5, 1., 3., 6.], requires_grad=True); y = F.gelu(x);
    // y.sum().backward()
    CHECK(close_in_tails(gelu(points),
                         {-5.919525869479969e-09, -0.00404969409489031, -0.15865525393145702, -0.15426876936299344, 0,
                          0.34573123063700656, 0.841344746068543, 2.99595030590511, 5.999999994080474}));
    CHECK(close(tg::gradient([](const auto& x) { return sum(gelu(x)); })(points),
                {-3.546870945402639e-08, -0.01194564720418392, -0.08331547058768635, 0.13250487534383712, 0.5,
                 0.8674951246561629, 1.0833154705876864, 1.011945647204184, 1.0000000354687093}));
}

TEST_CASE("stored: gelu by tanh") {
    // the same with F.gelu(x, approximate="tanh"), whose own tail is 1 + tanh(u) near u = -12: no digits there to
    // compare
    CHECK(close(gelu(points, tg::approximate),
                {-8.43964897967453e-11, -0.0036373920817729943, -0.15880800939172324, -0.15428599017485606, 0,
                 0.34571400982514394, 0.8411919906082768, 2.996362607918227, 5.9999999999156035}));
    CHECK(close(tg::gradient([](const auto& x) { return sum(gelu(x, tg::approximate)); })(points),
                {-7.709976012836329e-10, -0.011584166630969648, -0.08296408384578252, 0.13263009646535764, 0.5,
                 0.8673699035346424, 1.0829640838457826, 1.0115841666309695, 1.0000000007709977}));
}

TEST_CASE("stored: round takes halves to the even number") {
    // torch.round([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370497.5])
    const tensor<double> y =
        round(tensor<double>{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370497.5});
    const std::vector<double> expected{-2, -2, -0.0, 0, 2, 2, 0, 4503599627370498};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(y.data()[i] == expected[i]);
        CHECK(std::signbit(y.data()[i]) == std::signbit(expected[i]));
    }
}

// (slope,) = torch.autograd.grad(f(x).sum(), x, create_graph=True); torch.autograd.grad(slope.sum(), x)
TEST_CASE("stored: second derivatives at the ends of domains, far out and at NaN") {
    constexpr double inf = INFINITY, far = 1.7976931348623157e308;
    const tensor<double> ends{1, -1}, farthest{far, -far}, not_a_number{NAN};
    using vector = std::vector<double>;
    CHECK(second([](const auto& x) { return asin(x); }, ends) == vector{inf, -inf});
    CHECK(second([](const auto& x) { return acos(x); }, ends) == vector{-inf, inf});
    CHECK(second([](const auto& x) { return atanh(x); }, ends) == vector{inf, -inf});
    CHECK(second([](const auto& x) { return softsign(x); }, farthest) == vector{0, 0});
    CHECK(std::isnan(second([](const auto& x) { return swish(x); }, not_a_number)[0]));
    CHECK(std::isnan(second([](const auto& x) { return mish(x); }, not_a_number)[0]));
    CHECK(std::isnan(second([](const auto& x) { return gelu(x); }, not_a_number)[0]));
    CHECK(std::isnan(second([](const auto& x) { return gelu(x, tg::approximate); }, not_a_number)[0]));
}

#endif

} // namespace stored_elementwise_test
