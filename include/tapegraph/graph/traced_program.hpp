#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/traced_program_declaration.hpp>

/// Graphs that are made when the program runs: the builders and passes of graph/compile.hpp without a compiler. What they fuse is
/// interpreted, instruction by instruction, all else is the kernels of the other modes: the same calls in the same order, and the same
/// bits. Who links the component reads neither the passes nor the list of kernels.

#if TG_DEFINES(registry)
#include <tapegraph/graph/library_kernels.hpp>
#endif
#if TG_DEFINES_FOR_HOST(graph)
#include <tapegraph/graph/traced_lowering.hpp>
#endif
