#pragma once

#include "../study/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace batch_study {

/// One line of the study: a mode ("graph" or "eager") and a batch size.
struct run_key {
    std::string mode;
    std::int64_t batch_size = 0;

    std::string word() const { return mode + ":" + std::to_string(batch_size); }
};

/// The options of the command line.
struct options : study::common_options {
    std::string model = "cnn"; ///< or "rnn"
    std::string data;          ///< image folder or table of texts; empty: a generated set
    std::string text_column = "text", label_column = "airline_sentiment";
    std::vector<std::int64_t> batch_sizes{16, 128};
    std::int64_t epochs = 0; ///< 0 and no steps: as many as the time budget allows
    std::int64_t steps = 0;  ///< per epoch; 0: the whole training set
    double seconds = 180;    ///< the time budget of all runs together
    double learning_rate = 0;
    double momentum = 0.9;
    bool check_finite = false;

    bool budgeted() const { return epochs == 0 && steps == 0; }
    /// Every run. The modes of one batch size are adjacent, so that a slowdown of the machine
    /// affects both.
    std::vector<run_key> runs() const;
    /// Seconds of the budget for each run.
    double share() const { return seconds / static_cast<double>(runs().size()); }
};

/// Reads the command line. Returns false after printing --help. Throws study::usage_error.
bool parse(int argc, char** argv, options& into);

} // namespace batch_study
