#pragma once

#include <tapegraph/core/device.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace batch_study {

/// One line of the study: a mode ("graph" or "eager") and a batch size.
struct run_key {
    std::string mode;
    std::int64_t batch_size = 0;
};

/// What the command line says.
struct options {
    std::string data; ///< image folder; empty: a generated set
    std::vector<std::string> modes{"graph", "eager"};
    std::vector<std::int64_t> batch_sizes{16, 128};
    std::int64_t epochs = 0; ///< 0 and no steps: what the time budget allows
    std::int64_t steps = 0;  ///< per epoch; 0: the whole training set
    std::uint64_t seed = 1;
    int threads = 0;            ///< 0: all
    tapegraph::device device{}; ///< where the models compute
    std::string out = "results";
    double learning_rate = 0.0003;
    double momentum = 0.9;
    bool check_finite = false;
    std::string only;   ///< "graph:16": be the child process of this run
    int report_to = -1; ///< of a child: the file descriptor that takes the result

    bool budgeted() const { return epochs == 0 && steps == 0; }
    /// Every run, the modes of one batch size next to each other, so that a machine that slows down does so for both.
    std::vector<run_key> runs() const;
};

inline constexpr double budget_seconds = 180;

/// A command line that makes no sense.
struct usage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Reads the command line. Returns false when --help was asked for and printed. Throws usage_error.
bool parse(int argc, char** argv, options& into);

} // namespace batch_study
