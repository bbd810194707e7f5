#pragma once

#include <tapegraph/data/dataset.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace tapegraph {

/// Options of fit.
struct fit_options {
    std::int64_t epochs = 1;
    std::int64_t initial_epoch = 0; ///< number of the first epoch, when a later call continues
    std::int64_t batch_size = 32;
    int shards = 0; ///< for models compiled with tg::sharded: number of shards per batch; 0: unchanged
    std::optional<data::dataset>
        validation_data{};       ///< evaluated after every epoch; its columns are those of the training set
    double validation_split = 0; ///< or this share of the training set: its last records, which are not trained on
    std::int64_t validation_batch_size = 0; ///< 0: like batch_size
    std::int64_t validation_steps = 0;      ///< stop validation early; 0: the whole set
    std::int64_t validation_freq = 1;       ///< epochs from one validation to the next
    /// The weight of a record by its class: one number per class of integer labels. For models
    /// whose loss takes weights.
    std::vector<double> class_weight{};
    std::int64_t steps_per_epoch = 0; ///< stop an epoch early; 0: the whole data set
    bool shuffle = true;              ///< in an order that depends on the model's seed and the epoch
    int verbose =
        1; ///< progress on stderr. 0: none; 1: a progress line, in a log file an occasional line; 2: a line per epoch
    std::int64_t prefetch = 2; ///< batches assembled ahead
    /// Ctrl-C ends training after the current step; a second one ends the process.
    bool stop_on_interrupt = false;
    /// Continues exactly where this model's last fit stopped, or the one in the file read by
    /// load(path, {.everything = true}); starts from the beginning where there is none.
    bool resume = false;
};

} // namespace tapegraph
