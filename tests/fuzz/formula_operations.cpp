#include <fuzz/operations.hpp>

/// Elementwise rows. They stand outside the library's namespace, so that a plain number finds the naive function and a
/// handle, by its own namespace, the library's.

namespace formula_rows {

using namespace naive;
using element = double; // generated sources name theirs

std::vector<tapegraph::fuzz::operation> rows() {
    using tapegraph::fuzz::formula;
    std::vector<tapegraph::fuzz::operation> r{
        formula<double>("tanh", TG_FORMULA_1(tanh(x))),
        formula<double>("sigmoid", TG_FORMULA_1(sigmoid(x)), {{-30, 30}}),
        formula<double>("relu", TG_FORMULA_1(relu(x))),
        formula<double>("softplus", TG_FORMULA_1(softplus(x)), {{-30, 30}}),
        formula<double>("erf", TG_FORMULA_1(erf(x))),
        formula<double>("exp", TG_FORMULA_1(exp(x)), {{-5, 3}}),
        formula<double>("expm1", TG_FORMULA_1(expm1(x)), {{-5, 3}}),
        formula<double>("log", TG_FORMULA_1(log(x)), {{0.2, 1e3}}),
        formula<double>("log1p", TG_FORMULA_1(log1p(x)), {{-0.7, 1e3}}),
        formula<double>("square", TG_FORMULA_1(square(x)), {{-20, 20}}),
        formula<double>("sqrt", TG_FORMULA_1(sqrt(x)), {{0.1, 1e3}}),
        formula<double>("rsqrt", TG_FORMULA_1(rsqrt(x)), {{0.1, 1e3}}),
        formula<double>("sin", TG_FORMULA_1(sin(x)), {{-30, 30}}),
        formula<double>("cos", TG_FORMULA_1(cos(x)), {{-30, 30}}),
        formula<double>("abs", TG_FORMULA_1(abs(x))),
        formula<double>("sign", TG_FORMULA_1(sign(x))),
        formula<double>("negate", TG_FORMULA_1(-x)),
        formula<double>("stop_gradient", TG_FORMULA_1(stop_gradient(x))),
        formula<double>("through_float", TG_FORMULA_1(cast<element>(cast<float>(x)))),
        formula<bool>("cast_bool", TG_FORMULA_1(cast<element>(x))),
        formula<double>("plus_number", TG_FORMULA_1(x + k)),
        formula<double>("number_minus", TG_FORMULA_1(k - x)),
        formula<double>("minus_number", TG_FORMULA_1(x - k)),
        formula<double>("times_number", TG_FORMULA_1(k * x)),
        formula<double>("number_over", TG_FORMULA_1(k / x), {{0.2, 1e3}}),
        formula<double>("over_number", TG_FORMULA_1(x / (k + 3))),
        formula<double, double>("add", TG_FORMULA_2(x + y)),
        formula<double, double>("subtract", TG_FORMULA_2(x - y)),
        formula<double, double>("multiply", TG_FORMULA_2(x * y), {{-30, 30}, {-30, 30}}),
        formula<double, double>("divide", TG_FORMULA_2(x / y), {{-1e3, 1e3}, {0.2, 1e3}}),
        formula<double, double>("maximum", TG_FORMULA_2(maximum(x, y))),
        formula<double, double>("minimum", TG_FORMULA_2(minimum(x, y))),
        formula<double, double>("pow", TG_FORMULA_2(pow(x, y)), {{0.2, 4}, {-2, 3}}),
        formula<double, double>("less", TG_FORMULA_2(x < y)),
        formula<double, double>("greater_equal", TG_FORMULA_2(x >= y)),
        formula<double, double>("equal", TG_FORMULA_2(x == y)),
        formula<bool, bool>("logical_and", TG_FORMULA_2(logical_and(x, y))),
        formula<bool, bool>("logical_or", TG_FORMULA_2(logical_or(x, y))),
        formula<bool>("logical_not", TG_FORMULA_1(logical_not(x))),
        formula<bool, double, double>("where", TG_FORMULA_3(where(x, y, z))),
        formula<bool, double>("where_number", TG_FORMULA_2(where(x, y, k))),
        // Formulas of several operations, so that eager mode fuses, too.
        formula<double, double, double>("multiply_add", TG_FORMULA_3(x * y + z), {{-20, 20}, {-20, 20}, {}}),
        formula<double, double>("swish_gap", TG_FORMULA_2(x * sigmoid(x) - tanh(y * 0.5) * x), {{-20, 20}, {}}),
        formula<double>("shared_twice", TG_FORMULA_1(x * x * (1 - x) + exp(-(x * x))), {{-8, 8}}),
        formula<double, double>("huber_like", TG_FORMULA_2(where(x > y, square(x - y), k * (y - x))),
                                {{-20, 20}, {-20, 20}}),
    };
    for (auto& row : r) {
        if (row.name == "stop_gradient" || row.name == "through_float") row.smooth = false;
        if (row.name == "through_float") row.rounds = true;
        if (row.name == "through_float") row.formula = false; // adjoints become float on the way: sums would differ
        if (row.types.size() > 1) row.weight = 2;
    }
    return r;
}

} // namespace formula_rows

namespace tapegraph::fuzz {
std::vector<operation> formula_operations() { return formula_rows::rows(); }
} // namespace tapegraph::fuzz
