#include "options.hpp"

#include "../common/command_line.hpp"

#include <charconv>

namespace batch_study {

std::vector<run_key> options::runs() const {
    std::vector<run_key> result;
    for (const std::int64_t size : batch_sizes)
        for (const std::string& mode : modes) result.push_back({mode, size});
    return result;
}

namespace {

constexpr std::int64_t largest_batch = 4096;

/// "16", or "all" for the powers of two.
std::vector<std::int64_t> sizes_of(const std::vector<std::string>& words) {
    std::vector<std::int64_t> sizes;
    for (const std::string& word : words) {
        std::int64_t size = 0;
        const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), size);
        if (word == "all") {
            for (std::int64_t power = 1; power <= largest_batch; power *= 2) sizes.push_back(power);
        } else if (failure != std::errc() || end != word.data() + word.size() || size < 1 || size > largest_batch) {
            throw study::usage_error("--batch-sizes: '" + word +
                                     "' is not a whole number from 1 to 4096 and not 'all'");
        } else {
            sizes.push_back(size);
        }
    }
    return sizes;
}

} // namespace

bool parse(int argc, char** argv, options& into) {
    using examples::between;
    CLI::App app("Trains one model in graph and in eager mode over several batch sizes, and compares time, memory and\n"
                 "what it learns. Writes batch_study.csv, .json, batch_study_epochs.csv and charts (SVG) to the --out\n"
                 "folder, those of the RNN as batch_study_rnn. What was interrupted goes on where it stopped.",
                 "batch_study");
    study::add_common_options(app, into);
    std::vector<std::string> sizes{"16", "128"};
    app.add_option("--model", into.model,
                   "cnn (two classes of images) or rnn (three classes of texts: embedding, LSTM, dense) [cnn]")
        ->type_name("NAME")
        ->check(examples::one_of({"cnn", "rnn"}));
    app.add_option("--data", into.data,
                   "cnn: folder of 50x50 images (PNG, JPEG) of two classes: train/ and test/ with a folder per class\n"
                   "in each, or class folders alone, of which a fifth is held out; rnn: CSV file with a header, of\n"
                   "which a fifth is held out; else a set is generated")
        ->type_name("PATH");
    app.add_option("--text-column", into.text_column, "of the CSV file [text]")->type_name("NAME");
    app.add_option("--label-column", into.label_column, "of the CSV file [airline_sentiment]")->type_name("NAME");
    app.add_option("--batch-sizes", sizes, "each 1 to 4096, or all: the powers of two from 1 to 4096 [16,128]")
        ->delimiter(',')
        ->type_name("LIST");
    app.add_option("--epochs", into.epochs, "of each run [1 with --steps, else what fits in --seconds]")
        ->type_name("N")
        ->check(between(1, 1000000));
    app.add_option("--steps", into.steps, "stop each epoch after so many steps")
        ->type_name("N")
        ->check(between(1, 1000000000));
    app.add_option("--seconds", into.seconds, "about how long all runs take, without --epochs and --steps [180]")
        ->type_name("X")
        ->check(between(1e-3, 1e9));
    app.add_option("--learning-rate", into.learning_rate, "[0.0003, rnn 0.05]")->type_name("X");
    app.add_option("--momentum", into.momentum, "0 is plain gradient descent [0.9]")->type_name("X");
    app.add_flag("--check-finite", into.check_finite, "end with an error when a step produces NaN or infinity");
    if (!study::parse(app, argc, argv, into)) return false;
    into.batch_sizes = sizes_of(sizes);
    if (into.batch_sizes.empty()) throw study::usage_error("--batch-sizes: none is left to run");
    study::refuse_repeats(into.batch_sizes, "--batch-sizes");
    if (app.count("--learning-rate") == 0) into.learning_rate = into.model == "cnn" ? 0.0003 : 0.05;
    if (!(into.learning_rate > 0 && into.learning_rate < 1e30))
        throw study::usage_error("--learning-rate must be above 0");
    if (!(into.momentum >= 0 && into.momentum < 1))
        throw study::usage_error("--momentum must be at least 0 and below 1");
    return true;
}

} // namespace batch_study
