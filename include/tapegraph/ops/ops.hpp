#pragma once

/// Every operation.

#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/convolution/convolution_transpose.hpp>
#include <tapegraph/ops/cumulative/cumulative.hpp>
#include <tapegraph/ops/effect/effect.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/exponential.hpp>
#include <tapegraph/ops/elementwise/gated_activation.hpp>
#include <tapegraph/ops/elementwise/hyperbolic.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/rounding.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/pooling/lp_pooling.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>
#include <tapegraph/ops/product/einsum.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/product/tensordot.hpp>
#include <tapegraph/ops/random/random.hpp>
#include <tapegraph/ops/reduction/moments.hpp>
#include <tapegraph/ops/reduction/norm.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/ops/reduction/softmax.hpp>
#include <tapegraph/ops/vmap/vmap.hpp>
