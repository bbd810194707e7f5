#pragma once

#include "data.hpp"
#include "options.hpp"

#include <tapegraph/train/history.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace batch_study {

/// The measurements of one run.
struct run_result {
    std::string device;             ///< "cpu", "cuda:0"
    std::int64_t batches = 0;       ///< per whole epoch
    std::int64_t records = 0;       ///< per whole epoch
    std::int64_t library_bytes = 0; ///< peak of arena and tensor pool; on a GPU of all buffers there
    std::int64_t process_bytes = 0; ///< high-water mark of the process
    std::vector<tapegraph::epoch_result> epochs;
};

/// Each combination of model and mode has a source of its own, so that they compile in parallel.
run_result run_cnn_graph(const options& o, std::int64_t batch_size, const training_sets& sets);
run_result run_cnn_eager(const options& o, std::int64_t batch_size, const training_sets& sets);
run_result run_rnn_graph(const options& o, std::int64_t batch_size, const training_sets& sets);
run_result run_rnn_eager(const options& o, std::int64_t batch_size, const training_sets& sets);
/// The layer tables and the numbers of parameters.
std::string cnn_layers();
std::string rnn_layers();

} // namespace batch_study
