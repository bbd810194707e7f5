#pragma once

/// All headers of models and training: the umbrella header, and those that programs otherwise
/// include by name. It needs no third-party library.

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/compile/features.hpp>
#include <tapegraph/compile/instance.hpp>
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/activation.hpp>
#include <tapegraph/nn/layers/activity_regularization.hpp>
#include <tapegraph/nn/layers/affine_augmentation.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/augmentation.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/masking.hpp>
#include <tapegraph/nn/layers/noise.hpp>
#include <tapegraph/nn/layers/positions.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/resizing.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/nn/layers/weight_normalization.hpp>
#include <tapegraph/nn/losses/all.hpp>
#include <tapegraph/nn/metrics/all.hpp>
#include <tapegraph/nn/mixed_precision.hpp>
#include <tapegraph/nn/optimizers/all.hpp>
#include <tapegraph/nn/regularizer.hpp>
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/nn/sequential.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <tapegraph/graph/dot.hpp>
#include <tapegraph/graph/explain.hpp>

#include <tapegraph/eager/searching.hpp>
#include <tapegraph/fast_convolution.hpp>
