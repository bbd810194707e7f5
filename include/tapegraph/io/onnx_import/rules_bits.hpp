#pragma once

#include <tapegraph/io/onnx_import/rules_elementwise.hpp>

/// Operators on the bits of integers, by arithmetic.

namespace tapegraph::io::onnx_import {

namespace rules {

inline void shift(call& c) {
    same_types(c, 0, 2);
    const std::string direction = c.text("direction", "");
    if (direction != "LEFT" && direction != "RIGHT") refuse("direction '" + direction + "'");
    const dtype type = c.type(0);
    const laid in = side_by_side(c, {0, 1});
    const node x = converted(in.x[0], type, dtype::i64), by = converted(in.x[1], c.type(1), dtype::i64);
    // A shift by a negative number, or by all bits or more, leaves nothing but the sign.
    const double bits = 8.0 * static_cast<double>(size_of(type));
    const node bounded = eval(where(logical_or(by<0, by> bits), bits, by));
    const bool left = direction == "LEFT";
    std::vector<std::int64_t> powers;
    for (int k = 0; k <= static_cast<int>(bits); ++k)
        powers.push_back(k < 64 ? std::int64_t(std::uint64_t{1} << k) : 0);
    const node table = c.on.constant(array::integers(powers));
    if (left) return c.give_laid(0, converted(eval(x * gather(table, bounded, 0)), dtype::i64, type), type, in.axes);
    // To the right by one first, after which u64 fits into i64, and the divisor stays below 2^63.
    const node first = type == dtype::u64 ? half_of_u64(x) : node(eval(floor_divide(x, 2)));
    const node rest = eval(minimum(maximum(bounded - 1, 0), 62));
    const node further = eval(floor_divide(first, gather(table, rest, 0)));
    const node moved = eval(where(bounded == 0, x, where(bounded > 63, floor_divide(further, 2), further)));
    c.give_laid(0, converted(moved, dtype::i64, type), type, in.axes);
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
    const laid in = side_by_side(c, {0, 1});
    node x = converted(in.x[0], type, dtype::i64), y = converted(in.x[1], type, dtype::i64), sum;
    const int bits = static_cast<int>(8 * size_of(type));
    double weight = 1;
    for (int k = 0; k < bits; ++k, weight *= 2) {
        const node bit = f(eval(x % 2), eval(y % 2));
        sum = k == 0 ? bit : k == 63 ? eval(sum + bit * lowest_i64) : eval(sum + bit * weight);
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

inline std::span<const operator_rule> bits() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"BitShift", &shift},
        {"BitwiseAnd", &bitwise_and},
        {"BitwiseNot", &bitwise_not},
        {"BitwiseOr", &bitwise_or},
        {"BitwiseXor", &bitwise_xor},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
