#pragma once

/// Every operation.

#include <tapegraph/ops/activation.hpp>
#include <tapegraph/ops/arithmetic.hpp>
#include <tapegraph/ops/cast.hpp>
#include <tapegraph/ops/comparison.hpp>
#include <tapegraph/ops/concat.hpp>
#include <tapegraph/ops/convolution.hpp>
#include <tapegraph/ops/convolution_transpose.hpp>
#include <tapegraph/ops/einsum.hpp>
#include <tapegraph/ops/effect.hpp>
#include <tapegraph/ops/exponential.hpp>
#include <tapegraph/ops/fill.hpp>
#include <tapegraph/ops/gated_activation.hpp>
#include <tapegraph/ops/gather.hpp>
#include <tapegraph/ops/hyperbolic.hpp>
#include <tapegraph/ops/layout.hpp>
#include <tapegraph/ops/matmul.hpp>
#include <tapegraph/ops/moments.hpp>
#include <tapegraph/ops/norm.hpp>
#include <tapegraph/ops/ordering.hpp>
#include <tapegraph/ops/pooling.hpp>
#include <tapegraph/ops/padding.hpp>
#include <tapegraph/ops/power.hpp>
#include <tapegraph/ops/random.hpp>
#include <tapegraph/ops/reduction.hpp>
#include <tapegraph/ops/rounding.hpp>
#include <tapegraph/ops/scan.hpp>
#include <tapegraph/ops/selection.hpp>
#include <tapegraph/ops/slice.hpp>
#include <tapegraph/ops/softmax.hpp>
#include <tapegraph/ops/tensordot.hpp>
#include <tapegraph/ops/trigonometric.hpp>
#include <tapegraph/ops/view.hpp>
#include <tapegraph/ops/vmap.hpp>
