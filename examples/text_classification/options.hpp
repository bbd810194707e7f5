#pragma once

#include <cstdint>
#include <string>

namespace text_classification {

/// The options of the command line.
struct options {
    std::string data; ///< CSV file; empty: generated sentences
    std::string text = "text", label = "airline_sentiment";
    std::int64_t sentences = 3000; ///< how many to generate
    std::string mode = "graph";
    std::int64_t epochs = 0; ///< 0: as many as the data needs
    std::int64_t batch_size = 32;
    std::int64_t steps = 0; ///< per epoch; 0: all
    double learning_rate = 0.001;
    std::uint64_t seed = 1;
    std::int64_t max_length = 40;
    std::int64_t max_tokens = 0; ///< 0: as many as the model has rows
    bool refuse_long = false;
    std::string vocabulary; ///< the file to write it to
    int threads = 0;        ///< 0: all
};

/// A table is soon memorised; the order of words takes longer to learn.
inline constexpr std::int64_t epochs_of_tables = 2, epochs_of_grammar = 15;

/// Reads the command line. Returns false after printing --help. Throws examples::usage_error.
bool parse(int argc, char** argv, options& into);

} // namespace text_classification
