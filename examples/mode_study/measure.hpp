#pragma once

#include "cells.hpp"
#include "options.hpp"
#include "series.hpp"

#include <cstdint>
#include <functional>

namespace mode_study {

/// What one cell measured.
struct measurement {
    double seconds = 0;          ///< of an iteration, the mean
    std::int64_t iterations = 0; ///< that were timed
    std::int64_t warm_up = 0;    ///< before those
    double loss = 0;             ///< of the last
    std::int64_t library_bytes = 0, process_bytes = 0;
};

/// Times `train(n)`, which trains n iterations and returns their seconds, within the budget of a cell: first one, from which it
/// follows how many there is time for. Where that one uses up the budget it is all that is measured.
measurement measure(const std::function<double(std::int64_t)>& train, const options& o);

/// Models and modes are compiled in several sources, side by side.
measurement run_convolution_graph(const cell& c, const options& o, const series& data);
measurement run_convolution_eager(const cell& c, const options& o, const series& data);
measurement run_recurrent_graph(const cell& c, const options& o, const series& data);
measurement run_recurrent_eager(const cell& c, const options& o, const series& data);

} // namespace mode_study
