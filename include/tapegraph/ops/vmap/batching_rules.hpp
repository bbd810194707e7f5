#pragma once

/// Includes every operation's batching rule.

#include <tapegraph/ops/attention/batching.hpp>
#include <tapegraph/ops/convolution/batching.hpp>
#include <tapegraph/ops/gather/batching.hpp>
#include <tapegraph/ops/movement/batching.hpp>
#include <tapegraph/ops/product/batching.hpp>
#include <tapegraph/ops/reduction/batching.hpp>
#include <tapegraph/ops/shards/batching.hpp>
#include <tapegraph/ops/vmap/batching.hpp>
