#pragma once

/// Lazy sets of typed elements: sources, what becomes of them, and how they are walked through. docs/data.md.

#include <tapegraph/data/dataset.hpp>

#include <tapegraph/data/pipeline/files.hpp>
#include <tapegraph/data/pipeline/records.hpp>
#include <tapegraph/data/pipeline/set.hpp>
