#include "options.hpp"

#include "../common/command_line.hpp"

#include <algorithm>

namespace mode_study {

std::vector<cell> options::cells() const {
    std::vector<cell> all;
    for (const model_entry& m : all_models()) {
        if (!models.empty() && std::find(models.begin(), models.end(), m.name) == models.end()) continue;
        for (const std::int64_t length : m.lengths) {
            if (!lengths.empty() && std::find(lengths.begin(), lengths.end(), length) == lengths.end()) continue;
            for (const std::string& training : trainings)
                for (const std::string& source : sources)
                    for (const std::string& mode : modes) all.push_back({m.name, length, mode, training, source});
        }
    }
    return all;
}

bool parse(int argc, char** argv, options& into) {
    using examples::between;
    CLI::App app(
        "Times training steps of 1-D convolutional and recurrent models in graph and in eager mode, by\n"
        "train_on_batch and by fit, from arrays in memory and from a data set assembled ahead by a thread.\n"
        "Adam 1e-4, binary cross-entropy, generated series. Writes mode_study.csv, .json, .md and charts (SVG)\n"
        "to the --out folder. What was interrupted goes on where it stopped.",
        "mode_study");
    study::add_common_options(app, into);
    std::vector<std::string> names;
    for (const model_entry& m : all_models()) names.push_back(m.name);
    app.add_option("--models", into.models, "small, medium, large, recurrent_small, recurrent_medium [all]")
        ->delimiter(',')
        ->type_name("LIST")
        ->check(examples::one_of(names));
    app.add_option("--lengths", into.lengths,
                   "of a series: 140, 1400, 14000 of the convolutions, 400 of the recurrent pair [all]")
        ->delimiter(',')
        ->type_name("LIST")
        ->check(examples::one_of({"140", "400", "1400", "14000"}));
    app.add_option("--trainings", into.trainings, "train_on_batch, fit or both [train_on_batch,fit]")
        ->delimiter(',')
        ->type_name("LIST")
        ->check(examples::one_of({"train_on_batch", "fit"}));
    app.add_option("--sources", into.sources, "arrays, dataset or both [arrays,dataset]")
        ->delimiter(',')
        ->type_name("LIST")
        ->check(examples::one_of({"arrays", "dataset"}));
    app.add_option("--batch-size", into.batch_size, "[32]")->type_name("N")->check(between(1, 4096));
    app.add_option("--iterations", into.iterations, "that are timed in each cell [20]")
        ->type_name("N")
        ->check(between(1, 1000000));
    app.add_option("--warm-up", into.warm_up, "iterations before those [3]")
        ->type_name("N")
        ->check(between(1, 1000000));
    app.add_option("--seconds", into.seconds,
                   "time budget of a cell; where it is short, fewer iterations are timed [60]")
        ->type_name("X")
        ->check(between(1e-3, 1e9));
    if (!study::parse(app, argc, argv, into)) return false;
    study::refuse_repeats(into.models, "--models");
    study::refuse_repeats(into.lengths, "--lengths");
    study::refuse_repeats(into.trainings, "--trainings");
    study::refuse_repeats(into.sources, "--sources");
    for (const std::string& name : into.models) {
        const std::vector<std::int64_t>& has = find_model(name)->lengths;
        if (!into.lengths.empty() &&
            std::find_first_of(has.begin(), has.end(), into.lengths.begin(), into.lengths.end()) == has.end())
            throw study::usage_error("--models, --lengths: " + name + " has none of these lengths");
    }
    return true;
}

} // namespace mode_study
