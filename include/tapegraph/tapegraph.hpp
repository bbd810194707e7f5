#pragma once

/// TapeGraph: automatic differentiation and neural networks. One model, two modes.

// From here on g++ prints the include path to what an error names. So functions that take options
// are included here, and first.
#include <tapegraph/core/shown_errors.hpp>
// clang-format off: each header precedes those that include it
#include <tapegraph/expr/expr.hpp>
#include <tapegraph/ir/node.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/ops/elementwise/standard_functions.hpp>
#include <tapegraph/ops/operation_list.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/model/scope.hpp>
#include <tapegraph/nn/layers/dense.hpp>
#include <tapegraph/session/operations.hpp>
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/train/model_base.hpp>
#include <tapegraph/train/trainable_model.hpp>
// clang-format on

#include <tapegraph/compile/compile.hpp>
#include <tapegraph/compile/function.hpp>
#include <tapegraph/compile/structured_function.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/derivatives.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/nn/layers/convolution.hpp>
#include <tapegraph/nn/layers/dense.hpp>
#include <tapegraph/nn/layers/dropout.hpp>
#include <tapegraph/nn/layers/layer.hpp>
#include <tapegraph/nn/layers/normalization.hpp>
#include <tapegraph/nn/losses/basic.hpp>
#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/session/session.hpp>
#include <tapegraph/tensor.hpp>
#include <tapegraph/train/compiled_training.hpp>

#ifdef TG_CUDA
#include <tapegraph/cuda/backend.cuh>
#endif
