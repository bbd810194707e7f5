#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/formula.hpp>

#include <string>
#include <string_view>

/// Computes the shape that a formula's leaves broadcast to, and finds the operation to blame where
/// they do not.

namespace tapegraph::detail {

/// Throws shape_error for an operation whose operands do not broadcast. A condition is seldom the
/// culprit, so the two operands after it are shown.
[[noreturn]] void refuse_shapes(std::string_view operation, const operand_info* operands, int count);

/// The type and shape of a formula, without computing it. A number is a scalar of its neighbours'
/// type.
template <class X>
operand_info info_of(const X& x) {
    if constexpr (handle<X>)
        return {x.type(), x.shape()};
    else
        return {dtype::boolean, {}}; // bool, which yields to every other type
}
template <class Op, class... Args>
operand_info info_of(const expr<Op, Args...>& e) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        constexpr int count = sizeof...(I);
        operand_info in[]{info_of(e.template get<I>())...};
        dtype common = in[count - 1].type;
        for (int k = count - 1; k >= Op::condition_operands; --k)
            if (in[k].type != dtype::boolean) common = in[k].type;
        operand_info result{Op::result_type(common), in[0].dims};
        bool ok = true;
        for (int k = 1; k < count; ++k) result.dims = broadcast(result.dims, in[k].dims, ok);
        for (int k = Op::condition_operands; k < count; ++k) in[k].type = common;
        if (!ok) refuse_shapes(Op::name, in, count);
        return result;
    }
    (std::index_sequence_for<Args...>{});
}

/// Names the first operation whose operands do not fit, in the order in which the formula is
/// traced.
[[noreturn]] void throw_broadcast_error(const formula_code& code, const formula_values& values);

shape broadcast_shape(const formula_code& code, const formula_values& values);

#if TG_DEFINES_FOR_HOST(eager)

[[noreturn]] TG_DEFINITION void refuse_shapes(std::string_view operation, const operand_info* operands, int count) {
    std::string text(operation);
    text.append(": shapes do not broadcast: ");
    const int skip = count > 2 ? count - 2 : 0;
    for (int k = skip; k < count; ++k)
        text.append(k > skip ? ", " : "").append(name_of(operands[k].type)).append(to_string(operands[k].dims));
    throw shape_error(text);
}

[[noreturn]] TG_DEFINITION void throw_broadcast_error(const formula_code& code, const formula_values& values) {
    const ir::region_view region = code.value_region();
    list<operand_info> registers;
    for (int s = 0; s < region.slots(); ++s) {
        const int source = code.forward_sources[s];
        registers.push_back({region.slot_type(s), source < first_number ? values.leaves[source]->shape() : shape{}});
    }
    for (int i = 0; i < region.instructions(); ++i) {
        const ir::region_instruction step = region.instruction(i);
        const int count = step.operands();
        operand_info in[4];
        for (int k = 0; k < count; ++k) in[k] = registers[step.operand[k]];
        operand_info result{step.type, in[0].dims};
        bool ok = true;
        for (int k = 1; k < count; ++k) result.dims = broadcast(result.dims, in[k].dims, ok);
        if (!ok) refuse_shapes(code.ops[step.op]->name, in, count);
        registers.push_back(result);
    }
    throw shape_error("formula: shapes do not broadcast");
}

TG_DEFINITION shape broadcast_shape(const formula_code& code, const formula_values& values) {
    shape result = values.leaves[0]->shape();
    bool ok = true;
    for (int i = 1; i < values.leaf_count; ++i)
        if (!(values.leaves[i]->shape() == result)) result = broadcast(result, values.leaves[i]->shape(), ok);
    if (!ok) throw_broadcast_error(code, values);
    return result;
}

#endif

} // namespace tapegraph::detail
