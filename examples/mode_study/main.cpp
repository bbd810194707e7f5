/// The mode study: measures training steps of five models in graph and in eager mode, by the length
/// of the series, the way of training and the source of the data. `--help` lists the options;
/// docs/studies.md explains more.

#include "measure.hpp"
#include "options.hpp"
#include "report.hpp"
#include "series.hpp"

#include "../study/runner.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace {

using namespace mode_study;
using study::json;

/// The child process: one cell.
json measure_cell(const options& o) {
    const cell c = cell::from_word(o.only);
    // Four batches alternate: enough that none stays in a cache, and few enough for memory.
    const series data = make_series(4 * o.batch_size, c.length, find_model(c.model)->channels, o.seed);
    const bool recurrent = c.model.starts_with("recurrent"), graph = c.mode == "graph";
    const auto run = recurrent ? (graph ? run_recurrent_graph : run_recurrent_eager)
                               : (graph ? run_convolution_graph : run_convolution_eager);
    try {
        return row_of(run(c, o, data), o);
    } catch (const tapegraph::shape_error& e) { // the model cannot take so short a series
        return {{"status", "ill-formed"}, {"note", e.what()}};
    }
}

/// The settings that cells of one table must share.
json configuration(const options& o) {
    return {{"--batch-size", o.batch_size},
            {"--iterations", o.iterations},
            {"--warm-up", o.warm_up},
            {"--seconds", o.seconds},
            {"--seed", o.seed},
            {"--threads", o.threads},
            {"--device", o.device.name()}};
}

int run_all(options& o, int argc, char** argv) {
    o.device = study::chosen_device(o.device);
    study::results all(o.out, "mode_study", configuration(o), columns(), o.fresh);
    std::vector<study::planned_run> runs;
    for (const cell& c : o.cells()) {
        // A step of 1e11 multiply-adds takes about as long as everything around the iterations of a
        // small one.
        const double work = 3 * static_cast<double>(o.batch_size * c.length) * find_model(c.model)->work;
        runs.push_back(
            {key_of(c), c.word(),
             c.model + ", L = " + std::to_string(c.length) + ", " + c.mode + ", " + c.training + ", " + c.source,
             1 + work * static_cast<double>(o.iterations + o.warm_up) / 1e11});
    }
    const bool whole = study::conduct("mode_study", o, argc, argv, runs, all, [&](const json& row) {
        const std::string size = std::to_string(row.at("length").get<std::int64_t>());
        std::cerr << "  " << study::text(row, "model") << ' ' << size << ' ' << study::text(row, "mode") << ' '
                  << study::text(row, "training") << ' ' << study::text(row, "source") << ": " << outcome(row, o)
                  << '\n';
    });
    std::cout << table(all, o) << '\n' << "written: " << write_reports(all, o) << '\n';
    return whole ? EXIT_SUCCESS : study::interrupted_status;
}

} // namespace

int main(int argc, char** argv) {
    return study::run_study("mode_study", [&] {
        options o;
        if (!parse(argc, argv, o)) return EXIT_SUCCESS;
        if (o.only.empty()) return run_all(o, argc, argv);
        study::serve(o, [&] { return measure_cell(o); });
        return EXIT_SUCCESS;
    });
}
