#include "options.hpp"

#include "../common/command_line.hpp"

#include <limits>

namespace study {

void add_common_options(CLI::App& app, common_options& into) {
    app.get_formatter()->column_width(28);
    const CLI::Validator bytes(
        [](std::string& text) {
            return text.starts_with('-') ? text + " is not above 0" : CLI::AsSizeValue(false)(text);
        },
        "");
    app.add_option("--modes", into.modes, "graph, eager or both [graph,eager]")
        ->delimiter(',')
        ->type_name("LIST")
        ->check(examples::one_of({"graph", "eager"}));
    app.add_option("--seed", into.seed, "of weights, dropout, order and generated data [1]")
        ->type_name("N")
        ->check(examples::between(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
    // A child receives the device once more, at the end, where its parent decided to compute.
    app.add_option("--device", into.device_name, "cpu, gpu, or cuda:N; without that GPU the CPU [cpu]")
        ->type_name("NAME")
        ->take_last();
    app.add_option("--threads", into.threads, "of the kernels [all]")
        ->type_name("N")
        ->check(examples::between(1, 4096));
    app.add_option("--memory-limit", into.memory_limit,
                   "bytes for the tensors and programs of a run, as 800M or 16G; a run that needs more is\n"
                   "reported and left out [what the machine has free when the run begins]")
        ->type_name("SIZE")
        ->transform(bytes);
    app.add_option("--out", into.out, "folder of the results [results]")->type_name("DIR");
    app.add_flag("--fresh", into.fresh,
                 "forget the results in that folder; else runs that stand there are not repeated");
    // Each run has a process of its own, so that the process's high-water mark of memory is that of
    // the run. An empty group hides the options.
    app.add_option("--row", into.only)->group("");
    app.add_option("--report-to", into.report_to)->group("");
}

bool parse(CLI::App& app, int argc, char** argv, common_options& into) {
    if (!examples::parse(app, argc, argv)) return false;
    try {
        into.device = tapegraph::device::parse(into.device_name);
    } catch (const tapegraph::argument_error& e) {
        throw usage_error(std::string("--device: ") + e.what());
    }
    if (into.modes.empty()) throw usage_error("--modes: no mode is left to run");
    if (into.out.empty()) throw usage_error("--out: the name is empty");
    if (app.count("--memory-limit") > 0 && into.memory_limit == 0) throw usage_error("--memory-limit must be above 0");
    refuse_repeats(into.modes, "--modes");
    return true;
}

} // namespace study
