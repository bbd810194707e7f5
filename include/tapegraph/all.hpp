#pragma once

/// Everything: the umbrella header, and what programs otherwise include by name. What needs a library of somebody else comes in
/// where its header is found; who uses it links that library (in CMake tapegraph::json, tapegraph::zlib).
///
/// It takes longer to compile than <tapegraph/tapegraph.hpp>, most of it for the JSON library: define TG_NO_THIRD_PARTY to
/// leave out what needs libraries.

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/tapegraph.hpp>
#include <tapegraph/version.hpp>

#include <tapegraph/nn/all_optimizers.hpp>
#include <tapegraph/nn/callbacks.hpp>
#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/features.hpp>
#include <tapegraph/nn/instance.hpp>
#include <tapegraph/nn/layers/activation.hpp>
#include <tapegraph/nn/layers/affine_augmentation.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/augmentation.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/noise.hpp>
#include <tapegraph/nn/layers/positions.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/resizing.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/nn/layers/weight_normalization.hpp>
#include <tapegraph/nn/losses_all.hpp>
#include <tapegraph/nn/metrics_all.hpp>
#include <tapegraph/nn/mixed_precision.hpp>
#include <tapegraph/nn/regularizer.hpp>
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/nn/sequential.hpp>
#include <tapegraph/nn/training_step.hpp>

#include <tapegraph/graph/dot.hpp>
#include <tapegraph/graph/explain.hpp>

#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/readers/cifar10.hpp>
#include <tapegraph/data/readers/image.hpp>
#include <tapegraph/data/readers/table.hpp>
#include <tapegraph/data/readers/text_table.hpp>
#include <tapegraph/data/synthetic.hpp>
#include <tapegraph/data/text/grammar.hpp>
#include <tapegraph/data/text/labelled_texts.hpp>
#include <tapegraph/data/text/vectorizer.hpp>
#include <tapegraph/data/text/vocabulary.hpp>
#include <tapegraph/data/text/windows.hpp>

#include <tapegraph/io/csv.hpp>
#include <tapegraph/io/csv_reader.hpp>
#include <tapegraph/io/host_array.hpp>
#include <tapegraph/io/progress.hpp>
#include <tapegraph/io/svg_chart.hpp>

#if !defined(TG_NO_THIRD_PARTY)
#if __has_include(<nlohmann/json.hpp>)
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/estimator.hpp>
#include <tapegraph/nn/callbacks/saving.hpp>
#endif
#if __has_include(<zlib.h>)
#include <tapegraph/data/readers/idx.hpp>
#endif
#if __has_include(<stb/stb_image.h>) || __has_include(<stb_image.h>)
#include <tapegraph/data/readers/image_folder.hpp>
#endif
#endif
