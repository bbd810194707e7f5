#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/formula.hpp>

#include <string>
#include <string_view>

/// The shape that a formula's leaves broadcast to, and which operation is to blame where they do not.

namespace tapegraph::detail {

template <class = void>
[[noreturn]] void refuse_shapes(std::string_view operation, const shape* operands, int count) {
    std::string text(operation);
    text.append(": shapes do not broadcast:");
    for (int i = 0; i < count; ++i) text.append(" ").append(to_string(operands[i]));
    throw shape_error(text);
}

/// Names the first operation whose operands do not fit, as tracing the formula does.
template <class = void>
[[noreturn]] void throw_broadcast_error(const formula_code& code, const formula_values& values) {
    const int* const words = code.kernel_words + code.forward;
    list<operand_info> registers;
    for (int s = 0; s < words[0]; ++s) {
        const int source = code.forward_sources[s];
        registers.push_back(
            {static_cast<dtype>(words[3 + s]), source < first_number ? values.leaves[source]->shape() : shape{}});
    }
    std::string text = "formula";
    const int* instruction = words + 3 + words[0];
    for (int i = 0; i < words[1]; ++i, instruction += ir::words_per_instruction) {
        operand_info result{static_cast<dtype>(instruction[1]), registers[instruction[2]].dims};
        bool ok = true;
        int count = 1;
        for (; count < 4 && instruction[2 + count] >= 0; ++count)
            result.dims = broadcast(result.dims, registers[instruction[2 + count]].dims, ok);
        if (!ok) {
            text = std::string(code.ops[instruction[0]]->name) + ": shapes do not broadcast: ";
            const int skip = count > 2 ? count - 2 : 0; // a condition is seldom the culprit
            for (int k = skip; k < count; ++k) {
                const operand_info& operand = registers[instruction[2 + k]];
                text += std::string(k > skip ? ", " : "") + name_of(operand.type) + to_string(operand.dims);
            }
            break;
        }
        registers.push_back(result);
    }
    throw shape_error(text);
}

inline shape broadcast_shape(const formula_code& code, const formula_values& values) {
    shape result = values.leaves[0]->shape();
    bool ok = true;
    for (int i = 1; i < values.leaf_count; ++i)
        if (!(values.leaves[i]->shape() == result)) result = broadcast(result, values.leaves[i]->shape(), ok);
    if (!ok) throw_broadcast_error(code, values);
    return result;
}

} // namespace tapegraph::detail
