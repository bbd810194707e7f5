#pragma once

#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/eager/formula.hpp>

#include <string>
#include <string_view>
#include <vector>

/// The shape that a formula's tensors have in common, and which operation it is whose operands have none.

namespace tapegraph::detail {

inline dtype slot_type(const formula_code& code, int first_word, int slot) {
    return static_cast<dtype>(code.kernel_words[first_word + 3 + slot]);
}

/// The shape that operands of one operation have in common. Throws shape_error with its name and theirs.
inline shape broadcast_operands(std::string_view operation, const operand_info* in, int count) {
    shape result = count > 0 ? in[0].dims : shape{};
    bool ok = true;
    for (int i = 1; i < count; ++i) result = broadcast(result, in[i].dims, ok);
    if (ok) return result;
    std::string text = std::string(operation) + ": shapes do not broadcast:";
    for (int i = 0; i < count; ++i)
        text += std::string(i == 0 ? " " : ", ") + name_of(in[i].type) + to_string(in[i].dims);
    throw shape_error(text);
}

/// Throws for the first operation of a formula whose operands do not broadcast.
template <class = void>
[[noreturn]] void throw_broadcast_error(const formula_code& code, const any_tensor* const* leaves) {
    const int* const words = code.kernel_words + code.forward;
    const int slots = words[0], instructions = words[1];
    std::vector<operand_info> values; // of the region's registers
    std::vector<bool> number;
    for (int s = 0; s < slots; ++s) {
        const int source = code.forward_sources[s];
        number.push_back(source >= first_number);
        values.push_back({slot_type(code, code.forward, s), number.back() ? shape{} : leaves[source]->shape()});
    }
    for (int i = 0; i < instructions; ++i) {
        const int* const instruction = words + 3 + slots + ir::words_per_instruction * i;
        operand_info in[4];
        int count = 0;
        for (int k = 0; k < 4; ++k)
            if (const int from = instruction[2 + k]; from >= 0 && !number[static_cast<std::size_t>(from)])
                in[count++] = values[static_cast<std::size_t>(from)];
        const shape dims = broadcast_operands(code.ops[instruction[0]]->name, in, count);
        values.push_back({static_cast<dtype>(instruction[1]), dims});
        number.push_back(count == 0);
    }
    throw shape_error("elementwise: shapes do not broadcast");
}

inline shape broadcast_shape(const formula_code& code, const any_tensor* const* leaves, int count) {
    shape result = leaves[0]->shape();
    bool ok = true;
    for (int i = 1; i < count; ++i)
        if (!(leaves[i]->shape() == result)) result = broadcast(result, leaves[i]->shape(), ok);
    if (!ok) throw_broadcast_error(code, leaves);
    return result;
}

/// What a formula gives, asked before it is computed. A number is a scalar of no type in particular.
template <class X>
operand_info info_of(const X& x) {
    if constexpr (requires { x.shape(); })
        return {x.type(), x.shape()};
    else
        return {};
}
template <class Op, class... Args>
operand_info info_of(const expr<Op, Args...>& e) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        const operand_info in[]{info_of(e.template get<I>())...};
        return operand_info{in[sizeof...(I) - 1].type, broadcast_operands(Op::name, in, sizeof...(I))};
    }
    (std::index_sequence_for<Args...>{});
}

} // namespace tapegraph::detail
