#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
const interval wide{-2.5, 2.5};

real clipped(real x, real low, real high) { return std::isnan(x) ? x : std::fmin(std::fmax(x, low), high); }
real exp_linear(real x, real alpha) { return x > 0 ? x : alpha * std::expm1(x); }
// x times a gate; minus infinity times a gate of 0 counts as 0.
real gated(real x, real gate) { return x == -INFINITY ? real(-0.0) : x * gate; }
real tanh_gate(real x) {
    return (1 + std::tanh(std::sqrt(2 / real(3.14159265358979323846L)) * (x + real(0.044715) * x * x * x))) / 2;
}
const std::vector<std::vector<double>> awkward{{0}, {-0.0}, {inf}, {-inf}, {nan}, {1000}, {-1000}, {30}, {-30}, {1e-9}, {1e30}};
} // namespace

// Activations. Built on functions of about two units in the last place, with a few roundings on top: 8 are allowed.
std::vector<row> activation_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, double away = 0) {
        r.awkward = awkward;
        r.ulps = 8;
        r.away = away;
        rows.push_back(std::move(r));
        return &rows.back();
    };
    const double kink = 0.01; // finite differences across a kink mean nothing
    put(unary(
            "relu6", [](auto x) { return relu6(x); }, {-2, 5.9}, [](real x) { return clipped(x, 0, 6); }),
        kink);
    put(unary(
            "leaky_relu", [](auto x) { return leaky_relu(x, 0.25); }, wide,
            [](real x) { return x > 0 ? x : x / 4; }),
        kink);
    put(unary(
            "elu", [](auto x) { return elu(x); }, wide, [](real x) { return exp_linear(x, 1); }),
        kink);
    put(unary<false>(
            "selu", [](auto x) { return selu(x); }, wide,
            [](real x) { return real(1.0507009873554805) * exp_linear(x, 1.6732632423543772); }),
        kink);
    put(unary(
        "softsign", [](auto x) { return softsign(x); }, {0.1, 3},
        [](real x) { return std::isinf(x) ? std::copysign(real(1), x) : x / (1 + std::abs(x)); }));
    put(unary(
        "log_sigmoid", [](auto x) { return log_sigmoid(x); }, wide,
        [](real x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); }));
    put(unary(
        "gelu", [](auto x) { return gelu(x); }, wide,
        [](real x) { return gated(x, std::erfc(-x / std::sqrt(real(2))) / 2); }))
        ->why = "the rounding of x / sqrt 2 grows by x^2 in the tail";
    rows.back().ulps = 2000; // at -30 in double: 900 times the rounding
    put(unary(
        "gelu, tanh", [](auto x) { return gelu(x, tapegraph::approximate); }, wide,
        [](real x) { return gated(x, tanh_gate(x)); }));
    rows.back().floor = 1; // 1 + tanh cancels in the reference
    rows.back().ulps = 16;
    put(unary(
        "swish", [](auto x) { return swish(x); }, wide, [](real x) { return gated(x, sigmoid_of(x)); }));
    put(unary(
        "mish", [](auto x) { return mish(x); }, wide,
        [](real x) { return gated(x, x > 100 ? real(1) : std::tanh(std::log1p(std::exp(x)))); }));
    put(unary(
        "hard_sigmoid", [](auto x) { return hard_sigmoid(x); }, wide,
        [](real x) { return clipped(x + 3, 0, 6) / 6; }));
    rows.back().floor = 1; // x + 3 cancels near -3
    put(unary(
        "hard_swish", [](auto x) { return hard_swish(x); }, wide,
        [](real x) { return gated(x, clipped(x + 3, 0, 6) / 6) + 0; }));
    rows.back().floor = 1;

    row bounded = make_row<3>(
        "clip", [](auto x, auto low, auto high) { return clip(x, low, high); }, {{-3, 3}, {-1.5, -1}, {1, 1.5}},
        [](const std::vector<array>& x) { return map(x, [](const real* v) { return clipped(v[0], v[1], v[2]); }); });
    bounded.elementwise = true;
    bounded.shapes = {{{7}, {7}, {7}}, {{}, {}, {}}, {{3, 1}, {1, 4}, {}}, {{0}, {1}, {1}}, {{700}, {1}, {}}};
    bounded.apart = true;
    bounded.ulps = 0;
    bounded.awkward = {{nan, 0, 1}, {inf, 0, 1}, {-inf, 0, 1}, {5, 3, 2}, {1, 1, 1}};
    rows.push_back(std::move(bounded));
    row slopes = binary(
        "leaky_relu of tensors", [](auto x, auto a) { return leaky_relu(x, a); }, {-2, 2}, {0.1, 0.9},
        [](real x, real a) { return x > 0 ? x : a * x; });
    slopes.away = kink;
    rows.push_back(std::move(slopes));
    return rows;
}

} // namespace tapegraph::testing
