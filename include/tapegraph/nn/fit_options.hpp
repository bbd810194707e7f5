#pragma once

#include <tapegraph/data/dataset.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace tapegraph {

/// Options of fit.
struct fit_options {
    std::int64_t epochs = 1;
    std::int64_t initial_epoch = 0; ///< the first of them, where a later call goes on
    std::int64_t batch_size = 32;
    int shards = 0; ///< of models compiled with tg::sharded: into how many a batch is cut; 0: as before
    std::optional<data::dataset>
        validation_data{};       ///< evaluated after every epoch, columns as those of the training set
    double validation_split = 0; ///< or this share of the training set: its last records, which are then not trained on
    std::int64_t validation_batch_size = 0; ///< 0: as batch_size
    std::int64_t validation_steps = 0;      ///< stop validating early; 0: all of it
    std::int64_t validation_freq = 1;       ///< validate after every so many epochs
    /// How much a record counts, by its class: one number per class of int labels. Of models whose loss takes weights.
    std::vector<double> class_weight{};
    std::int64_t steps_per_epoch = 0; ///< stop an epoch early; 0: the whole data set
    bool shuffle = true;              ///< in an order that depends on the model's seed and the epoch
    int verbose =
        1; ///< progress on stderr. 0: none; 1: a line that moves, in a log file now and then a line; 2: a line per epoch
    std::int64_t prefetch = 2; ///< batches assembled ahead
    /// Ctrl-C ends training behind the step that runs; a second one ends the process.
    bool stop_on_interrupt = false;
    /// Goes on exactly where this model's last fit stopped, or the one in the file that load(path, {.everything = true}) has read.
    /// From the beginning where there is none.
    bool resume = false;
};

} // namespace tapegraph
