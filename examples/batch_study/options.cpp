#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <limits>

namespace batch_study {

std::vector<run_key> options::runs() const {
    std::vector<run_key> result;
    for (const std::int64_t size : batch_sizes)
        for (const std::string& mode : modes) result.push_back({mode, size});
    return result;
}

namespace {

template <class T>
void refuse_repeats(const std::vector<T>& values, const std::string& name) {
    for (std::size_t i = 0; i < values.size(); ++i)
        if (std::find(values.begin() + static_cast<std::ptrdiff_t>(i) + 1, values.end(), values[i]) != values.end())
            throw usage_error(name + ": the same value twice");
}

} // namespace

bool parse(int argc, char** argv, options& into) {
    CLI::App app("Trains one CNN in graph and in eager mode over several batch sizes, and compares time, memory and\n"
                 "what it learns. Writes batch_study.csv, batch_study_epochs.csv and charts (SVG) to the --out folder.",
                 "batch_study");
    app.get_formatter()->column_width(28);
    const auto between = [](auto low, auto high) { return CLI::Range(low, high).description(""); };
    app.add_option("--data", into.data,
                   "folder of 50x50 images (PNG, JPEG) of two classes: train/ and test/ with a folder per class\n"
                   "in each, or class folders alone, of which a fifth is held out; else a set is generated")
        ->type_name("DIR");
    app.add_option("--modes", into.modes, "graph, eager or both [graph,eager]")
        ->delimiter(',')
        ->type_name("LIST")
        ->check(CLI::IsMember({"graph", "eager"}).description(""));
    app.add_option("--batch-sizes", into.batch_sizes, "each 1 to 4096 [16,128]")
        ->delimiter(',')
        ->type_name("LIST")
        ->check(between(1, 4096));
    app.add_option("--epochs", into.epochs, "of each run [1 with --steps, else what fits about three minutes in all]")
        ->type_name("N")
        ->check(between(1, 1000000));
    app.add_option("--steps", into.steps, "stop each epoch after so many steps")
        ->type_name("N")
        ->check(between(1, 1000000000));
    app.add_option("--seed", into.seed, "of weights, dropout, order and generated images [1]")
        ->type_name("N")
        ->check(between(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
    std::string device = into.device.name();
    // A child is told once more, at the end, where its parent decided to compute.
    app.add_option("--device", device, "cpu, gpu, or cuda:N; without that GPU the CPU [cpu]")
        ->type_name("NAME")
        ->take_last();
    app.add_option("--threads", into.threads, "of the kernels [all]")->type_name("N")->check(between(1, 4096));
    app.add_option("--out", into.out, "folder of the results [results]")->type_name("DIR");
    app.add_option("--learning-rate", into.learning_rate, "[0.0003]")->type_name("X");
    app.add_option("--momentum", into.momentum, "0 is plain gradient descent [0.9]")->type_name("X");
    app.add_flag("--check-finite", into.check_finite, "end with an error when a step produces NaN or infinity");
    // A run happens in a process of its own, whose high-water mark of memory is then the run's. An empty group hides them.
    app.add_option("--row", into.only)->group("");
    app.add_option("--report-to", into.report_to)->group("");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        return false;
    } catch (const CLI::ParseError& e) {
        std::string text = e.what();
        std::replace(text.begin(), text.end(), '\n', ' ');
        throw usage_error(text + " (--help lists the options)");
    }
    try {
        into.device = tapegraph::device::parse(device);
    } catch (const tapegraph::argument_error& e) {
        throw usage_error(std::string("--device: ") + e.what());
    }
    if (into.modes.empty() || into.batch_sizes.empty()) throw usage_error("no mode or no batch size is left to run");
    if (!(into.learning_rate > 0 && into.learning_rate < 1e30)) throw usage_error("--learning-rate must be above 0");
    if (!(into.momentum >= 0 && into.momentum < 1)) throw usage_error("--momentum must be at least 0 and below 1");
    if (into.out.empty()) throw usage_error("--out: the name is empty");
    refuse_repeats(into.modes, "--modes");
    refuse_repeats(into.batch_sizes, "--batch-sizes");
    return true;
}

} // namespace batch_study
