#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>

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
/// Comparisons by order, which nodes of the carrier type keep, except for u64.
inline void order(call& c, binary_function f) {
    if (c.type(0) == dtype::u64) refuse("of u64");
    comparison(c, f);
}
inline void variadic(call& c, binary_function f) {
    c.ignore("consumed_inputs");
    same_types(c, 0, c.inputs());
    if (c.type(0) == dtype::u64) refuse("of u64");
    std::vector<int> all;
    for (int i = 0; i < c.inputs(); ++i) all.push_back(i);
    const laid in = side_by_side(c, all);
    node result = in.x[0];
    for (std::size_t i = 1; i < in.x.size(); ++i) result = f(result, in.x[i]);
    c.give_laid(0, c.wrapped(result, c.type(0)), c.type(0), in.axes);
}
inline void mean_of_several(call& c) {
    variadic(c, [](const node& x, const node& y) -> node { return eval(x + y); });
    const value_pointer sum = c.results()[0];
    sum->node = eval(sum->node / static_cast<double>(c.inputs()));
}

inline node divided(const node& x, const node& y) { return eval(x / y); }
inline void division(call& c) {
    if (c.type(0) == dtype::u64) refuse("of u64");
    binary(c, divided);
}

inline void power(call& c) {
    at_axis(c);
    if (c.type(0) == dtype::u64 || c.type(1) == dtype::u64) refuse("of u64");
    const laid in = side_by_side(c, {0, 1});
    const dtype type = c.type(0), other = c.type(1);
    const dtype in_type = type == dtype::f32 && !(other == dtype::f64) ? dtype::f32 : dtype::f64;
    const node x = converted(in.x[0], type, in_type), y = converted(in.x[1], other, in_type);
    c.give_laid(0, converted(eval(pow(x, y)), in_type, type), type, in.axes);
}

inline void modulus(call& c) {
    same_types(c, 0, 2);
    if (c.type(0) == dtype::u64) refuse("of u64");
    const bool sign_of_dividend = c.integer("fmod", 0) != 0;
    const laid in = side_by_side(c, {0, 1});
    node r = eval(in.x[0] % in.x[1]);
    if (sign_of_dividend) r = eval(where(logical_and(r != 0, (in.x[0] < 0) != (r < 0)), r - in.x[1], r));
    c.give_laid(0, r, c.type(0), in.axes);
}

inline void shift(call& c) {
    same_types(c, 0, 2);
    const std::string direction = c.text("direction", "");
    if (direction != "LEFT" && direction != "RIGHT") refuse("direction '" + direction + "'");
    if (size_of(c.type(0)) == 8) refuse(std::string("of ") + name_of(c.type(0)));
    const laid in = side_by_side(c, {0, 1});
    const node x = converted(in.x[0], c.type(0), dtype::i64), by = converted(in.x[1], c.type(1), dtype::f64);
    // A shift by a negative number, or by all bits or more, leaves nothing but the sign.
    const node bounded = eval(where(logical_or(by<0, by> 32.0), 32.0, by));
    const node factor = converted(eval(exp2(bounded)), dtype::f64, dtype::i64);
    const node moved = direction == "LEFT" ? eval(x * factor) : eval(floor_divide(x, factor));
    c.give_laid(0, converted(moved, dtype::i64, c.type(0)), c.type(0), in.axes);
}

inline void selection(call& c) {
    if (c.type(1) != c.type(2)) refuse(std::string("of ") + name_of(c.type(1)) + " and " + name_of(c.type(2)));
    const laid in = side_by_side(c, {0, 1, 2});
    c.give_laid(0, eval(where(in.x[0], in.x[1], in.x[2])), c.type(1), in.axes);
}

