#pragma once

/// Every operation's kernel.

#include <tapegraph/ops/attention/kernel.hpp>
#include <tapegraph/ops/convolution/kernel.hpp>
#include <tapegraph/ops/cumulative/kernel.hpp>
#include <tapegraph/ops/effect/kernel.hpp>
#include <tapegraph/ops/gather/kernel.hpp>
#include <tapegraph/ops/gather/rows_kernel.hpp>
#include <tapegraph/ops/movement/kernel.hpp>
#include <tapegraph/ops/ordering/kernel.hpp>
#include <tapegraph/ops/pooling/kernel.hpp>
#include <tapegraph/ops/pooling/kernel_of_convolution.hpp>
#include <tapegraph/ops/pooling/lp_pooling_kernel.hpp>
#include <tapegraph/ops/product/kernel.hpp>
#include <tapegraph/ops/product/kernel_16bit.hpp>
#include <tapegraph/ops/random/kernel.hpp>
#include <tapegraph/ops/reduction/kernel.hpp>
#include <tapegraph/ops/reduction/length_kernel.hpp>
#include <tapegraph/ops/reduction/normalization_kernel.hpp>
#include <tapegraph/ops/reduction/softmax_cross_entropy_kernel.hpp>
#include <tapegraph/ops/reduction/softmax_kernel.hpp>
#include <tapegraph/ops/shards/kernel.hpp>
#include <tapegraph/runtime/kernel.hpp>
#include <tapegraph/runtime/widened.hpp>
