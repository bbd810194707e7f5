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
    const ir::region_view region = code.value_region();
    list<operand_info> registers;
    for (int s = 0; s < region.slots(); ++s) {
        const int source = code.forward_sources[s];
        registers.push_back({region.slot_type(s), source < first_number ? values.leaves[source]->shape() : shape{}});
    }
    std::string text = "formula";
    for (int i = 0; i < region.instructions(); ++i) {
        const ir::region_instruction step = region.instruction(i);
        const int count = step.operands();
        operand_info result{step.type, registers[step.operand[0]].dims};
        bool ok = true;
        for (int k = 1; k < count; ++k) result.dims = broadcast(result.dims, registers[step.operand[k]].dims, ok);
        if (!ok) {
            text = std::string(code.ops[step.op]->name) + ": shapes do not broadcast: ";
            const int skip = count > 2 ? count - 2 : 0; // a condition is seldom the culprit
            for (int k = skip; k < count; ++k) {
                const operand_info& operand = registers[step.operand[k]];
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
