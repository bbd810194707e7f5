#pragma once

/// Callbacks of fit that write no models. Those that do need <tapegraph/io/weights.hpp>, and are in
/// nn/callbacks/saving.hpp.

#include <tapegraph/nn/callbacks/csv_logger.hpp>
#include <tapegraph/nn/callbacks/early_stopping.hpp>
#include <tapegraph/nn/callbacks/learning_rate_scheduler.hpp>
#include <tapegraph/nn/callbacks/limits.hpp>
#include <tapegraph/nn/callbacks/on_event.hpp>
#include <tapegraph/nn/callbacks/reduce_lr_on_plateau.hpp>
