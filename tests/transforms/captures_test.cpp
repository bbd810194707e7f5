#include <support/messages.hpp>

#include <tapegraph/nn/scan.hpp>
#include <tapegraph/traced.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <tuple>

namespace captures_test {

/// Transforms of functions that capture, in graphs made at run time: data of the moment, and values of the graph around them.

namespace tg = tapegraph;
using tg::tensor;
using spec = tg::spec<double, 3>;

namespace {

const tensor<double> point{0.5, -1.25, 2};

/// The largest difference of two results of one structure, relative to numbers of order one.
double distance(const tensor<double>& a, const tensor<double>& b) {
    return static_cast<double>(tensor<double>(max(abs(a - b) / (1 + abs(b)))).item());
}
template <class... T>
double distance(const std::tuple<T...>& a, const std::tuple<T...>& b) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        double largest = 0;
        ((largest = std::max(largest, distance(std::get<I>(a), std::get<I>(b)))), ...);
        return largest;
    }
    (std::index_sequence_for<T...>{});
}
double distance(const auto& a, const auto& b) { return distance(a.parts(), b.parts()); }

/// The graph gives what the same callable gives on tensors. Sums of three numbers may be fused: a few roundings.
void check_graph(const auto& callable, const auto&... x) {
    auto made = tg::function<tg::traced>(callable, spec{}, (static_cast<void>(x), spec{})...);
    CHECK(distance(made(point, x...), callable(point, x...)) < 1e-14);
}

} // namespace

TEST_CASE("captures: every transform of a function that captures data") {
    for (const double rate : {1.5, -0.25}) {
        const auto f = [rate](auto x) { return tg::eval(sum(tg::sin(rate * x) * x)); };
        const auto each = [rate](auto x) { return tg::eval(tg::exp(rate * x) * x); };
        const auto near = [](const tensor<double>& found, const auto& slope) {
            for (int i = 0; i < 3; ++i) CHECK(found(i) == doctest::Approx(slope(point(i))).epsilon(1e-12));
        };
        const auto first = [rate](double x) { return rate * std::cos(rate * x) * x + std::sin(rate * x); };
        auto slopes = tg::function<tg::traced>(tg::gradient(f), spec{});
        near(slopes(point), first);
        check_graph(tg::gradient(f));
        check_graph(tg::value_and_gradient(f));
        check_graph(tg::hessian(f));
        check_graph(tg::jacobian(each));
        check_graph(tg::jacobian_forward(each));
        check_graph(tg::jacobian_reverse(each));
        check_graph(tg::vjp([rate](auto x) { return tg::eval(rate * x * x); }), point);
        check_graph(tg::jvp(each), point);
        check_graph(tg::hvp(f), point);
        check_graph(tg::checkpoint(each));
        check_graph(tg::gradient([&](auto x) { return sum(tg::checkpoint(each)(x)); }));
        check_graph(tg::vmap([rate](auto x) { return tg::eval(rate * x * x); }));
        check_graph(tg::vmap(tg::gradient([rate](auto x) { return tg::eval(tg::sin(rate * x)); })));
    }
}

TEST_CASE("captures: the backward function of custom_gradient captures data and values, with second derivatives") {
    for (const double limit : {0.5, 2.0}) {
        const auto f = [limit](auto x) {
            const auto clipped =
                tg::custom_gradient([](auto v) { return v; },
                                    [limit](auto dy, auto) { return tg::minimum(tg::maximum(dy, -limit), limit); });
            return sum(clipped(x) * x * x);
        };
        auto made = tg::function<tg::traced>(tg::gradient(f), spec{});
        const tensor<double> slopes = made(point);
        for (int i = 0; i < 3; ++i) { // clip(x^2) + 2 x^2
            const double square = point(i) * point(i);
            CHECK(slopes(i) == doctest::Approx(std::min(square, limit) + 2 * square).epsilon(1e-14));
        }
        check_graph(tg::gradient(f));
    }
    // A value of the graph; it is constant for the derivatives that backward gives, and its own are those of backward.
    const auto weighed = [](auto x) {
        const auto total = tg::eval(sum(x * x));
        const auto f = tg::custom_gradient([](auto v) { return tg::exp(v); },
                                           [total](auto dy, auto y, auto) { return dy * y * total; });
        return tg::eval(sum(f(x)));
    };
    auto made = tg::function<tg::traced>(tg::gradient(weighed), spec{});
    const double total = 0.25 + 1.5625 + 4;
    const tensor<double> slopes = made(point);
    for (int i = 0; i < 3; ++i) CHECK(slopes(i) == doctest::Approx(total * std::exp(point(i))).epsilon(1e-14));
    check_graph(tg::gradient(weighed));
    check_graph(tg::gradient([weighed](auto x) { return sum(square(tg::gradient(weighed)(x))); }));
    check_graph(tg::checkpoint(weighed));
    // Under vmap, what is kept is a function of batches.
    const double slope = 3;
    check_graph(tg::vmap(tg::gradient([slope](auto x) {
        return tg::custom_gradient([](auto v) { return v * v; }, [slope](auto dy, auto) { return slope * dy; })(x);
    })));
}

TEST_CASE("captures: custom_gradient in cells of scans") {
    // The cell has no captures, its backward function has.
    const auto f = [](auto xs) {
        const auto cell = [](auto state, auto x) {
            const auto gain = tg::eval(1 + x * x);
            const auto soft = tg::custom_gradient([](auto v) { return tanh(v); },
                                                  [gain](auto dy, auto, auto) { return tg::eval(dy * gain); });
            const auto next = tg::eval(soft(state + x));
            return std::pair{next, next};
        };
        const auto [last, all] = tg::scan(cell, tg::eval(0 * tg::take(xs, 0, 1)), xs);
        return tg::eval(sum(all * all) + sum(last));
    };
    auto slopes = tg::function<tg::traced>(tg::gradient(f), tg::spec<double, 2, tg::dyn>{});
    const tensor<double> xs{{0.5, -1, 0.25, 2}, {1, 0.75, -0.5, 0.125}};
    CHECK(distance(slopes(xs), tensor<double>(tg::gradient(f)(xs))) < 1e-14);
    // Both capture: the backward function might hold values of the graph around, which are not those of the step.
    const double rate = 0.5;
    const auto both = [rate](auto xs_of) {
        const auto cell = [rate](auto state, auto x) {
            const auto soft =
                tg::custom_gradient([](auto v) { return tanh(v); }, [rate](auto dy, auto) { return rate * dy; });
            const auto next = tg::eval(soft(state + rate * x));
            return std::pair{next, next};
        };
        const auto [last, all] = tg::scan(cell, tg::eval(0 * tg::take(xs_of, 0, 1)), xs_of);
        return tg::eval(sum(all));
    };
    const std::string text = support::message_of<tg::shape_error>(
        [&] { static_cast<void>(tg::function<tg::traced>(both, tg::spec<double, 2, tg::dyn>{})); });
    CHECK(text.find("scan: in a cell that captures, the backward function of custom_gradient cannot") == 0);
}

} // namespace captures_test
