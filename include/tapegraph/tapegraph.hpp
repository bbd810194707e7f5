#pragma once

/// TapeGraph: automatic differentiation and neural networks. One model, two modes.

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/nn/scope.hpp>

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/derivatives.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/nn/compile.hpp>
#include <tapegraph/nn/compiled_training.hpp>
#include <tapegraph/nn/function.hpp>
#include <tapegraph/nn/layers/convolution.hpp>
#include <tapegraph/nn/layers/dense.hpp>
#include <tapegraph/nn/layers/dropout.hpp>
#include <tapegraph/nn/layers/layer.hpp>
#include <tapegraph/nn/layers/normalization.hpp>
#include <tapegraph/nn/losses.hpp>
#include <tapegraph/nn/optimizers.hpp>
#include <tapegraph/nn/session.hpp>
#include <tapegraph/tensor.hpp>

#ifdef TG_CUDA
#include <tapegraph/cuda/backend.cuh>
#endif
