#pragma once

/// TapeGraph: automatic differentiation and neural networks. One model, two modes.

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/nn/scope.hpp>

#include <tapegraph/core/device.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/eager/derivatives.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/eager/random.hpp>
#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/expr/derivatives.hpp>
#include <tapegraph/expr/differentiate.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/derivatives.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/nn/compile.hpp>
#include <tapegraph/nn/function.hpp>
#include <tapegraph/nn/layers/convolution.hpp>
#include <tapegraph/nn/layers/dense.hpp>
#include <tapegraph/nn/layers/dropout.hpp>
#include <tapegraph/nn/layers/normalization.hpp>
#include <tapegraph/nn/losses.hpp>
#include <tapegraph/nn/optimizers.hpp>
#include <tapegraph/nn/session.hpp>
#include <tapegraph/ops/ops.hpp>
#include <tapegraph/runtime/placement_log.hpp>

#ifdef TG_CUDA
#include <tapegraph/cuda/backend.cuh>
#endif
