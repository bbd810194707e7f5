#pragma once

#include <tapegraph/io/onnx_import/rules_windows.hpp>

#include <algorithm>

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
    // Differences of integers of 8 and 16 bits are exact in float, others up to 2^53 in double.
    const bool narrow = size_of(c.type(0)) <= 2 && c.type(1) == dtype::f32 && type == dtype::f32;
    const dtype inner = narrow ? dtype::f32 : dtype::f64;
    node x = converted(c.plain(0), c.type(0), inner);
    if (c.has(2)) x = eval(x - along_axis(c, converted(c.plain(2), c.type(2), inner), s, axis, block));
    const node scale = along_axis(c, converted(c.plain(1), c.type(1), inner), s, axis, block);
    c.give(0, converted(eval(x * scale), inner, type), type);
}
/// Numbers as integers from 0 to 255 by their own range, which includes 0.
struct ranged {
    node integers, scale, zero; ///< in f32
};
inline ranged by_range(const node& x) {
    const node low = eval(minimum(min(x), 0)), high = eval(maximum(max(x), 0));
    const node range = eval((high - low) / 255.0), scale = eval(where(range == 0, 1, range));
    const node zero = eval(round(minimum(maximum(-low / scale, 0), 255)));
    return {eval(minimum(maximum(round(x / scale) + zero, 0), 255)), scale, zero};
}
inline void dynamic_quantize_linear(call& c) {
    const ranged r = by_range(as_float(c, 0));
    c.give(0, converted(r.integers, dtype::f32, dtype::u8), dtype::u8);
    c.give(1, r.scale, dtype::f32);
    c.give(2, converted(r.zero, dtype::f32, dtype::u8), dtype::u8);
}
/// The largest absolute value of an operand minus its zero point.
inline std::int64_t most_of(call& c, int i, int zero) {
    const limits l = limits_of(c.type(i));
    if (!c.has(zero)) return static_cast<std::int64_t>(std::max(-l.low, l.high));
    std::int64_t most = 0;
    if (const array* const z = c.known(zero))
        for (std::int64_t k = 0; k < z->size(); ++k)
            most = std::max({most, z->integer(k) - static_cast<std::int64_t>(l.low),
                             static_cast<std::int64_t>(l.high) - z->integer(k)});
    return most > 0 ? most : static_cast<std::int64_t>(l.high - l.low);
}
/// The element type in which a sum of `terms` products is exact: float where it stays within 2^24, else double.
inline dtype exact_for(const extent& terms, std::int64_t a, std::int64_t b) {
    return terms.known() && terms.value <= (std::int64_t{1} << 24) / (a * b) ? dtype::f32 : dtype::f64;
}
/// An operand minus its zero point, of which there is one for all or one for each index of an axis. Of constants
/// it is computed once.
inline value_pointer centred(call& c, int i, int zero, std::int64_t axis, dtype type) {
    const array *const x = c.known(i), *const z = c.known(zero);
    if (x != nullptr && c.operand(i).weight.empty() && !x->symbolic() && (!c.has(zero) || z != nullptr) &&
        (z == nullptr || z->rank() <= 1)) {
        std::int64_t inner = 1, count = z == nullptr ? 1 : z->size();
        if (count > 1) {
            const int at = c.axis(axis, x->rank());
            if (x->dims()[static_cast<std::size_t>(at)] != count) refuse("by zero points of another extent");
            for (int k = at + 1; k < x->rank(); ++k) inner *= x->dims()[static_cast<std::size_t>(k)];
        }
        array y(type, x->dims());
        for (std::int64_t k = 0; k < y.size(); ++k) {
            const double v = static_cast<double>(x->integer(k) - (z == nullptr ? 0 : z->integer(k / inner % count)));
            if (type == dtype::f32)
                static_cast<float*>(y.data())[k] = static_cast<float>(v);
            else
                static_cast<double*>(y.data())[k] = v;
        }
        return c.on.make_known(std::move(y));
    }
    const node n = converted(c.plain(i), c.type(i), type);
    if (!c.has(zero)) return c.on.make(n, type);
    const node by = converted(c.plain(zero), c.type(zero), type);
    return c.on.make(eval(n - (by.rank() >= 2 ? by : along_axis(c, by, n.shape(), axis, 0))), type);
}
inline node plain_centred(call& c, int i, int zero, std::int64_t axis, dtype type) {
    return c.on.plain(*centred(c, i, zero, axis, type));
}
inline node integer_product(call& c, int a, int a_zero, int b, int b_zero) {
    const shape s = c.dims(a);
    const dtype type =
        exact_for(s.rank() > 0 ? s[s.rank() - 1] : extent(1), most_of(c, a, a_zero), most_of(c, b, b_zero));
    return matmul(plain_centred(c, a, a_zero, -2, type), plain_centred(c, b, b_zero, -1, type));
}
inline void matmul_integer(call& c) {
    const node y = integer_product(c, 0, 2, 1, 3);
    c.give(0, converted(y, y.type(), dtype::i32), dtype::i32);
}
inline void qlinear_matmul(call& c) {
    const auto scale = [&](int i, const shape& s, std::int64_t axis) {
        const node v = converted(c.plain(i), c.type(i), dtype::f64);
        return v.rank() >= 2 ? v : along_axis(c, v, s, axis, 0);
    };
    const node sums = integer_product(c, 0, 2, 3, 5), y = converted(sums, sums.type(), dtype::f64);
    const shape s = y.shape();
    const node real = eval(y * (scale(1, s, -2) * scale(4, s, -1)));
    c.give(0, quantized(real, scale(6, s, -1), converted(c.plain(7), c.type(7), dtype::f64), c.type(7)), c.type(7));
}
inline node integer_convolution(call& c, int x, int x_zero, int w, int w_zero) {
    const int rank = c.rank(x);
    if (rank < 3 || rank > 5) refuse("over " + std::to_string(rank - 2) + " axes");
    window of = window_of(c, rank - 2, taps_of(c, w));
    const std::int64_t groups = c.integer("group", 1);
    extent terms = c.dims(w)[1];
    for (int k = 2; k < rank; ++k) terms = terms * c.dims(w)[k];
    const dtype type = exact_for(terms, most_of(c, x, x_zero), most_of(c, w, w_zero));
    const node image = c.on.arranged(*centred(c, x, x_zero, 1, type), channels_last(rank));
    resolve(of, image.shape());
    const node y = convolved(c, image, c.on.arranged(*centred(c, w, w_zero, 0, type), filter_axes(rank)), of, groups);
    return converted(y, type, dtype::f64);
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
