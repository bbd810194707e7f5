#pragma once

#include "options.hpp"
#include "results.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace study {

/// A run ended with an error that it has already printed on stderr.
struct child_failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Runs this program again for one run ("graph:16") on a device and returns the members of its row,
/// or a null row if this program was interrupted meanwhile. Throws child_failed if the child
/// reported an error, std::runtime_error if it could not be started or was killed.
json run_in_child(int argc, char** argv, const std::string& word, const std::string& label, tapegraph::device device);

/// In the child: runs `measure`, which returns the members of a finished row, and sends them to the
/// parent. Running out of memory is a result, too.
void serve(const common_options& o, const std::function<json()>& measure);

} // namespace study
