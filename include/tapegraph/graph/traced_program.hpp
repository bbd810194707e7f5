#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/traced_program_declaration.hpp>

/// Graphs that are made at run time: the builders and passes of graph/compile.hpp without a
/// compiler. Fused kernels are interpreted, instruction by instruction; all others are the kernels
/// of the other modes, with the same calls in the same order and the same bits. Programs that link
/// the component include neither the passes nor the list of kernels.

#if TG_DEFINES(registry)
#include <tapegraph/graph/library_kernels.hpp>
#endif
#if TG_DEFINES_FOR_HOST(graph)
#include <tapegraph/graph/traced_lowering.hpp>
#endif
