#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace tapegraph {

/// What one step of training measured.
struct step_result {
    double loss = 0;
    double accuracy = 0; ///< 0 where the loss has no notion of it
};

/// What one epoch of `fit` measured. Seconds are wall clock.
struct epoch_result {
    double loss = 0, accuracy = 0;
    double validation_loss = 0, validation_accuracy = 0;
    double seconds = 0;           ///< training, without validation
    double ingestion_seconds = 0; ///< of these: waiting for the data set
    std::int64_t steps = 0, records = 0;
};

/// What `fit` returns.
struct history {
    std::vector<epoch_result> epochs; ///< in the order in which they were trained
};

} // namespace tapegraph
