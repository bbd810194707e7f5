#pragma once

#include <tapegraph/io/onnx_import/gates.hpp>

#include <limits>

/// Elementwise operators. Formulas are those of the operators' pages (onnx.ai/onnx/operators).

namespace tapegraph::io::onnx_import {

namespace rules {

using unary_function = node (*)(const node&);
using binary_function = node (*)(const node&, const node&);

inline void unary(call& c, unary_function f) {
    std::vector<int> axes;
    const node x = as_it_lies(c, 0, axes);
    c.ignore("consumed_inputs");
    c.give_laid(0, c.wrapped(f(x), c.type(0)), c.type(0), axes);
}
/// Accepts floating elements alone.
inline void function(call& c, unary_function f) {
    if (!is_floating(c.type(0))) refuse(std::string("of ") + name_of(c.type(0)));
    unary(c, f);
}
inline void question(call& c, unary_function f) {
    std::vector<int> axes;
    const node x = as_it_lies(c, 0, axes);
    c.give_laid(0, f(x), dtype::boolean, axes);
}

inline void same_types(call& c, int first, int count) {
    for (int i = first; i < count; ++i)
        if (c.type(i) != c.type(first))
            refuse(std::string("of ") + name_of(c.type(first)) + " and " + name_of(c.type(i)));
}
/// Before opset 7 the axes of the second operand begin at an axis of the first.
inline void at_axis(call& c) {
    const bool broadcasts = c.integer("broadcast", 0) != 0;
    const std::int64_t axis = c.integer("axis", -1);
    c.ignore("consumed_inputs");
    if (!broadcasts || axis == -1 || c.rank(1) == c.rank(0)) return;
    shape s = c.dims(1);
    for (int k = c.axis(axis, c.rank(0)) + c.rank(1); k < c.rank(0); ++k) s.push_back(1);
    c.operand(1) = *c.on.make(reshape(c.plain(1), s), c.type(1));
}

inline void binary(call& c, binary_function f) {
    at_axis(c);
    same_types(c, 0, 2);
    const laid in = side_by_side(c, {0, 1});
    c.give_laid(0, c.wrapped(f(in.x[0], in.x[1]), c.type(0)), c.type(0), in.axes);
}
inline void comparison(call& c, binary_function f) {
    at_axis(c);
    same_types(c, 0, 2);
    const laid in = side_by_side(c, {0, 1});
    c.give_laid(0, f(in.x[0], in.x[1]), dtype::boolean, in.axes);
}
/// Comparisons by order.
inline void order(call& c, binary_function f) {
    at_axis(c);
    same_types(c, 0, 2);
    const laid in = side_by_side(c, {0, 1});
    const dtype type = c.type(0);
    c.give_laid(0, f(in_signed_order(in.x[0], type), in_signed_order(in.x[1], type)), dtype::boolean, in.axes);
}
inline void variadic(call& c, binary_function f) {
    c.ignore("consumed_inputs");
    same_types(c, 0, c.inputs());
    std::vector<int> all;
    for (int i = 0; i < c.inputs(); ++i) all.push_back(i);
    const laid in = side_by_side(c, all);
    node result = in.x[0];
    for (std::size_t i = 1; i < in.x.size(); ++i) result = f(result, in.x[i]);
    c.give_laid(0, c.wrapped(result, c.type(0)), c.type(0), in.axes);
}
/// Max and Min.
inline void extreme_of_several(call& c, binary_function f) {
    if (c.type(0) != dtype::u64) return variadic(c, f);
    same_types(c, 0, c.inputs());
    std::vector<int> all;
    for (int i = 0; i < c.inputs(); ++i) all.push_back(i);
    const laid in = side_by_side(c, all);
    node result = in_signed_order(in.x[0], dtype::u64);
    for (std::size_t i = 1; i < in.x.size(); ++i) result = f(result, in_signed_order(in.x[i], dtype::u64));
    c.give_laid(0, in_signed_order(result, dtype::u64), dtype::u64, in.axes);
}
inline void mean_of_several(call& c) {
    variadic(c, [](const node& x, const node& y) -> node { return eval(x + y); });
    const value_pointer sum = c.results()[0];
    sum->node = eval(sum->node / static_cast<double>(c.inputs()));
}

inline node divided(const node& x, const node& y) { return eval(x / y); }
/// x / y of u64, without the remainder. A divisor beyond 2^63 goes into x once or not at all; for others
/// half of x is divided, which is an i64, and what is left out of it comes after.
inline node divided_u64(const node& x, const node& y) {
    const auto less = [](const node& a, const node& b) {
        return eval(in_signed_order(a, dtype::u64) < in_signed_order(b, dtype::u64));
    };
    const node small = eval(maximum(y, 1)), twice = eval(2 * floor_divide(half_of_u64(x), small));
    const node rest = eval(x - twice * small);
    const node quotient = eval(where(less(rest, small), twice, twice + 1));
    const node once = eval(where(less(x, y), zeros_like(x), ones_like(x)));
    return eval(where(y < 0, once, quotient));
}
inline void division(call& c) { binary(c, c.type(0) == dtype::u64 ? &divided_u64 : &divided); }

inline void power(call& c) {
    at_axis(c);
    const laid in = side_by_side(c, {0, 1});
    const dtype type = c.type(0), other = c.type(1);
    const dtype in_type = type == dtype::f32 && !(other == dtype::f64) ? dtype::f32 : dtype::f64;
    const node x = converted(in.x[0], type, in_type), y = converted(in.x[1], other, in_type);
    c.give_laid(0, converted(eval(pow(x, y)), in_type, type), type, in.axes);
}

inline void modulus(call& c) {
    same_types(c, 0, 2);
    const bool sign_of_dividend = c.integer("fmod", 0) != 0;
    const laid in = side_by_side(c, {0, 1});
    if (c.type(0) == dtype::u64)
        return c.give_laid(0, eval(in.x[0] - divided_u64(in.x[0], in.x[1]) * in.x[1]), dtype::u64, in.axes);
    node r = eval(in.x[0] % in.x[1]);
    if (sign_of_dividend) r = eval(where(logical_and(r != 0, (in.x[0] < 0) != (r < 0)), r - in.x[1], r));
    c.give_laid(0, r, c.type(0), in.axes);
}

inline void selection(call& c) {
    if (c.type(1) != c.type(2)) refuse(std::string("of ") + name_of(c.type(1)) + " and " + name_of(c.type(2)));
    const laid in = side_by_side(c, {0, 1, 2});
    c.give_laid(0, eval(where(in.x[0], in.x[1], in.x[2])), c.type(1), in.axes);
}

/// Between two known numbers: one operation, whose gradient reads one value (of relu and relu6 the result), not two.
inline node clipped(const node& x, std::optional<double> low, std::optional<double> high) {
    if (low == 0.0 && high == 6.0) return eval(relu6(x));
    if (low == 0.0 && !high) return eval(relu(x));
    if (low && high) return eval(clip(x, *low, *high));
    if (low) return eval(maximum(x, *low));
    return high ? eval(minimum(x, *high)) : x;
}

inline void clip_rule(call& c) {
    c.ignore("consumed_inputs");
    std::vector<int> axes;
    const dtype type = c.type(0);
    node x = in_signed_order(as_it_lies(c, 0, axes), type);
    const auto number = [&](int i) { // of operand i
        const bool known = c.has(i) && c.known(i) != nullptr && c.known(i)->size() == 1 && is_floating(c.type(i));
        return known ? std::optional<double>(c.known(i)->number(0)) : std::nullopt;
    };
    if (c.opset() < 11) {
        const attribute *const low = c.find("min"), *const high = c.find("max");
        const auto of = [](const attribute* a) { return a == nullptr ? std::nullopt : std::optional<double>(a->f); };
        x = clipped(x, of(low), of(high));
    } else if (is_floating(type) && c.has(1) == number(1).has_value() && c.has(2) == number(2).has_value()) {
        x = clipped(x, number(1), number(2));
    } else {
        const auto bound = [&](int i) {
            if (c.known(i) != nullptr && c.known(i)->size() == 1 && is_floating(c.type(i)))
                return c.on.number(c.known(i)->number(0), c.type(i));
            return in_signed_order(reshape(c.plain(i), shape{}), type);
        };
        if (c.has(1)) x = eval(maximum(x, bound(1)));
        if (c.has(2)) x = eval(minimum(x, bound(2)));
    }
    c.give_laid(0, in_signed_order(x, type), type, axes);
}

inline void cast_to(call& c, dtype to) {
    std::vector<int> axes;
    c.ignore("saturate"); // of 8-bit floats, which are not supported
    c.ignore("round_mode");
    const node x = as_it_lies(c, 0, axes);
    c.give_laid(0, converted(x, c.type(0), to), to, axes);
}
inline void cast_rule(call& c) {
    const int number = static_cast<int>(c.integer("to", 0));
    const auto to = element_type(number);
    if (!to) refuse("to = " + element_type_name(number));
    cast_to(c, *to);
}
inline void cast_like(call& c) { cast_to(c, c.type(1)); }

// Activations
template <class F>
void activation(call& c, const F& f) {
    std::vector<int> axes;
    c.ignore("consumed_inputs");
    if (!is_floating(c.type(0))) refuse(std::string("of ") + name_of(c.type(0)));
    const node x = as_it_lies(c, 0, axes);
    c.give_laid(0, in_float(x, f), c.type(0), axes);
}
inline void leaky(call& c) {
    const double alpha = c.number("alpha", 0.01f);
    activation(c, [&](const node& x) { return eval(leaky_relu(x, alpha)); });
}
inline void elu_rule(call& c) {
    const double alpha = c.number("alpha", 1);
    activation(c, [&](const node& x) { return eval(elu(x, alpha)); });
}
inline void celu(call& c) {
    const double alpha = c.number("alpha", 1);
    activation(c, [&](const node& x) { return eval(maximum(x, 0) + minimum(0, alpha * expm1(x / alpha))); });
}
inline void selu_rule(call& c) {
    const double alpha = c.number("alpha", 1.67326319217681884765625f),
                 gamma = c.number("gamma", 1.05070102214813232421875f);
    activation(c, [&](const node& x) { return eval(where(x > 0, gamma * x, gamma * (alpha * expm1(x)))); });
}
inline void thresholded(call& c) {
    const double alpha = c.number("alpha", 1);
    activation(c, [&](const node& x) { return eval(where(x > alpha, x, 0)); });
}
inline void shrink(call& c) {
    const double bias = c.number("bias", 0), lambda = c.number("lambd", 0.5);
    activation(c, [&](const node& x) { return eval(where(x < -lambda, x + bias, where(x > lambda, x - bias, 0))); });
}
inline void hard_sigmoid_rule(call& c) {
    const double alpha = c.number("alpha", 0.2f), beta = c.number("beta", 0.5);
    activation(c, [&](const node& x) { return eval(minimum(maximum(alpha * x + beta, 0), 1)); });
}
inline void gelu_rule(call& c) {
    const std::string how = c.text("approximate", "none");
    if (how != "none" && how != "tanh") refuse("approximate = '" + how + "'");
    activation(c, [&](const node& x) { return how == "tanh" ? eval(gelu(x, approximate)) : eval(gelu(x)); });
}
inline void swish_rule(call& c) {
    const double alpha = c.number("alpha", 1);
    activation(c, [&](const node& x) { return swished(x, alpha); });
}
inline void swiglu(call& c) {
    same_types(c, 0, 2);
    const double alpha = c.number("alpha", 1);
    if (!is_floating(c.type(0)) || !(c.dims(0) == c.dims(1)))
        refuse(std::string("of ") + name_of(c.type(0)) + " or of several shapes");
    const laid in = side_by_side(c, {0, 1});
    const node gate = in_float(in.x[0], [&](const node& x) { return swished(x, alpha); });
    c.give_laid(0, eval(gate * in.x[1]), c.type(0), in.axes);
}
inline void prelu(call& c) {
    c.ignore("consumed_inputs");
    same_types(c, 0, 2);
    if (c.rank(1) == 1 && c.rank(0) > 2 && c.opset() < 7 && c.dims(1)[0].value != 1) {
        shape s = c.dims(1); // one slope for each channel
        for (int k = 2; k < c.rank(0); ++k) s.push_back(1);
        c.operand(1) = *c.on.make(reshape(c.plain(1), s), c.type(1));
    }
    const laid in = side_by_side(c, {0, 1});
    c.give_laid(0, eval(where(in.x[0] < 0, in.x[1] * in.x[0], in.x[0])), c.type(0), in.axes);
}
inline void is_infinite(call& c) {
    const bool negative = c.integer("detect_negative", 1) != 0, positive = c.integer("detect_positive", 1) != 0;
    std::vector<int> axes;
    const node x = as_it_lies(c, 0, axes);
    const node any = eval(is_inf(x));
    c.give_laid(0,
                negative && positive ? any
                : negative           ? eval(logical_and(any, x < 0))
                : positive           ? eval(logical_and(any, x > 0))
                                     : eval(logical_and(any, logical_not(any))),
                dtype::boolean, axes);
}
inline void relu_rule(call& c) {
    if (is_floating(c.type(0))) return unary(c, [](const node& x) -> node { return eval(relu(x)); });
    unary(c, [](const node& x) -> node { return eval(maximum(x, 0)); });
}
inline void absolute(call& c) {
    if (c.type(0) == dtype::u64 || c.type(0) == dtype::u32 || c.type(0) == dtype::u8) return c.give(0, c.pointer(0));
    unary(c, [](const node& x) -> node { return eval(abs(x)); });
}

#define TG_ONNX_UNARY(kind, f) [](call& c) { kind(c, [](const node& x) -> node { return eval(f); }); }
#define TG_ONNX_BINARY(kind, f) [](call& c) { kind(c, [](const node& x, const node& y) -> node { return eval(f); }); }

inline std::span<const operator_rule> elementwise() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Abs", &absolute},
        {"Neg", TG_ONNX_UNARY(unary, -x)},
        {"Sign", TG_ONNX_UNARY(unary, sign(x))},
        {"Ceil", TG_ONNX_UNARY(function, ceil(x))},
        {"Floor", TG_ONNX_UNARY(function, floor(x))},
        {"Round", TG_ONNX_UNARY(function, round(x))},
        {"Sqrt", TG_ONNX_UNARY(function, sqrt(x))},
        {"Exp", TG_ONNX_UNARY(function, exp(x))},
        {"Log", TG_ONNX_UNARY(function, log(x))},
        {"Sin", TG_ONNX_UNARY(function, sin(x))},
        {"Cos", TG_ONNX_UNARY(function, cos(x))},
        {"Tan", TG_ONNX_UNARY(function, tan(x))},
        {"Asin", TG_ONNX_UNARY(function, asin(x))},
        {"Acos", TG_ONNX_UNARY(function, acos(x))},
        {"Atan", TG_ONNX_UNARY(function, atan(x))},
        {"Sinh", TG_ONNX_UNARY(function, sinh(x))},
        {"Cosh", TG_ONNX_UNARY(function, cosh(x))},
        {"Asinh", TG_ONNX_UNARY(function, asinh(x))},
        {"Acosh", TG_ONNX_UNARY(function, acosh(x))},
        {"Atanh", TG_ONNX_UNARY(function, atanh(x))},
        {"Tanh", TG_ONNX_UNARY(function, tanh(x))},
        {"Sigmoid", TG_ONNX_UNARY(function, sigmoid(x))},
        {"Erf", TG_ONNX_UNARY(function, erf(x))},
        {"Relu", &relu_rule},
        {"Softplus", TG_ONNX_UNARY(function, softplus(x))},
        {"Softsign", TG_ONNX_UNARY(function, softsign(x))},
        {"Reciprocal", TG_ONNX_UNARY(function, reciprocal(x))},
        {"HardSwish", TG_ONNX_UNARY(function, hard_swish(x))},
        {"Mish", TG_ONNX_UNARY(function, mish(x))},
        {"Not", TG_ONNX_UNARY(question, logical_not(x))},
        {"IsNaN", TG_ONNX_UNARY(question, is_nan(x))},
        {"IsInf", &is_infinite},
        {"Add", TG_ONNX_BINARY(binary, x + y)},
        {"Sub", TG_ONNX_BINARY(binary, x - y)},
        {"Mul", [](call& c) { binary(c, &product); }},
        {"Div", &division},
        {"Pow", &power},
        {"Mod", &modulus},
        {"And", TG_ONNX_BINARY(comparison, logical_and(x, y))},
        {"Or", TG_ONNX_BINARY(comparison, logical_or(x, y))},
        {"Xor", TG_ONNX_BINARY(comparison, x != y)},
        {"Equal", TG_ONNX_BINARY(comparison, x == y)},
        {"Less", TG_ONNX_BINARY(order, x < y)},
        {"Greater", TG_ONNX_BINARY(order, x > y)},
        {"LessOrEqual", TG_ONNX_BINARY(order, x <= y)},
        {"GreaterOrEqual", TG_ONNX_BINARY(order, x >= y)},
        {"Max", TG_ONNX_BINARY(extreme_of_several, maximum(x, y))},
        {"Min", TG_ONNX_BINARY(extreme_of_several, minimum(x, y))},
        {"Sum", TG_ONNX_BINARY(variadic, x + y)},
        {"Mean", &mean_of_several},
        {"Where", &selection},
        {"Clip", &clip_rule},
        {"Cast", &cast_rule},
        {"CastLike", &cast_like},
        {"LeakyRelu", &leaky},
        {"Elu", &elu_rule},
        {"Celu", &celu},
        {"Selu", &selu_rule},
        {"ThresholdedRelu", &thresholded},
        {"Shrink", &shrink},
        {"HardSigmoid", &hard_sigmoid_rule},
        {"Gelu", &gelu_rule},
        {"Swish", &swish_rule},
        {"SwiGLU", &swiglu},
        {"PRelu", &prelu},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
