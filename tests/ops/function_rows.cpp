#include <ops/table.hpp>

namespace tapegraph::testing {

namespace {
real softplus_of(real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
} // namespace

// The library's own functions are accurate to a few units in the last place; tools/ulp_sweep measures them densely. Here
// 4 of them are allowed, which tells a wrong formula, branch or lane from rounding.
std::vector<row> function_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<double>> awkward = {}) {
        r.awkward = std::move(awkward);
        rows.push_back(std::move(r));
    };
    put(unary(
            "exp", [](auto x) { return exp(x); }, moderate, [](real x) { return std::exp(x); }),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}, {88}, {-80}, {800}, {-800}});
    put(unary(
            "expm1", [](auto x) { return expm1(x); }, moderate, [](real x) { return std::expm1(x); }),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}, {1e-9}, {-1e-9}, {-60}, {800}});
    put(unary(
            "log", [](auto x) { return log(x); }, positive, [](real x) { return std::log(x); }),
        {{0}, {-0.0}, {1}, {inf}, {-1}, {nan}, {1e-30}, {1e30}});
    put(unary(
            "log1p", [](auto x) { return log1p(x); }, {-0.5, 3}, [](real x) { return std::log1p(x); }),
        {{0}, {-0.0}, {-1}, {-2}, {inf}, {nan}, {1e-9}, {-1e-9}, {1e20}});
    put(unary(
            "sqrt", [](auto x) { return sqrt(x); }, positive, [](real x) { return std::sqrt(x); }),
        {{0}, {-0.0}, {4}, {inf}, {-1}, {nan}});
    put(unary(
            "rsqrt", [](auto x) { return rsqrt(x); }, positive, [](real x) { return 1 / std::sqrt(x); }),
        {{0}, {4}, {inf}, {-1}, {nan}});
    put(unary(
            "sin", [](auto x) { return sin(x); }, {-4, 4}, [](real x) { return std::sin(x); }),
        {{0}, {-0.0}, {inf}, {nan}, {1000.5}, {-1e6}});
    put(unary(
            "cos", [](auto x) { return cos(x); }, {-4, 4}, [](real x) { return std::cos(x); }),
        {{0}, {-0.0}, {-inf}, {nan}, {1000.5}, {-1e6}});
    put(unary(
            "sigmoid", [](auto x) { return sigmoid(x); }, moderate, sigmoid_of),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}, {40}, {-40}, {-80}, {90}});
    put(unary(
            "tanh", [](auto x) { return tanh(x); }, moderate, [](real x) { return std::tanh(x); }),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}, {1e-9}, {20}, {-20}, {0.62}});
    put(unary(
            "softplus", [](auto x) { return softplus(x); }, moderate, softplus_of),
        {{0}, {inf}, {-inf}, {nan}, {-40}, {40}, {1000}, {-80}});
    put(unary(
            "erf", [](auto x) { return erf(x); }, moderate, [](real x) { return std::erf(x); }),
        {{0}, {-0.0}, {inf}, {-inf}, {nan}, {1e-9}, {4}, {-6}, {0.84375}});
    put(binary(
            "pow", [](auto x, auto y) { return pow(x, y); }, positive, {-2, 2.5},
            [](real x, real y) { return std::pow(x, y); }),
        {{0, 0},
         {0, 2},
         {0, -1},
         {-2, 3},
         {-2, 2},
         {-2, 0.5},
         {1, inf},
         {2, -inf},
         {nan, 0},
         {1, nan},
         {inf, -1},
         {-0.0, 3},
         {10, 30}});
    // An exponent that is a number is a formula of one tensor.
    put(unary<false>(
        "pow number", [](auto x) { return pow(x, 3); }, moderate, [](real x) { return x * x * x; }));
    // Fused: one kernel, one adjoint kernel for both operands.
    row fused = binary<false>(
        "tanh(x y + exp(-y)) sin x", [](auto x, auto y) { return tanh(x * y + exp(-y)) * sin(x); }, {-1, 1}, {-1, 1},
        [](real x, real y) { return std::tanh(x * y + std::exp(-y)) * std::sin(x); });
    fused.floor = 1; // x y + exp(-y) may cancel
    fused.ulps = 8;
    put(std::move(fused));
    return rows;
}

} // namespace tapegraph::testing
