#pragma once

#include "images.hpp"
#include "options.hpp"

#include <tapegraph/nn/history.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// One run of the study, and how its result gets from the child process to the parent.

namespace batch_study {

struct run_result {
    run_key key;
    std::string device;             ///< "cpu", "cuda:0"
    std::int64_t batches = 0;       ///< batches of a whole epoch
    std::int64_t images = 0;        ///< training images of a whole epoch
    std::int64_t library_bytes = 0; ///< peak of arena and tensor pool; on a GPU of all buffers there
    std::int64_t process_bytes = 0; ///< high-water mark of the process
    std::vector<tapegraph::epoch_result> epochs;

    std::int64_t steps() const;
    double seconds() const;
    /// Milliseconds per step, waiting for data left out.
    double training_ms() const;
    /// Milliseconds per step that training waited for data.
    double ingestion_ms() const;
    double images_per_second() const;
    /// Seconds for the whole training set, also where epochs were stopped early.
    double seconds_per_epoch() const;
};

std::string to_text(const run_result& r);
/// Throws std::runtime_error for a text that to_text did not write.
run_result from_text(const std::string& text);

/// The two modes are compiled in two sources, side by side.
run_result run_graph(const options& o, std::int64_t batch_size, const image_sets& images);
run_result run_eager(const options& o, std::int64_t batch_size, const image_sets& images);
/// The layer table and the numbers of parameters.
std::string layer_table();

} // namespace batch_study
