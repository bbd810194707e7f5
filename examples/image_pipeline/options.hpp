#pragma once

#include <cstdint>
#include <string>

namespace image_pipeline {

/// The options of the command line.
struct options {
    std::string data;          ///< folder of class folders; empty: generated pictures
    std::int64_t images = 300; ///< number of generated pictures
    std::string decoder = "stb";
    std::int64_t epochs = 3, batch_size = 16, steps = 0;
    int threads = -1; ///< for decoding; -1: all cores but one
    std::int64_t prefetch = 2;
    double learning_rate = 0.003;
    std::uint64_t seed = 1;
};

/// Reads the command line. Returns false after printing --help. Throws examples::usage_error.
bool parse(int argc, char** argv, options& into);

} // namespace image_pipeline
