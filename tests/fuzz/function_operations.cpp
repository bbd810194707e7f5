#include <fuzz/operations.hpp>

/// Elementwise rows of the special functions, activations, rounding and questions; outside the library's namespace, as
/// those of formula_operations.cpp.

namespace naive {

inline real tan(real x) { return std::tan(x); }
inline real asin(real x) { return std::asin(x); }
inline real acos(real x) { return std::acos(x); }
inline real atan(real x) { return std::atan(x); }
inline real atan2(real y, real x) { return std::atan2(y, x); }
inline real sinh(real x) { return std::sinh(x); }
inline real cosh(real x) { return std::cosh(x); }
inline real asinh(real x) { return std::asinh(x); }
inline real acosh(real x) { return std::acosh(x); }
inline real atanh(real x) { return std::atanh(x); }
inline real exp2(real x) { return std::exp2(x); }
inline real log2(real x) { return std::log2(x); }
inline real log10(real x) { return std::log10(x); }
inline real cbrt(real x) { return std::cbrt(x); }
inline real erfc(real x) { return std::erfc(x); }
inline real reciprocal(real x) { return 1 / x; }
inline real hypot(real x, real y) { return std::hypot(x, y); }
inline real clip(real x, real low, real high) { return minimum(maximum(x, low), high); }
inline real leaky_relu(real x, real alpha) { return x > 0 ? x : alpha * x; }
inline real elu(real x, real alpha) { return x > 0 ? x : alpha * std::expm1(x); }
inline real selu(real x) { return 1.0507009873554804934L * elu(x, 1.6732632423543772848L); }
inline real gelu(real x) { return x * std::erfc(-x * std::sqrt(0.5L)) / 2; }
inline real gelu(real x, tapegraph::approximate_t) {
    return x * (1 + std::tanh(0.79788456080286535588L * (x + 0.044715L * x * x * x))) / 2;
}
inline real swish(real x) { return x * sigmoid(x); }
inline real mish(real x) { return x * std::tanh(softplus(x)); }
inline real softsign(real x) { return x / (1 + std::abs(x)); }
inline real log_sigmoid(real x) { return -softplus(-x); }
inline real relu6(real x) { return clip(x, 0, 6); }
inline real hard_sigmoid(real x) { return relu6(x + 3) / 6; }
inline real hard_swish(real x) { return x * hard_sigmoid(x); }
inline real floor(real x) { return std::floor(x); }
inline real ceil(real x) { return std::ceil(x); }
inline real round(real x) { return std::nearbyint(x); }
inline real trunc(real x) { return std::trunc(x); }
inline real squared_difference(real x, real y) { return (x - y) * (x - y); }
inline real lerp(real x, real y, real t) { return x + t * (y - x); }
inline real floor_divide(real x, real y) { return std::floor(x / y); }
inline real remainder(real x, real y) { return x - std::floor(x / y) * y; }
inline real is_nan(real x) { return std::isnan(x); }
inline real is_finite(real x) { return std::isfinite(x); }
inline real less(real x, real y) { return x < y; }
inline real less_equal(real x, real y) { return x <= y; }
inline real greater(real x, real y) { return x > y; }
inline real not_equal(real x, real y) { return x != y; }
inline real logical_xor(real x, real y) { return (x != 0) != (y != 0); }
inline real full_like(real, real k) { return k; }
template <int N>
real pow(real x) {
    return std::pow(x, N);
}

} // namespace naive

