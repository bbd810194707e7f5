/// The batch-size study: trains a CNN for images or an RNN for texts in both modes over several
/// batch sizes. `--help` lists the options; docs/studies.md explains more.

#include "data.hpp"
#include "options.hpp"
#include "report.hpp"
#include "run.hpp"

#include "../study/runner.hpp"

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

using namespace batch_study;
using study::json;

/// The child process: one run, with progress on stderr and the result sent to the parent.
json measure(const options& o) {
    const auto colon = o.only.find(':');
    const std::string mode = o.only.substr(0, colon);
    const std::int64_t size = std::atoll(o.only.c_str() + colon + 1);
    const training_sets sets = load(o);
    const bool graph = mode == "graph";
    const auto run =
        o.model == "cnn" ? (graph ? run_cnn_graph : run_cnn_eager) : (graph ? run_rnn_graph : run_rnn_eager);
    return row_of(run(o, size, sets));
}

/// The settings that rows of one table must share.
json configuration(const options& o, std::int64_t records) {
    json c{{"--model", o.model},
           {"--data", o.data},
           {"training records", records},
           {"--seed", o.seed},
           {"--threads", o.threads},
           {"--device", o.device.name()},
           {"--learning-rate", o.learning_rate},
           {"--momentum", o.momentum},
           {"--epochs", o.epochs},
           {"--steps", o.steps}};
    if (o.budgeted()) c["--seconds of a run"] = o.share();
    return c;
}

int run_all(options& o, int argc, char** argv) {
    // The parent reads the data as well, so that errors in it show before anything is trained.
    std::int64_t train_size = 0;
    {
        const training_sets sets = load(o);
        train_size = sets.train.size();
        std::cout << (o.model == "cnn" ? cnn_layers() : rnn_layers()) << '\n'
                  << sets.description << "\n\n"
                  << std::flush;
    }
    o.device = study::chosen_device(o.device);
    const std::string name = o.model == "cnn" ? "batch_study" : "batch_study_rnn";
    study::results all(o.out, name, configuration(o, train_size), columns(), o.fresh);
    const report table(all, name);
    for (const std::int64_t size : o.batch_sizes)
        if (size > train_size)
            std::cerr << "batch_study: batch size " << size << ": there are only " << train_size
                      << " training records, so every step has " << train_size << '\n';
    std::vector<study::planned_run> runs;
    for (const run_key& key : o.runs())
        runs.push_back({{{"model", o.model}, {"mode", key.mode}, {"batch_size", key.batch_size}},
                        key.word(),
                        key.mode + " mode, batch size " + std::to_string(key.batch_size)});
    std::cout << report::table_head() << std::flush;
    bool stopped_early = false;
    const bool whole = study::conduct("batch_study", o, argc, argv, runs, all, [&](const json& row) {
        std::cout << table.line(row) << '\n' << std::flush;
        stopped_early = stopped_early || row.value("stopped_early", false);
    });
    if (stopped_early) std::cout << "(epochs stopped early; seconds/epoch is for the whole training set)\n";
    std::cout << "\nwritten: " << table.finish() << '\n';
    return whole ? EXIT_SUCCESS : study::interrupted_status;
}

} // namespace

int main(int argc, char** argv) {
    return study::run_study("batch_study", [&] {
        options o;
        if (!parse(argc, argv, o)) return EXIT_SUCCESS;
        if (o.only.empty()) return run_all(o, argc, argv);
        study::serve(o, [&] { return measure(o); });
        return EXIT_SUCCESS;
    });
}
