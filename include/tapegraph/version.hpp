#pragma once

/// The version of the library, which CMake reads from here.

#ifdef TAPEGRAPH_SINGLE_HEADER
#error "tapegraph: the single header has everything; include no other header of the library beside it"
#endif

#define TAPEGRAPH_VERSION_MAJOR 0
#define TAPEGRAPH_VERSION_MINOR 1
#define TAPEGRAPH_VERSION_PATCH 0
