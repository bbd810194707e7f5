#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/ir/node.hpp>
#ifdef TG_COMPONENT
#include <tapegraph/ops/operation_list.hpp>
#endif

/// Run-time descriptors of the library's own operations: their shape rules, derivatives, and value
/// functions for the interpreter. Programs that link the component (core/component.hpp) use the
/// ones compiled there.

namespace tapegraph {

#ifdef TG_COMPONENT
#define TG_DESCRIPTOR(...) TG_COMPILED(operations, const ir::operation ir::descriptor_of<__VA_ARGS__>)
#define TG_DESCRIPTOR_OF_TYPED(types, ...) TG_DESCRIPTOR(__VA_ARGS__)
#define TG_DESCRIPTOR_OF_FORMULA_REDUCTION(types, device_types, ...) TG_DESCRIPTOR(__VA_ARGS__)
#define TG_DESCRIPTOR_OF_WHOLE_REDUCTION(types, device_types, sealed_types, tensors, ...) TG_DESCRIPTOR(__VA_ARGS__)
#define TG_DESCRIPTOR_OF_OPERATION(part, types, device_part, device_types, tensors, ...) TG_DESCRIPTOR(__VA_ARGS__)
TG_ELEMENTWISE_OPERATIONS(TG_DESCRIPTOR)
TG_TYPED_ELEMENTWISE_OPERATIONS(TG_DESCRIPTOR_OF_TYPED)
TG_VIEW_OPERATIONS(TG_DESCRIPTOR)
TG_FORMULA_REDUCTIONS(TG_DESCRIPTOR_OF_FORMULA_REDUCTION)
TG_WHOLE_REDUCTIONS(TG_DESCRIPTOR_OF_WHOLE_REDUCTION)
TG_OPERATIONS(TG_DESCRIPTOR_OF_OPERATION)
#undef TG_DESCRIPTOR
#undef TG_DESCRIPTOR_OF_TYPED
#undef TG_DESCRIPTOR_OF_FORMULA_REDUCTION
#undef TG_DESCRIPTOR_OF_WHOLE_REDUCTION
#undef TG_DESCRIPTOR_OF_OPERATION
#endif

} // namespace tapegraph
