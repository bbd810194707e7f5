#pragma once

#include "child.hpp"

#include <functional>
#include <string>
#include <vector>

namespace study {

/// One run of a study.
struct planned_run {
    json key;          ///< which one it is, as its row says: {"mode": "graph", "batch_size": 16}
    std::string word;  ///< the same for the child's command line: "graph:16"
    std::string label; ///< the same for people
    double weight = 1; ///< about how long it takes, beside the others
};

/// Runs, each in a process of its own, what `into` does not hold yet, and shows every row. A run that did not fit is tried again
/// where there is now as much memory as it asked for. Between runs a line on stderr tells how many and about how much time is
/// left. Returns false where the user interrupted it.
bool conduct(const std::string& study, const common_options& o, int argc, char** argv,
             const std::vector<planned_run>& runs, results& into, const std::function<void(const json& row)>& show);

/// examples::run_program for a study: `run` returns the exit status.
int run_study(const std::string& study, const std::function<int()>& run);

/// Says on stdout what device computes, where it is a GPU; `asked` or, where there is none, the CPU.
tapegraph::device chosen_device(tapegraph::device asked);

/// The exit status of a study that was interrupted, as shells have it for SIGINT.
inline constexpr int interrupted_status = 130;

} // namespace study
