#pragma once

/// Callbacks of fit that write no models. Those that do need <tapegraph/io/weights.hpp>, and are in
/// io/callbacks/saving.hpp.

#include <tapegraph/train/callbacks/csv_logger.hpp>
#include <tapegraph/train/callbacks/early_stopping.hpp>
#include <tapegraph/train/callbacks/learning_rate_scheduler.hpp>
#include <tapegraph/train/callbacks/limits.hpp>
#include <tapegraph/train/callbacks/on_event.hpp>
#include <tapegraph/train/callbacks/reduce_lr_on_plateau.hpp>
