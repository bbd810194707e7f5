#pragma once

/// The version of the library, which CMake reads from here.

#ifdef TAPEGRAPH_SINGLE_HEADER
#error "tapegraph: the single header has everything; include no other header of the library beside it"
#endif

#define TAPEGRAPH_VERSION_MAJOR 1
#define TAPEGRAPH_VERSION_MINOR 0
#define TAPEGRAPH_VERSION_PATCH 0
/// One number that grows with versions, for `#if TAPEGRAPH_VERSION >= 10200` (1.2.0).
#define TAPEGRAPH_VERSION (TAPEGRAPH_VERSION_MAJOR * 10000 + TAPEGRAPH_VERSION_MINOR * 100 + TAPEGRAPH_VERSION_PATCH)
