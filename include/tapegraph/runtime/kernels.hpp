#pragma once

/// Every operation's kernel.

#include <tapegraph/runtime/contract.hpp>
#include <tapegraph/runtime/contract_storage.hpp>
#include <tapegraph/runtime/convolution_pool.hpp>
#include <tapegraph/runtime/effect.hpp>
#include <tapegraph/runtime/kernel.hpp>
#include <tapegraph/runtime/layout.hpp>
#include <tapegraph/runtime/pool.hpp>
#include <tapegraph/runtime/random.hpp>
#include <tapegraph/runtime/widened.hpp>
