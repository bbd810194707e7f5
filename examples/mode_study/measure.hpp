#pragma once

#include "cells.hpp"
#include "options.hpp"
#include "series.hpp"

#include <cstdint>
#include <functional>

namespace mode_study {

/// The measurements of one cell.
struct measurement {
    double seconds = 0;          ///< per iteration, the mean
    std::int64_t iterations = 0; ///< timed iterations
    std::int64_t warm_up = 0;    ///< iterations before those
    double loss = 0;             ///< of the last iteration
    std::int64_t library_bytes = 0, process_bytes = 0;
};

/// Times `train(n)`, which trains n iterations and returns their seconds, within the budget of a
/// cell. A first iteration shows how many more there is time for. If it uses up the budget, it is
/// the only measurement.
measurement measure(const std::function<double(std::int64_t)>& train, const options& o);

/// The combinations of model and mode have several sources, so that they compile in parallel.
measurement run_convolution_graph(const cell& c, const options& o, const series& data);
measurement run_convolution_eager(const cell& c, const options& o, const series& data);
measurement run_recurrent_graph(const cell& c, const options& o, const series& data);
measurement run_recurrent_eager(const cell& c, const options& o, const series& data);

} // namespace mode_study
