#pragma once

#include "child.hpp"

#include <functional>
#include <string>
#include <vector>

namespace study {

/// One run of a study.
struct planned_run {
    json key;          ///< identifies it, as in its row: {"mode": "graph", "batch_size": 16}
    std::string word;  ///< the same for the child's command line: "graph:16"
    std::string label; ///< the same for people
    double weight = 1; ///< approximate duration, relative to the others
};

/// Runs each run that `into` does not hold yet in a process of its own, and prints every row. A run
/// that did not fit is tried again if there is now as much memory as it asked for. Between runs a
/// line on stderr tells how many runs and about how much time are left. Returns false if the user
/// interrupted it.
bool conduct(const std::string& study, const common_options& o, int argc, char** argv,
             const std::vector<planned_run>& runs, results& into, const std::function<void(const json& row)>& show);

/// examples::run_program for a study: `run` returns the exit status.
int run_study(const std::string& study, const std::function<int()>& run);

/// Prints which device computes if it is a GPU. Returns `asked` or, without such a GPU, the CPU.
tapegraph::device chosen_device(tapegraph::device requested_device);

/// The exit status of a study that was interrupted, the one shells use for SIGINT.
inline constexpr int interrupted_status = 130;

} // namespace study
