#pragma once

#include <tapegraph/ops/records/couple_pairs_kernel.hpp>
#include <tapegraph/ops/records/operations.hpp>
#include <tapegraph/ops/records/walk_trees_kernel.hpp>

/// The operations of ops/records/operations.hpp and their kernels, which no list has: programs without models of
/// ai.onnx.ml have neither.
