#pragma once

#include <tapegraph/ir/operation.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// From an operation's record to its kernel at run time. The library resolves this in the compiler, from the address to
/// the type; an interpreter of traces made at run time needs a table.

namespace tapegraph::fuzz {

/// Operations that are not elementwise, by the element type of their first operand. A reduction's kernel reads one
/// operand that has been computed. Throws argument_error for an operation that is not in the table of kernels.cpp.
runtime::kernel_pair kernel_of(const ir::operation& op, dtype first_operand);

/// One elementwise operation over `count` contiguous elements. `common` is the element type of the operands that follow
/// the conditions; types for which records have no `evaluate` go through double, which holds bool and int32 exactly.
void evaluate(const ir::operation& op, dtype common, const void* const* in, int operands, void* out,
              std::int64_t count);

} // namespace tapegraph::fuzz
