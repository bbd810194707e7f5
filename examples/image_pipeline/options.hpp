#pragma once

#include <cstdint>
#include <string>

namespace image_pipeline {

/// What the command line says.
struct options {
    std::string data;          ///< folder of class folders; empty: pictures of its own
    std::int64_t images = 300; ///< of its own
    std::string decoder = "stb";
    std::int64_t epochs = 3, batch_size = 16, steps = 0;
    int threads = -1; ///< that decode; -1: all cores but one
    std::int64_t prefetch = 2;
    double learning_rate = 0.003;
    std::uint64_t seed = 1;
};

/// Reads the command line. Returns false when --help was asked for and printed. Throws examples::usage_error.
bool parse(int argc, char** argv, options& into);

} // namespace image_pipeline
