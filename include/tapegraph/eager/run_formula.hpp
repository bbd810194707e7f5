#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/partial_array.hpp>
#include <tapegraph/eager/formula.hpp>
#include <tapegraph/eager/formula_shape.hpp>
#include <tapegraph/eager/numeric_check.hpp>
#include <tapegraph/eager/run_region.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <string>
#include <string_view>

/// Computes sealed formulas and reductions of them. Nothing here depends on a formula's type, so it is
/// compiled once.

namespace tapegraph::detail {

/// A number as a scalar operand of a kernel.
struct number_slot {
    alignas(8) std::byte bytes[8];

    void set(double value, dtype type) {
        common_types::visit(type, [&]<class T>(std::type_identity<T>) {
            const T rounded = static_cast<T>(value);
            std::memcpy(bytes, &rounded, sizeof rounded);
        });
    }
};

inline buffer_view domain_view(const shape& s, dtype type) {
    buffer_view v;
    v.type = type;
    v.rank = s.rank();
    std::memcpy(v.extents, s.data(), sizeof v.extents);
    return v;
}

/// The kernel call that computes a formula's value. Numbers are passed as scalars of their slots' types.
struct forward_call {
    partial_array<buffer_view, most_leaves + most_numbers> in;
    number_slot numbers[most_numbers];
    buffer_view out;
    kernel_call call;

    forward_call(const formula_code& code, const formula_values& values, const any_tensor& result)
        : in(code.forward_slots), out(result.view()) {
        for (int s = 0; s < code.forward_slots; ++s) {
            const int source = code.forward_sources[s];
            if (source < first_number) {
                in[s] = values.leaves[source]->view();
                continue;
            }
            number_slot& number = numbers[source - first_number];
            in[s].type = code.value_region().slot_type(s);
            number.set(values.numbers[source - first_number], in[s].type);
            in[s].data = number.bytes;
        }
        call.in = in.data();
        call.inputs = code.forward_slots;
        call.out = &out;
        call.outputs = 1;
    }
    forward_call(const forward_call&) = delete; // the call points into it
    forward_call& operator=(const forward_call&) = delete;
};

/// The name of the last operation of a formula.
inline std::string_view last_operation(const formula_code& code) {
    const ir::region_view region = code.value_region();
    const int count = region.instructions();
    return count == 0 ? "formula" : code.ops[region.instruction(count - 1).op]->name;
}

any_tensor run_formula(const formula_view& f, const formula_values& values, std::source_location where);
/// Computes a reduction of a formula. `attributes` are the reduction's.
any_tensor run_reduction(const formula_view& f, const formula_values& values, const std::int64_t* attributes,
                         std::source_location where);

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION any_tensor run_formula(const formula_view& f, const formula_values& values, std::source_location where) {
    const formula_code& code = *f.code;
    const shape dims = broadcast_shape(code, values);
    any_tensor result(code.type, dims);
    forward_call operands(code, values, result);
    kernel_call& call = operands.call;
    call.domain = operands.out;
    run_forward(f, call, where);
    if (numeric_check::active()) check_finite(last_operation(code), result, where);
    return result;
}

TG_DEFINITION any_tensor run_reduction(const formula_view& f, const formula_values& values,
                                       const std::int64_t* attributes, std::source_location where) {
    const formula_code& code = *f.code;
    const shape dims = broadcast_shape(code, values);
    const operand_info operand{code.domain_type, dims};
    inference io{&operand, 1, nullptr, code.domain_type, {}, nullptr};
    f.reduction->infer(attributes, io);
    if (io.error != nullptr)
        throw shape_error(std::string(io.error) + ": " + std::string(f.reduction->name) + " of " +
                          name_of(operand.type) + to_string(dims));
    any_tensor result(code.type, io.result);
    forward_call operands(code, values, result);
    kernel_call& call = operands.call;
    call.attributes = attributes;
    call.domain = domain_view(dims, code.domain_type);
    if (runtime::placement_is_logged()) log_formula("", f, call.domain);
    observed_formula(runtime::call_part::value, f, call, where, [&] { runtime::perform(f.reduce, call); });
    check_finite(f.reduction->name, result, where);
    return result;
}

#endif

} // namespace tapegraph::detail
