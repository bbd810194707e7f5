#pragma once

#include <cstdint>
#include <string>

namespace character_model {

/// The options of the command line.
struct options {
    std::string data; ///< text file; empty: generated sentences
    std::string mode = "graph";
    std::int64_t epochs = 4;
    std::int64_t batch_size = 32;
    std::int64_t steps = 0; ///< per epoch; 0: all
    std::int64_t length = 64;
    double learning_rate = 0.002;
    std::uint64_t seed = 1;
    std::int64_t sample = 400; ///< characters to write
    double temperature = 0.7;
    std::string prompt = "\n";
    std::string picture; ///< SVG of what was written; empty: none
    int threads = 0;     ///< 0: all
};

/// Reads the command line. Returns false after printing --help. Throws examples::usage_error.
bool parse(int argc, char** argv, options& into);

} // namespace character_model