inline void clip_rule(call& c) {
    c.ignore("consumed_inputs");
    std::vector<int> axes;
    if (c.type(0) == dtype::u64) refuse("of u64");
    node x = as_it_lies(c, 0, axes);
    if (c.opset() < 11) {
        if (const attribute* low = c.find("min")) x = eval(maximum(x, static_cast<double>(low->f)));
        if (const attribute* high = c.find("max")) x = eval(minimum(x, static_cast<double>(high->f)));
    } else {
        const auto bound = [&](int i) {
            if (c.known(i) != nullptr && c.known(i)->size() == 1 && is_floating(c.type(i)))
                return c.on.number(c.known(i)->number(0), c.type(i));
            return reshape(c.plain(i), shape{});
        };
        if (c.has(1)) x = eval(maximum(x, bound(1)));
        if (c.has(2)) x = eval(minimum(x, bound(2)));
    }
    c.give_laid(0, x, c.type(0), axes);
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
    activation(c, [&](const node& x) { return eval(x * sigmoid(alpha * x)); });
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
inline void bitwise_not(call& c) {
    std::vector<int> axes;
    const node x = as_it_lies(c, 0, axes);
    const dtype type = c.type(0);
    const node result = type == dtype::u8    ? eval(255 - x)
                        : type == dtype::u16 ? eval(65535 - x)
                        : type == dtype::u32 ? eval(4294967295.0 - x)
                                             : eval(-x - 1); // of u64, too, which has the same bits
    c.give_laid(0, result, type, axes);
}

/// Combines operands bit by bit; the sum of the bits times their powers of two is the result.
template <class F>
void bitwise(call& c, const F& f) {
    same_types(c, 0, 2);
    const dtype type = c.type(0);
    if (type == dtype::u64) refuse("of u64");
    const laid in = side_by_side(c, {0, 1});
    node x = converted(in.x[0], type, dtype::i64), y = converted(in.x[1], type, dtype::i64), sum;
    const int bits = static_cast<int>(8 * size_of(type));
    if (bits == 64) refuse("of i64");
    double weight = 1;
    for (int k = 0; k < bits; ++k, weight *= 2) {
        const node bit = f(eval(x % 2), eval(y % 2));
        sum = k == 0 ? bit : eval(sum + bit * weight);
        x = eval(floor_divide(x, 2)), y = eval(floor_divide(y, 2));
    }
    if (type == dtype::i32) sum = eval((sum + 2147483648.0) % 4294967296.0 - 2147483648.0);
    c.give_laid(0, converted(sum, dtype::i64, type), type, in.axes);
}
inline void bitwise_and(call& c) {
    bitwise(c, [](const node& a, const node& b) { return eval(a * b); });
}
inline void bitwise_or(call& c) {
    bitwise(c, [](const node& a, const node& b) { return eval(maximum(a, b)); });
}
inline void bitwise_xor(call& c) {
    bitwise(c, [](const node& a, const node& b) { return eval((a + b) % 2); });
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
        {"BitwiseNot", &bitwise_not},
        {"Add", TG_ONNX_BINARY(binary, x + y)},
        {"Sub", TG_ONNX_BINARY(binary, x - y)},
        {"Mul", TG_ONNX_BINARY(binary, x * y)},
        {"Div", &division},
        {"Pow", &power},
        {"Mod", &modulus},
        {"BitShift", &shift},
        {"BitwiseAnd", &bitwise_and},
        {"BitwiseOr", &bitwise_or},
        {"BitwiseXor", &bitwise_xor},
        {"And", TG_ONNX_BINARY(comparison, logical_and(x, y))},
        {"Or", TG_ONNX_BINARY(comparison, logical_or(x, y))},
        {"Xor", TG_ONNX_BINARY(comparison, x != y)},
        {"Equal", TG_ONNX_BINARY(comparison, x == y)},
        {"Less", TG_ONNX_BINARY(order, x < y)},
        {"Greater", TG_ONNX_BINARY(order, x > y)},
        {"LessOrEqual", TG_ONNX_BINARY(order, x <= y)},
        {"GreaterOrEqual", TG_ONNX_BINARY(order, x >= y)},
        {"Max", TG_ONNX_BINARY(variadic, maximum(x, y))},
        {"Min", TG_ONNX_BINARY(variadic, minimum(x, y))},
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
        {"PRelu", &prelu},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
