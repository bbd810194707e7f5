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
/// Functions that trace are constexpr, so every caller compiles them. At run time the long ones among
/// them call the component:
///
///     return TG_RUNS_HERE ? append_map(op, args, count) : map_at_run_time(*this, op, args, count);
///
/// where map_at_run_time calls append_map, too. The two need different names, because the linker keeps
/// one of several functions with the same name. Write it exactly like this, or as if and else, without a
/// negation and without further statements: otherwise g++ -O0 compiles both.
///
/// Operations and their kernels are listed in ops/operation_list.hpp.
///
/// An ordinary function is declared, and defined further down:
///
///     #if TG_DEFINES(data)
///     TG_DEFINITION void check_record_shape(const column_spec& column) { ... }
///     #endif
///
/// The definition keeps what only it needs: write `#include`s of standard headers and of the library's
/// that no declaration reads below the condition, too. The component's functions are weak, so the
/// compiler inlines none of them: what runs once per element or character stays in the declaration.
///
/// A program with a GPU backend cannot use functions of the component that depend on the backend: it
/// compiles the parts eager, graph and nn itself, and those functions of others that have tensors,
/// models or programs, which are below TG_DEFINES_FOR_HOST(part).

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

/// The parts, a line each. TG_PART is compared with a part by joining the two names.
#define TG_PART_IS_cluster_cluster 1
#define TG_PART_IS_convolution_convolution 1
#define TG_PART_IS_cumulative_cumulative 1
#define TG_PART_IS_data_data 1
#define TG_PART_IS_eager_eager 1
#define TG_PART_IS_formats_formats 1
#define TG_PART_IS_gather_gather 1
#define TG_PART_IS_graph_graph 1
#define TG_PART_IS_instructions_instructions 1
#define TG_PART_IS_io_io 1
#define TG_PART_IS_movement_movement 1
#define TG_PART_IS_nn_nn 1
#define TG_PART_IS_onnx_onnx 1
#define TG_PART_IS_operations_operations 1
#define TG_PART_IS_ordering_ordering 1
#define TG_PART_IS_pooling_pooling 1
#define TG_PART_IS_product_product 1
#define TG_PART_IS_random_random 1
#define TG_PART_IS_recurrent_recurrent 1
#define TG_PART_IS_reduction_reduction 1
#define TG_PART_IS_regions_regions 1
#define TG_PART_IS_registry_registry 1
#define TG_PART_IS_runtime_runtime 1
/// Those that a program with a GPU backend compiles itself.
#define TG_PART_OF_PROGRAM_eager 1
#define TG_PART_OF_PROGRAM_graph 1
#define TG_PART_OF_PROGRAM_nn 1

#define TG_JOIN(a, b) a##b
#define TG_JOINED(a, b) TG_JOIN(a, b)
#define TG_SECOND_OF(first, second, ...) second
#define TG_SECOND(...) TG_SECOND_OF(__VA_ARGS__)
#define TG_SHIFT_1 ~,
/// `yes` if `flag` is a macro that is 1, `no` if it is no macro.
#define TG_IF(flag, yes, no) TG_SECOND(TG_JOINED(TG_SHIFT_, flag) yes, no, ~)
#define TG_IS_PART(name, part) TG_JOINED(TG_JOINED(TG_PART_IS_, name), _##part)

#if !defined(TG_COMPONENT)
#define TG_DEFINES(part) 1
#define TG_DEFINES_FOR_HOST(part) 1
#define TG_COMPILED(part, ...)
#else
#if TG_COMPONENT == 1
#undef TG_PART
#define TG_PART none
#elif !defined(TG_PART)
#error "TG_COMPONENT is 2 for the sources of tapegraph::kernels alone; programs that link it define it as 1"
#endif

#define TG_DEFINES(part) TG_IF(TG_IS_PART(TG_PART, part), 1, 0)
#if defined(TG_CUDA)
#define TG_DEFINES_FOR_HOST(part) 1
#define TG_NO_TEMPLATE(...)
#define TG_EXTERN_TEMPLATE(...) extern template __VA_ARGS__;
#define TG_COMPILED(part, ...) TG_IF(TG_PART_OF_PROGRAM_##part, TG_NO_TEMPLATE, TG_EXTERN_TEMPLATE)(__VA_ARGS__)
#else
#define TG_DEFINES_FOR_HOST(part) TG_DEFINES(part)
#define TG_COMPILED(part, ...) TG_IF(TG_IS_PART(TG_PART, part), template, extern template) __VA_ARGS__;
#endif
#endif
