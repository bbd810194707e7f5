#pragma once

#include <tapegraph/core/config.hpp>

/// The compiled component, `tapegraph::kernels` in CMake: functions that do not depend on a
/// program's models, compiled once per build instead of once per source. Header-only use stays the
/// default; the same functions are compiled either way, so the bits are the same.
///
/// TG_COMPONENT selects the variant: not defined, everything is compiled where it is used; 1, the
/// program links the component; 2, the component itself is being compiled. TG_PART then names the
/// part, each an object of its own: a room of ops/ or a folder.
///
/// After its templates, a header lists the arguments for which the component instantiates them:
///
///     TG_COMPILED(reduction, void reduce_axes<reduction::sum, float>(...))
///
/// What traces is constexpr, and so compiled by whoever calls it. When the program runs, the long ones of these functions are those of the
/// component:
///
///     return TG_RUNS_HERE ? append_map(op, args, count) : map_at_run_time(*this, op, args, count);
///
/// where map_at_run_time calls append_map, too, which is one function in all objects: of two that are called `map` the linker takes either.
/// Just so, or as if and else, without a negation and without more statements: otherwise g++ -O0 compiles both.
///
/// Operations and their kernels are listed in ops/operation_list.hpp. Functions that are no templates are defined behind
/// their declaration, as TG_DEFINITION, where TG_DEFINES(part), or TG_DEFINES_FOR_HOST(part) if a program with a GPU backend compiles
/// something else.

#if defined(TG_COMPONENT) && TG_COMPONENT == 2
#define TG_DEFINITION [[gnu::weak]] // lets programs use it that link the component and have no definition of their own
#else
#define TG_DEFINITION inline
#endif

#if defined(TG_COMPONENT) && TG_COMPONENT == 1 && !defined(TG_CUDA)
#define TG_RUNS_HERE __builtin_is_constant_evaluated() // the function of std would be a call in a debug build
#else
#define TG_RUNS_HERE true
#endif

#define TG_PART_convolution 1
#define TG_PART_cumulative 2
#define TG_PART_data 3
#define TG_PART_eager 4
#define TG_PART_gather 5
#define TG_PART_graph 6
#define TG_PART_instructions 7
#define TG_PART_movement 8
#define TG_PART_nn 9
#define TG_PART_onnx 10
#define TG_PART_operations 11
#define TG_PART_ordering 12
#define TG_PART_pooling 13
#define TG_PART_product 14
#define TG_PART_random 15
#define TG_PART_recurrent 16
#define TG_PART_reduction 17
#define TG_PART_regions 18
#define TG_PART_registry 19
#define TG_PART_runtime 20

#if !defined(TG_COMPONENT)
#define TG_DEFINES(part) 1
#define TG_DEFINES_FOR_HOST(part) 1
#define TG_COMPILED(part, ...)
#else
#if TG_COMPONENT == 1
#undef TG_PART
#define TG_PART none
#elif !defined(TG_PART)
#error "TG_COMPONENT is 2 for the sources of tapegraph::kernels alone; who links it defines it as 1"
#endif
#define TG_PART_none 0
#define TG_JOIN_PART(part) TG_PART_##part
#define TG_NUMBER_OF_PART(part) TG_JOIN_PART(part)
#define TG_DEFINES(part) (TG_PART_##part == TG_NUMBER_OF_PART(TG_PART))
#if defined(TG_CUDA)
#include <tapegraph/core/component_with_backend.hpp>
#else
#define TG_COMPILED(part, ...) TG_TEMPLATE_OF_##part __VA_ARGS__;
#define TG_DEFINES_FOR_HOST(part) TG_DEFINES(part)
#endif

#if TG_DEFINES(convolution)
#define TG_TEMPLATE_OF_convolution template
#else
#define TG_TEMPLATE_OF_convolution extern template
#endif
#if TG_DEFINES(cumulative)
#define TG_TEMPLATE_OF_cumulative template
#else
#define TG_TEMPLATE_OF_cumulative extern template
#endif
#if TG_DEFINES(data)
#define TG_TEMPLATE_OF_data template
#else
#define TG_TEMPLATE_OF_data extern template
#endif
#if TG_DEFINES(eager)
#define TG_TEMPLATE_OF_eager template
#else
#define TG_TEMPLATE_OF_eager extern template
#endif
#if TG_DEFINES(gather)
#define TG_TEMPLATE_OF_gather template
#else
#define TG_TEMPLATE_OF_gather extern template
#endif
#if TG_DEFINES(graph)
#define TG_TEMPLATE_OF_graph template
#else
#define TG_TEMPLATE_OF_graph extern template
#endif
#if TG_DEFINES(instructions)
#define TG_TEMPLATE_OF_instructions template
#else
#define TG_TEMPLATE_OF_instructions extern template
#endif
#if TG_DEFINES(movement)
#define TG_TEMPLATE_OF_movement template
#else
#define TG_TEMPLATE_OF_movement extern template
#endif
#if TG_DEFINES(nn)
#define TG_TEMPLATE_OF_nn template
#else
#define TG_TEMPLATE_OF_nn extern template
#endif
#if TG_DEFINES(onnx)
#define TG_TEMPLATE_OF_onnx template
#else
#define TG_TEMPLATE_OF_onnx extern template
#endif
#if TG_DEFINES(operations)
#define TG_TEMPLATE_OF_operations template
#else
#define TG_TEMPLATE_OF_operations extern template
#endif
#if TG_DEFINES(ordering)
#define TG_TEMPLATE_OF_ordering template
#else
#define TG_TEMPLATE_OF_ordering extern template
#endif
#if TG_DEFINES(pooling)
#define TG_TEMPLATE_OF_pooling template
#else
#define TG_TEMPLATE_OF_pooling extern template
#endif
#if TG_DEFINES(product)
#define TG_TEMPLATE_OF_product template
#else
#define TG_TEMPLATE_OF_product extern template
#endif
#if TG_DEFINES(random)
#define TG_TEMPLATE_OF_random template
#else
#define TG_TEMPLATE_OF_random extern template
#endif
#if TG_DEFINES(recurrent)
#define TG_TEMPLATE_OF_recurrent template
#else
#define TG_TEMPLATE_OF_recurrent extern template
#endif
#if TG_DEFINES(reduction)
#define TG_TEMPLATE_OF_reduction template
#else
#define TG_TEMPLATE_OF_reduction extern template
#endif
#if TG_DEFINES(registry)
#define TG_TEMPLATE_OF_registry template
#else
#define TG_TEMPLATE_OF_registry extern template
#endif
#if TG_DEFINES(regions)
#define TG_TEMPLATE_OF_regions template
#else
#define TG_TEMPLATE_OF_regions extern template
#endif
#if TG_DEFINES(runtime)
#define TG_TEMPLATE_OF_runtime template
#else
#define TG_TEMPLATE_OF_runtime extern template
#endif
#endif
