#include "contestants.hpp"
#include "scalar_by_hand.hpp"
#include "scalar_problems.hpp"
#include "timing.hpp"

#include <tapegraph/tapegraph.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

/// Times values and gradients of functions of many numbers written with tensors and compiled by tg::function, in double on one
/// thread, beside the same functions in plain loops (scalar_problems.hpp): by hand, by tg::real, and by the peers of
/// contestants.hpp. Contestants alternate; prints medians of processor time in microseconds. All gradients are first
/// checked to be equal. vectorised.py times the same by JAX and PyTorch.
/// Usage: bench_autodiff_vectorised [seconds per function]

namespace {

namespace tg = tapegraph;
using contestants::numbers;
using vector = std::vector<double>;

constexpr auto chain = [](const auto& x) {
    return tg::eval(sum(log(1 + exp(sin(x) * x)) + sqrt(1 + square(tanh(x)))));
};

constexpr auto two_layers = [](const auto& first, const auto& second, const auto& x) {
    const auto h = tg::eval(tanh(matmul(x, first, {.transpose_b = true})));
    return tg::eval(sum(square(tanh(matmul(h, second, {.transpose_b = true})))));
};

constexpr std::int64_t point_count = 100000;
constexpr auto normal_gradient = [](const auto& p, const auto& points) {
    return tg::value_and_gradient([&](const auto& q) {
        const auto mean = tg::eval(slice(q, {{0, 1}})), log_scale = tg::eval(slice(q, {{1, 2}}));
        const auto squares = tg::eval(sum(square((points - mean) * exp(-log_scale))));
        return tg::eval(-0.5 * squares - static_cast<double>(point_count) * (sum(log_scale) + 0.91893853320467274178));
    })(p);
};

constexpr std::int64_t dims = 2, parts = 5, mixture_points = 1000;
constexpr auto mixture_gradient = [](const auto& a, const auto& m, const auto& q, const auto& l, const auto& below,
                                     const auto& points) {
    return tg::value_and_gradient([&](const auto& alphas, const auto& means, const auto& logs, const auto& lower) {
        const auto centred = tg::eval(tg::expand_dims(points, 0) - tg::expand_dims(means, 1)); // [K, N, D]
        const auto turned = matmul(centred, tg::eval(lower * below), {.transpose_b = true}) +
                            tg::expand_dims(tg::eval(exp(logs)), 1) * centred;
        const auto terms = tg::expand_dims(tg::eval(alphas + sum(logs, 1)), 1) - 0.5 * sum(square(turned), 2);
        return tg::eval(sum(tg::logsumexp(terms, 0)) - static_cast<double>(mixture_points) * tg::logsumexp(alphas));
    })(a, m, q, l);
};

/// A call of a compiled function, which writes the gradient.
template <class Call>
struct compiled {
    static constexpr const char* name = "tg::function";
    Call call;
    std::size_t bytes = 0;
    double operator()(const auto&, const vector&, vector& g) { return call(g); }
};

template <class F, class Call>
void compare(const char* title, const F& f, const vector& x, Call call, double budget) {
    vector expected(x.size());
    by_hand::gradient(f, x, expected);
    compiled<Call> ours{std::move(call)};
    std::vector<timing::timed> all{{"by hand", [&, g = expected]() mutable { by_hand::gradient(f, x, g); }}};
    contestants::enter(all, ours, f, x, expected);
    contestants::enter_all(all, f, x, expected);
    timing::print(title, std::move(all), budget);
}

/// Part of the numbers, as a tensor.
tg::tensor<double> part(const vector& x, std::size_t first, const tg::shape& dims_of_part) {
    return tg::tensor<double>(x.data() + first, dims_of_part);
}
/// Appends a tensor's elements.
double* put(double* to, const tg::tensor<double>& t) { return std::copy_n(t.data(), t.size(), to); }

} // namespace

int main(int argc, char** argv) {
    const double budget = argc > 1 ? std::atof(argv[1]) : 1;
#ifdef BENCH_ADEPT
    adept::Stack stack;
#endif
    {
        const vector x = numbers(1000, -1, 1);
        auto f = tg::function<tg::graph>(tg::value_and_gradient(chain), tg::spec<double, 1000>{});
        const tg::tensor<double> t = part(x, 0, {1000});
        compare(
            "functions of 1,000 numbers", problems::chain{1000}, x,
            [&](vector& g) {
                const auto y = f(t);
                put(g.data(), y.gradient);
                return y.value.item();
            },
            budget);
    }
    {
        const vector x = numbers(3 * 64 * 64, -0.2, 0.2);
        auto f = tg::function<tg::graph>(tg::value_and_gradient(two_layers), tg::spec<double, 64, 64>{},
                                         tg::spec<double, 64, 64>{}, tg::spec<double, 64, 64>{});
        const auto first = part(x, 0, {64, 64}), second = part(x, 4096, {64, 64}), inputs = part(x, 8192, {64, 64});
        compare(
            "two layers of 64, 64 inputs", problems::layers_of_batch{64, 64}, x,
            [&](vector& g) {
                const auto y = f(first, second, inputs);
                double* to = g.data();
                std::apply([&](const auto&... each) { ((to = put(to, each)), ...); }, y.gradient);
                return y.value.item();
            },
            budget);
    }
    {
        const vector points = numbers(point_count, -2, 2), x{0.25, -0.125};
        auto f = tg::function<tg::graph>(normal_gradient, tg::spec<double, 2>{}, tg::spec<double, point_count>{});
        const auto p = part(x, 0, {2}), data = part(points, 0, {point_count});
        compare(
            "normal log density of 100,000", problems::normal{&points}, x,
            [&](vector& g) {
                const auto y = f(p, data);
                put(g.data(), y.gradient);
                return y.value.item();
            },
            budget);
    }
    {
        const vector points = numbers(dims * mixture_points, -2, 2), x = numbers(45, -0.5, 0.5);
        auto f = tg::function<tg::graph>(mixture_gradient, tg::spec<double, parts>{}, tg::spec<double, parts, dims>{},
                                         tg::spec<double, parts, dims>{}, tg::spec<double, parts, dims, dims>{},
                                         tg::spec<double, dims, dims>{}, tg::spec<double, mixture_points, dims>{});
        const auto a = part(x, 0, {parts}), m = part(x, 5, {parts, dims}), q = part(x, 15, {parts, dims}),
                   l = part(x, 25, {parts, dims, dims}), data = part(points, 0, {mixture_points, dims});
        const tg::tensor<double> below{{0, 0}, {1, 0}};
        compare(
            "Gaussian mixture, d 2, K 5, n 1,000", problems::mixture{dims, parts, &points}, x,
            [&](vector& g) {
                const auto y = f(a, m, q, l, below, data);
                double* to = g.data();
                std::apply([&](const auto&... each) { ((to = put(to, each)), ...); }, y.gradient);
                return y.value.item();
            },
            budget);
    }
}
