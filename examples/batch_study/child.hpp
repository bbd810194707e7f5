#pragma once

#include "run.hpp"

#include <stdexcept>

namespace batch_study {

/// A run that ended with an error which it has told on stderr itself.
struct child_failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Runs this program again for one (mode, batch size) on a device and returns what it measured. Throws child_failed where the child
/// reported an error, std::runtime_error where it could not be started or was killed.
run_result run_in_child(int argc, char** argv, const run_key& key, tapegraph::device device);

/// In the child: hands the result to the parent.
void report_result(int descriptor, const run_result& result);

} // namespace batch_study
