#pragma once

/// The version of the library. CMake reads it here.

#define TAPEGRAPH_VERSION_MAJOR 0
#define TAPEGRAPH_VERSION_MINOR 1
#define TAPEGRAPH_VERSION_PATCH 0
