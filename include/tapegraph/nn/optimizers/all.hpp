#pragma once

#include <tapegraph/nn/optimizers/adadelta.hpp>
#include <tapegraph/nn/optimizers/adagrad.hpp>
#include <tapegraph/nn/optimizers/adamax.hpp>
#include <tapegraph/nn/optimizers/adamw.hpp>
#include <tapegraph/nn/optimizers/amsgrad.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/nn/optimizers/ftrl.hpp>
#include <tapegraph/nn/optimizers/gates.hpp>
#include <tapegraph/nn/optimizers/gradient_terms.hpp>
#include <tapegraph/nn/optimizers/lamb.hpp>
#include <tapegraph/nn/optimizers/lion.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>
#include <tapegraph/nn/optimizers/muon.hpp>
#include <tapegraph/nn/optimizers/nadam.hpp>
#include <tapegraph/nn/optimizers/proximal.hpp>
#include <tapegraph/nn/optimizers/rmsprop.hpp>
#include <tapegraph/nn/optimizers/schedules.hpp>
#include <tapegraph/nn/optimizers/weight_average.hpp>
#include <tapegraph/nn/optimizers/weights_after.hpp>

/// Includes every optimizer, schedule and part of chains (docs/optimizers.md). The umbrella header
/// only includes nn/optimizers/basic.hpp: sgd, momentum, nesterov_momentum, adam.
