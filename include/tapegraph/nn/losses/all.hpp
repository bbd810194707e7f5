#pragma once

/// Includes all losses. nn/losses/basic.hpp has the five of the umbrella header.

#include <tapegraph/nn/losses/cross_entropy.hpp>
#include <tapegraph/nn/losses/ctc.hpp>
#include <tapegraph/nn/losses/focal.hpp>
#include <tapegraph/nn/losses/hinge.hpp>
#include <tapegraph/nn/losses/overlap.hpp>
#include <tapegraph/nn/losses/regression.hpp>
#include <tapegraph/nn/losses/triplet.hpp>
