#pragma once

#include "../study/options.hpp"
#include "cells.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mode_study {

/// What the command line says.
struct options : study::common_options {
    std::vector<std::string> models;   ///< none: all
    std::vector<std::int64_t> lengths; ///< none: those of each model
    std::vector<std::string> trainings{"train_on_batch", "fit"};
    std::vector<std::string> sources{"arrays", "dataset"};
    std::int64_t batch_size = 32;
    std::int64_t iterations = 20;
    std::int64_t warm_up = 3;
    double seconds = 60; ///< the time budget of a cell

    /// Row by row; what is compared stands next to each other, so that a machine that slows down does so for both.
    std::vector<cell> cells() const;
};

/// Reads the command line. Returns false when --help was asked for and printed. Throws study::usage_error.
bool parse(int argc, char** argv, options& into);

} // namespace mode_study
