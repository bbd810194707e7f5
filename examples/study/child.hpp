#pragma once

#include "options.hpp"
#include "results.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace study {

/// A run that ended with an error which it has told on stderr itself.
struct child_failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Runs this program again for one run ("graph:16") on a device and returns the members of its row. Throws child_failed where
/// the child reported an error, std::runtime_error where it could not be started or was killed; a null row where this program
/// was interrupted meanwhile.
json run_in_child(int argc, char** argv, const std::string& word, const std::string& label, tapegraph::device device);

/// In the child: runs `measure`, which returns the members of a finished row, and hands them to the parent. What does not fit
/// in memory is a result, too.
void serve(const common_options& o, const std::function<json()>& measure);

} // namespace study