namespace formula_rows {

using namespace naive;

std::vector<tapegraph::fuzz::operation> functions() {
    using tapegraph::fuzz::formula;
    std::vector<tapegraph::fuzz::operation> r{
        formula<double>("tan", TG_FORMULA_1(tan(x)), {{-1.3, 1.3}}),
        formula<double>("asin", TG_FORMULA_1(asin(x)), {{-0.9, 0.9}}),
        formula<double>("acos", TG_FORMULA_1(acos(x)), {{-0.9, 0.9}}),
        formula<double>("atan", TG_FORMULA_1(atan(x))),
        formula<double, double>("atan2", TG_FORMULA_2(atan2(x, y)), {{}, {0.2, 1e3}}),
        formula<double>("sinh", TG_FORMULA_1(sinh(x)), {{-6, 6}}),
        formula<double>("cosh", TG_FORMULA_1(cosh(x)), {{-6, 6}}),
        formula<double>("asinh", TG_FORMULA_1(asinh(x))),
        formula<double>("acosh", TG_FORMULA_1(acosh(x)), {{1.2, 1e3}}),
        formula<double>("atanh", TG_FORMULA_1(atanh(x)), {{-0.8, 0.8}}),
        formula<double>("exp2", TG_FORMULA_1(exp2(x)), {{-8, 4}}),
        formula<double>("log2", TG_FORMULA_1(log2(x)), {{0.2, 1e3}}),
        formula<double>("log10", TG_FORMULA_1(log10(x)), {{0.2, 1e3}}),
        formula<double>("cbrt", TG_FORMULA_1(cbrt(x)), {{0.1, 1e3}}),
        formula<double>("erfc", TG_FORMULA_1(erfc(x))),
        formula<double>("reciprocal", TG_FORMULA_1(reciprocal(x)), {{0.2, 1e3}}),
        formula<double, double>("hypot", TG_FORMULA_2(hypot(x, y)), {{0.2, 1e3}, {}}),
        formula<double, double, double>("clip", TG_FORMULA_3(clip(x, y, z)), {{-20, 20}, {-20, 20}, {-20, 20}}),
        formula<double>("clip_numbers", TG_FORMULA_1(clip(x, -0.9, k))),
        formula<double>("leaky_relu", TG_FORMULA_1(leaky_relu(x, k))),
        formula<double, double>("leaky_relu_tensor", TG_FORMULA_2(leaky_relu(x, y)), {{-30, 30}, {-30, 30}}),
        formula<double>("elu", TG_FORMULA_1(elu(x, k)), {{-30, 1e3}}),
        formula<double>("selu", TG_FORMULA_1(selu(x)), {{-30, 500}}),
        formula<double>("gelu", TG_FORMULA_1(gelu(x)), {{-30, 30}}),
        formula<double>("gelu_tanh", TG_FORMULA_1(gelu(x, tapegraph::approximate)), {{-30, 30}}),
        formula<double>("swish", TG_FORMULA_1(swish(x)), {{-30, 30}}),
        formula<double>("mish", TG_FORMULA_1(mish(x)), {{-30, 30}}),
        formula<double>("softsign", TG_FORMULA_1(softsign(x))),
        formula<double>("log_sigmoid", TG_FORMULA_1(log_sigmoid(x)), {{-30, 30}}),
        formula<double>("relu6", TG_FORMULA_1(relu6(x))),
        formula<double>("hard_sigmoid", TG_FORMULA_1(hard_sigmoid(x))),
        formula<double>("hard_swish", TG_FORMULA_1(hard_swish(x)), {{-30, 30}}),
        formula<double>("floor", TG_FORMULA_1(floor(x))),
        formula<double>("ceil", TG_FORMULA_1(ceil(x))),
        formula<double>("round", TG_FORMULA_1(round(x))),
        formula<double>("trunc", TG_FORMULA_1(trunc(x))),
        formula<double, double>("squared_difference", TG_FORMULA_2(squared_difference(x, y)), {{-20, 20}, {-20, 20}}),
        formula<double, double, double>("lerp", TG_FORMULA_3(lerp(x, y, z)), {{-20, 20}, {-20, 20}, {-20, 20}}),
        formula<double, double>("floor_divide", TG_FORMULA_2(floor_divide(x, y)), {{-30, 30}, {0.3, 30}}),
        formula<double, double>("remainder", TG_FORMULA_2(remainder(x, y)), {{-30, 30}, {0.3, 30}}),
        formula<double>("cube", TG_FORMULA_1(pow<3>(x)), {{-9, 9}}),
        formula<double>("inverse_square", TG_FORMULA_1(pow<-2>(x)), {{0.2, 1e3}}),
        formula<double>("full_like", TG_FORMULA_1(full_like(x, k))),
        formula<double>("is_nan", TG_FORMULA_1(is_nan(x))),
        formula<double>("is_finite", TG_FORMULA_1(is_finite(x))),
        formula<double, double>("less_named", TG_FORMULA_2(less(x, y))),
        formula<double, double>("greater_named", TG_FORMULA_2(greater(x, y))),
        formula<double>("less_equal_number", TG_FORMULA_1(less_equal(x, k))),
        formula<double, double>("not_equal", TG_FORMULA_2(not_equal(x, y))),
        formula<bool, bool>("logical_xor", TG_FORMULA_2(logical_xor(x, y))),
    };
    // Beside the older rows these are many: seldom each, so that programs stay the mixtures they were.
    for (auto& row : r) row.weight = row.types.size() > 1 ? 1 : 0.5;
    return r;
}

} // namespace formula_rows

namespace tapegraph::fuzz {
std::vector<operation> function_operations() { return formula_rows::functions(); }
} // namespace tapegraph::fuzz
