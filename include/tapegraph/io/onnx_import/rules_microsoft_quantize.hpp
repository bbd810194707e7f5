#pragma once

#include <tapegraph/io/onnx_import/rules_quantize_recurrent.hpp>

#include <bit>

/// What onnxruntime's quantizer writes, of its own domain com.microsoft: operators on integers of 8 bits, which are
/// the floating operators between a DequantizeLinear and a QuantizeLinear, and products with weights of few bits.

namespace tapegraph::io::onnx_import {

namespace rules {

/// Operands [i], its scale and its zero point, which may be missing, as floating numbers.
inline value_pointer real_operand(call& c, int i) {
    return result_of(c, "DequantizeLinear", {c.pointer(i), c.pointer(i + 1), c.optional(i + 2)},
                     {with("axis", std::int64_t{0})});
}
/// Gives floating numbers as integers; without a zero point they have the first operand's type.
inline void give_quantized(call& c, value_pointer y, int scale, int zero, dtype otherwise) {
    const value_pointer z = c.has(zero) ? c.pointer(zero) : c.on.make_known(array(otherwise, {}));
    c.give(0, result_of(c, "QuantizeLinear", {std::move(y), c.pointer(scale), z}));
}
inline void qlinear_binary(call& c, const char* type) {
    give_quantized(c, result_of(c, type, {real_operand(c, 0), real_operand(c, 3)}), 6, 7, c.type(0));
}
inline void qlinear_unary(call& c, const char* type, std::vector<attribute> attributes) {
    give_quantized(c, result_of(c, type, {real_operand(c, 0)}, std::move(attributes)), 3, 4, c.type(0));
}
/// Attributes of a window as the file has them, for the floating operator.
inline std::vector<attribute> window_attributes(call& c) {
    std::vector<attribute> found;
    for (const char* const name :
         {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "group", "kernel_shape", "pads", "strides"})
        if (const attribute* const a = c.find(name)) found.push_back(*a);
    return found;
}
/// An order of axes that puts the channels behind or in front.
inline attribute channel_order(int rank, bool to_last) {
    std::vector<std::int64_t> order{0};
    if (!to_last) order.push_back(rank - 1);
    for (int k = to_last ? 2 : 1; k < rank - (to_last ? 0 : 1); ++k) order.push_back(k);
    if (to_last) order.push_back(1);
    return with("perm", std::move(order));
}
inline void qlinear_pool(call& c, const char* type) {
    const bool last = c.integer("channels_last", 0) != 0;
    const int rank = c.rank(0);
    value_pointer x = real_operand(c, 0);
    if (last) x = result_of(c, "Transpose", {x}, {channel_order(rank, false)});
    value_pointer y = result_of(c, type, {x}, window_attributes(c));
    if (last) y = result_of(c, "Transpose", {y}, {channel_order(rank, true)});
    give_quantized(c, y, 3, 4, c.type(0));
}
inline void qlinear_softmax(call& c) {
    const std::int64_t opset = c.integer("opset", 13), axis = c.integer("axis", opset < 13 ? 1 : -1);
    const value_pointer y = computed(c, {"Softmax", {real_operand(c, 0)}, {with("axis", axis)}, opset < 13 ? 11 : 13});
    give_quantized(c, y, 3, 4, c.type(0));
}
inline void qlinear_concat(call& c) {
    std::vector<value_pointer> parts;
    for (int i = 2; i + 1 < c.inputs(); i += 3) parts.push_back(real_operand(c, i));
    const std::int64_t axis = c.integer("axis", 0);
    give_quantized(c, result_of(c, "Concat", std::move(parts), {with("axis", axis)}), 0, 1, c.type(2));
}
inline void qlinear_where(call& c) {
    give_quantized(c, result_of(c, "Where", {c.pointer(0), real_operand(c, 1), real_operand(c, 4)}), 7, 8, c.type(1));
}
inline void qlinear_conv_microsoft(call& c) {
    if (c.integer("channels_last", 0) == 0) return qlinear_conv(c);
    const int rank = c.rank(0);
    std::vector<value_pointer> in;
    for (int i = 0; i < c.inputs(); ++i) in.push_back(c.optional(i));
    in[0] = result_of(c, "Transpose", {in[0]}, {channel_order(rank, false)});
    const value_pointer y = result_of(c, "QLinearConv", std::move(in), window_attributes(c));
    c.give(0, result_of(c, "Transpose", {y}, {channel_order(rank, true)}));
}

/// Scales of a matrix, one or one for each column, in f32.
inline node scale_of(call& c, int i) {
    const node v = as_float(c, i);
    return v.rank() == 1 && v.shape()[0].value == 1 ? reshape(v, shape{}) : v;
}
inline node plus_bias(call& c, const node& y, int bias) { return c.has(bias) ? node(eval(y + as_float(c, bias))) : y; }
inline void matmul_integer_to_float(call& c) {
    const node sums = integer_product(c, 0, 4, 1, 5);
    const node y = eval(converted(sums, sums.type(), dtype::f32) * (scale_of(c, 2) * scale_of(c, 3)));
    c.give(plus_bias(c, y, 6));
}
inline void dynamic_quantize_matmul(call& c) {
    const shape s = c.dims(0);
    const dtype type = exact_for(s[s.rank() - 1], 255, most_of(c, 1, 3));
    const integer_kernel w{plain_centred(c, 1, 3, -1, type), scale_of(c, 2)};
    c.give(plus_bias(c, w.times(as_float(c, 0)), 4));
}
inline void qgemm(call& c) {
    const bool first = c.integer("transA", 0) != 0, second = c.integer("transB", 0) != 0;
    const double alpha = c.number("alpha", 1);
    const dtype type = exact_for(c.dims(0)[first ? 0 : 1], most_of(c, 0, 2), most_of(c, 3, 5));
    const node a = plain_centred(c, 0, 2, first ? -1 : -2, type), b = plain_centred(c, 3, 5, second ? -2 : -1, type);
    node sums = converted(matmul(a, b, {.transpose_a = first, .transpose_b = second}), type, dtype::f64);
    if (c.has(6)) sums = eval(sums + converted(c.plain(6), c.type(6), dtype::f64));
    const node y = eval(converted(sums, dtype::f64, dtype::f32) * (alpha * scale_of(c, 1) * scale_of(c, 4)));
    if (!c.has(7)) return c.give(y);
    give_quantized(c, c.on.make(y, dtype::f32), 7, 8, c.type(0));
}
inline void matmul_integer16(call& c) {
    const node y = integer_product(c, 0, 2, 1, 3);
    c.give(0, converted(y, y.type(), dtype::i32), dtype::i32);
}
/// A weight that must be known when the file is read: its bytes are unpacked then.
inline const array& packed_weight(call& c, int i, dtype type) {
    const array* const a = c.known(i);
    if (a == nullptr) refuse("weights of few bits that are not constants");
    if (a->type() != type) refuse(std::string("weights of ") + name_of(a->type()));
    return *a;
}
/// MatMulNBits: rows of N are blocks of K, and each block has a scale and a zero point.
inline void matmul_bits(call& c) {
    const std::int64_t k = c.integer("K", 0), n = c.integer("N", 0), bits = c.integer("bits", 4),
                       block = c.integer("block_size", 0);
    c.ignore("accuracy_level"); // allows integers for the other operand
    if (c.integer("weight_prepacked", 0) != 0) refuse("weights in an order of a device's own");
    if ((bits != 2 && bits != 4 && bits != 8) || k < 1 || n < 1 || block < 16 ||
        !std::has_single_bit(std::uint64_t(block)))
        refuse("of " + std::to_string(n) + " x " + std::to_string(k) + " in blocks of " + std::to_string(block) + ", " +
               std::to_string(bits) + " bits");
    const std::int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8, each = 8 / bits,
                       zero_bytes = (blocks * bits + 7) / 8;
    const array& packed = packed_weight(c, 1, dtype::u8);
    const array* const scales = c.known(2);
    const array* const zeros = c.known(3);
    const array* const order = c.known(4);
    if (scales == nullptr || (c.has(3) && zeros == nullptr) || (c.has(4) && order == nullptr))
        refuse("weights of few bits that are not constants");
    const bool packed_zeros = zeros != nullptr && zeros->type() == dtype::u8;
    if (packed.size() != n * blocks * bytes || scales->size() != n * blocks ||
        (zeros != nullptr && zeros->size() != (packed_zeros ? n * zero_bytes : n * blocks)) ||
        (order != nullptr && order->size() < k))
        refuse("weights, scales or zero points of another extent than N, K and block_size say");
    const auto* const in = static_cast<const std::uint8_t*>(packed.data());
    const std::uint32_t mask = (1U << bits) - 1;
    const auto field = [&](const std::uint8_t* from, std::int64_t i) {
        return static_cast<double>((std::uint32_t{from[i / each]} >> (i % each * bits)) & mask);
    };
    array w(dtype::f32, {n, k});
    auto* out = static_cast<float*>(w.data());
    for (std::int64_t row = 0; row < n; ++row)
        for (std::int64_t i = 0; i < k; ++i) {
            const std::int64_t b = order == nullptr ? i / block : order->integer(i);
            if (b < 0 || b >= blocks) refuse("g_idx with the block " + std::to_string(b));
            const double zero = zeros == nullptr ? static_cast<double>(1U << (bits - 1))
                                : packed_zeros
                                    ? field(static_cast<const std::uint8_t*>(zeros->data()) + row * zero_bytes, b)
                                    : zeros->number(row * blocks + b);
            *out++ =
                static_cast<float>((field(in + row * blocks * bytes, i) - zero) * scales->number(row * blocks + b));
        }
    const node y = matmul(as_float(c, 0), c.on.constant(w), {.transpose_b = true});
    c.give(0, converted(plus_bias(c, y, 5), dtype::f32, c.type(0)), c.type(0));
}
/// MatMulBnb4: the floating numbers of 4 bits of bitsandbytes, with the largest absolute value of each block.
inline void matmul_bnb4(call& c) {
    static constexpr float fp4[8] = {0.0F, 5.208333333e-03F, 0.66666667F, 1.0F, 0.33333333F, 0.5F, 0.16666667F, 0.25F};
    static constexpr float nf4[16] = {-1.0F,
                                      -0.6961928009986877F,
                                      -0.5250730514526367F,
                                      -0.39491748809814453F,
                                      -0.28444138169288635F,
                                      -0.18477343022823334F,
                                      -0.09105003625154495F,
                                      0.0F,
                                      0.07958029955625534F,
                                      0.16093020141124725F,
                                      0.24611230194568634F,
                                      0.33791524171829224F,
                                      0.44070982933044434F,
                                      0.5626170039176941F,
                                      0.7229568362236023F,
                                      1.0F};
    const std::int64_t k = c.integer("K", 0), n = c.integer("N", 0), block = c.integer("block_size", 0),
                       kind = c.integer("quant_type", 1);
    c.ignore("training_mode");
    if (c.integer("transB", 1) != 1 || (kind != 0 && kind != 1) || k < 1 || n < 1 || block < 1)
        refuse("with quant_type = " + std::to_string(kind) + ", block_size = " + std::to_string(block));
    const array& packed = packed_weight(c, 1, dtype::u8);
    const array* const largest = c.known(2);
    if (largest == nullptr) refuse("weights of few bits that are not constants");
    if (packed.size() != (n * k + 1) / 2 || largest->size() != (n * k + block - 1) / block)
        refuse("weights or scales of another extent than N, K and block_size say");
    array w(dtype::f32, {n, k});
    for (std::int64_t i = 0; i < n * k; ++i) {
        const auto byte = static_cast<const std::uint8_t*>(packed.data())[i / 2];
        const unsigned code = i % 2 == 0 ? byte >> 4 : byte & 15U;
        const float v = kind == 1 ? nf4[code] : code < 8 ? fp4[code] : -fp4[code - 8];
        static_cast<float*>(w.data())[i] = v * static_cast<float>(largest->number(i / block));
    }
    const node y = matmul(as_float(c, 0), c.on.constant(w), {.transpose_b = true});
    c.give(0, converted(y, dtype::f32, c.type(0)), c.type(0));
}

inline std::span<const operator_rule> microsoft_quantised() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"QLinearAdd", [](call& c) { qlinear_binary(c, "Add"); }},
        {"QLinearMul", [](call& c) { qlinear_binary(c, "Mul"); }},
        {"QLinearSigmoid", [](call& c) { qlinear_unary(c, "Sigmoid", {}); }},
        {"QLinearLeakyRelu",
         [](call& c) { qlinear_unary(c, "LeakyRelu", {with("alpha", static_cast<float>(c.number("alpha", 0.01F)))}); }},
        {"QLinearAveragePool", [](call& c) { qlinear_pool(c, "AveragePool"); }},
        {"QLinearGlobalAveragePool", [](call& c) { qlinear_pool(c, "GlobalAveragePool"); }},
        {"QLinearSoftmax", &qlinear_softmax},
        {"QLinearConcat", &qlinear_concat},
        {"QLinearWhere", &qlinear_where},
        {"QLinearConv", &qlinear_conv_microsoft},
        {"MatMulIntegerToFloat", &matmul_integer_to_float},
        {"DynamicQuantizeMatMul", &dynamic_quantize_matmul},
        {"QGemm", &qgemm},
        {"MatMulInteger16", &matmul_integer16},
        {"MatMulNBits", &matmul_bits},
        {"MatMulBnb4", &matmul_bnb4},
        {"DynamicQuantizeLSTM", &dynamic_quantize_lstm},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
