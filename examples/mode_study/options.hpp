#pragma once

#include "../study/options.hpp"
#include "cells.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mode_study {

/// The options of the command line.
struct options : study::common_options {
    std::vector<std::string> models;   ///< none: all
    std::vector<std::int64_t> lengths; ///< none: those of each model
    std::vector<std::string> trainings{"train_on_batch", "fit"};
    std::vector<std::string> sources{"arrays", "dataset"};
    std::int64_t batch_size = 32;
    std::int64_t iterations = 20;
    std::int64_t warm_up = 3;
    double seconds = 60; ///< the time budget of a cell

    /// Row by row; cells that are compared are adjacent, so that a slowdown of the machine affects
    /// both.
    std::vector<cell> cells() const;
};

/// Reads the command line. Returns false after printing --help. Throws study::usage_error.
bool parse(int argc, char** argv, options& into);

} // namespace mode_study
