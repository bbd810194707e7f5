#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/nn/losses/basic.hpp>
#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/train/traces.hpp>

/// Losses and updates of graphs that are made at run time, which the component (core/component.hpp)
/// holds: those of the umbrella header, for models with one output. Others are compiled where they
/// are used.

namespace tapegraph {

#define TG_COMPILED_LOSS(loss)                                                                                         \
    TG_COMPILED(nn, void ir::objective_at_run_time<loss, graph_node>(ir::model_trace&, const graph_node&))
#define TG_COMPILED_UPDATES(optimizer) TG_COMPILED(nn, void ir::updates_at_run_time<optimizer>(ir::model_trace&))

TG_COMPILED_LOSS(sigmoid_cross_entropy)
TG_COMPILED_LOSS(binary_cross_entropy)
TG_COMPILED_LOSS(softmax_cross_entropy)
TG_COMPILED_LOSS(sparse_softmax_cross_entropy)
TG_COMPILED_LOSS(mean_squared_error)
TG_COMPILED_UPDATES(sgd)
TG_COMPILED_UPDATES(momentum)
TG_COMPILED_UPDATES(nesterov_momentum)
TG_COMPILED_UPDATES(adam)

#undef TG_COMPILED_LOSS
#undef TG_COMPILED_UPDATES

} // namespace tapegraph
