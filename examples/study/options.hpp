#pragma once

#include "../common/program.hpp"

#include <tapegraph/core/device.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace study {

/// The options that all studies share.
struct common_options {
    std::vector<std::string> modes{"graph", "eager"};
    std::uint64_t seed = 1;
    int threads = 0;                ///< 0: all
    tapegraph::device device{};     ///< of the models
    std::uint64_t memory_limit = 0; ///< bytes for the buffers of a run; 0: what the machine has free when it begins
    std::string out = "results";
    bool fresh = false; ///< forget the results in the --out folder

    std::string device_name = "cpu"; ///< as typed
    std::string only;                ///< the word of one run: be the child process of that run
    int report_to = -1;              ///< of a child: the file descriptor that takes the result
};

using examples::usage_error;

/// Adds --modes, --seed, --device, --threads, --memory-limit, --out, --fresh and the options of
/// child processes.
void add_common_options(CLI::App& app, common_options& into);

/// Reads the command line. Returns false after printing --help. Throws usage_error.
bool parse(CLI::App& app, int argc, char** argv, common_options& into);

/// Throws usage_error where a list contains a value twice.
template <class T>
void refuse_repeats(const std::vector<T>& values, const std::string& name) {
    for (std::size_t i = 0; i < values.size(); ++i)
        for (std::size_t k = i + 1; k < values.size(); ++k)
            if (values[i] == values[k]) throw usage_error(name + ": the same value twice");
}

} // namespace study
