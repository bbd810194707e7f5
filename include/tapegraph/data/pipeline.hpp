#pragma once

/// Includes lazy sets of typed elements: sources, transformations, and iteration. docs/data.md.

#include <tapegraph/data/dataset.hpp>

#include <tapegraph/data/pipeline/files.hpp>
#include <tapegraph/data/pipeline/records.hpp>
#include <tapegraph/data/pipeline/set.hpp>
