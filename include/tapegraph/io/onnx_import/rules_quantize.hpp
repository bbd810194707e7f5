#pragma once

#include <tapegraph/io/onnx_import/rules_windows.hpp>

/// Quantised numbers: q = round(x / scale) + zero_point, clamped to the element type's range.

namespace tapegraph::io::onnx_import {

namespace rules {

struct limits {
    double low, high;
};
inline limits limits_of(dtype type) {
    switch (type) {
    case dtype::i8: return {-128, 127};
    case dtype::u8: return {0, 255};
    case dtype::i16: return {-32768, 32767};
    case dtype::u16: return {0, 65535};
    default: refuse(std::string("to ") + name_of(type));
    }
}
/// Reshapes scales or zero points to broadcast with x: one for all, one for each index of an axis,
/// or one for each block of an axis.
inline node along_axis(call& c, const node& v, const shape& x, std::int64_t axis, std::int64_t block) {
    if (v.rank() == 0 || (v.rank() == 1 && v.shape()[0].value == 1)) return reshape(v, shape{});
    const int at = c.axis(axis, x.rank());
    if (block > 0) {
        const node each = repeat(v, block, at);
        return each.shape()[at].value == x[at].value ? each : part(each, at, 0, x[at]);
    }
    if (v.rank() != 1) refuse("by a scale of rank " + std::to_string(v.rank()));
    std::vector<std::int64_t> dims{v.shape()[0].value};
    for (int k = at + 1; k < x.rank(); ++k) dims.push_back(1);
    return reshape(v, shape_of_items(c, dims));
}
/// Quantises floating numbers x; scale and zero point broadcast with it.
inline node quantized(const node& x, const node& scale, const node& zero, dtype type) {
    const limits l = limits_of(type);
    const node q = eval(minimum(maximum(round(x / scale) + zero, l.low), l.high));
    return converted(q, q.type(), type);
}
inline node as_float(call& c, int i) { return converted(c.plain(i), c.type(i), dtype::f32); }

inline void quantize_linear(call& c) {
    const std::int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0),
                       precision = c.integer("precision", 0);
    c.ignore("saturate"); // of 8-bit floats
    const std::int64_t number = c.integer("output_dtype", 0);
    const dtype type = c.has(2)      ? c.type(2)
                       : number != 0 ? element_type(static_cast<int>(number)).value_or(dtype::f64)
                                     : dtype::u8;
    if (precision != 0 && precision != 1) refuse("precision = " + std::to_string(precision));
    const node x = as_float(c, 0), scale = along_axis(c, as_float(c, 1), x.shape(), axis, block);
    const node zero = c.has(2) ? along_axis(c, as_float(c, 2), x.shape(), axis, block) : c.on.number(0, dtype::f32);
    c.give(0, quantized(x, scale, zero, type), type);
}
inline void dequantize_linear(call& c) {
    const std::int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0),
                       number = c.integer("output_dtype", 0);
    const dtype type = number != 0 ? element_type(static_cast<int>(number)).value_or(dtype::boolean) : c.type(1);
    if (!is_floating(type)) refuse("output_dtype = " + element_type_name(static_cast<int>(number)));
    const shape s = c.dims(0);
    // In double the difference from the zero point is exact for integers beyond 2^24, too.
    node x = converted(c.plain(0), c.type(0), dtype::f64);
    if (c.has(2)) x = eval(x - along_axis(c, converted(c.plain(2), c.type(2), dtype::f64), s, axis, block));
    const node scale = along_axis(c, converted(c.plain(1), c.type(1), dtype::f64), s, axis, block);
    c.give(0, converted(eval(x * scale), dtype::f64, type), type);
}
inline void dynamic_quantize_linear(call& c) {
    const node x = as_float(c, 0);
    const node low = eval(minimum(min(x), 0)), high = eval(maximum(max(x), 0));
    const node scale = eval((high - low) / 255.0);
    const node zero = eval(round(minimum(maximum(-low / scale, 0), 255)));
    c.give(0, quantized(x, scale, zero, dtype::u8), dtype::u8);
    c.give(1, scale, dtype::f32);
    c.give(2, converted(zero, dtype::f32, dtype::u8), dtype::u8);
}
/// An operand minus its zero point, exact in double.
inline node centred(call& c, int i, int zero, std::int64_t axis) {
    const node x = converted(c.plain(i), c.type(i), dtype::f64);
    if (!c.has(zero)) return x;
    const node z = converted(c.plain(zero), c.type(zero), dtype::f64);
    if (z.rank() >= 2) return eval(x - z);
    return eval(x - along_axis(c, z, x.shape(), axis, 0));
}
inline void matmul_integer(call& c) {
    const node y = matmul(centred(c, 0, 2, -2), centred(c, 1, 3, -1));
    c.give(0, converted(y, dtype::f64, dtype::i32), dtype::i32);
}
inline void qlinear_matmul(call& c) {
    const auto scale = [&](int i, const shape& s, std::int64_t axis) {
        const node v = converted(c.plain(i), c.type(i), dtype::f64);
        return v.rank() >= 2 ? v : along_axis(c, v, s, axis, 0);
    };
    const node y = matmul(centred(c, 0, 2, -2), centred(c, 3, 5, -1));
    const shape s = y.shape();
    const node real = eval(y * (scale(1, s, -2) * scale(4, s, -1)));
    c.give(0, quantized(real, scale(6, s, -1), converted(c.plain(7), c.type(7), dtype::f64), c.type(7)), c.type(7));
}
inline node integer_convolution(call& c, int x, int x_zero, int w, int w_zero) {
    const int rank = c.rank(x);
    if (rank < 3 || rank > 5) refuse("over " + std::to_string(rank - 2) + " axes");
    window of = window_of(c, rank - 2, taps_of(c, w));
    const std::int64_t groups = c.integer("group", 1);
    const node image = c.on.transposed(centred(c, x, x_zero, 1), channels_last(rank));
    resolve(of, image.shape());
    return convolved(c, image, c.on.transposed(centred(c, w, w_zero, 0), filter_axes(rank)), of, groups);
}
inline void conv_integer(call& c) {
    const node y = integer_convolution(c, 0, 2, 1, 3);
    c.give_laid(0, converted(y, dtype::f64, dtype::i32), dtype::i32, channels_last(c.rank(0)));
}
inline void qlinear_conv(call& c) {
    node y = integer_convolution(c, 0, 2, 3, 5);
    const auto number = [&](int i) { return converted(c.plain(i), c.type(i), dtype::f64); };
    if (c.has(8)) y = eval(y + number(8));
    const node real = eval(y * (reshape(number(1), shape{}) * number(4)));
    const node q = quantized(real, reshape(number(6), shape{}), reshape(number(7), shape{}), c.type(7));
    c.give_laid(0, q, c.type(7), channels_last(c.rank(0)));
}

inline std::span<const operator_rule> quantised() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"QuantizeLinear", &quantize_linear},
        {"DequantizeLinear", &dequantize_linear},
        {"DynamicQuantizeLinear", &dynamic_quantize_linear},
        {"MatMulInteger", &matmul_integer},
        {"QLinearMatMul", &qlinear_matmul},
        {"ConvInteger", &conv_integer},
        {"QLinearConv", &qlinear_conv},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
