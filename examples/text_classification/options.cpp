#include "options.hpp"

#include "../common/command_line.hpp"
#include "training.hpp"

#include <limits>

namespace text_classification {

bool parse(int argc, char** argv, options& into) {
    CLI::App app(
        "Trains a recurrent network to tell three kinds of texts apart: an embedding, an LSTM and two dense layers.\n"
        "Without --data the texts are sentences of a small grammar.",
        "text_classification");
    app.get_formatter()->column_width(28);
    using examples::between;
    app.add_option("--data", into.data, "CSV file with a header; a fifth of its rows is held out")->type_name("FILE");
    app.add_option("--text-column", into.text, "[text]")->type_name("NAME");
    app.add_option("--label-column", into.label, "[airline_sentiment]")->type_name("NAME");
    app.add_option("--sentences", into.sentences, "to generate where there is no --data [3000]")
        ->type_name("N")
        ->check(between(10, 10000000));
    app.add_option("--mode", into.mode, "graph or eager [graph]")
        ->type_name("NAME")
        ->check(examples::one_of({"graph", "eager"}));
    app.add_option("--epochs", into.epochs, "[2 with --data, else 15]")->type_name("N")->check(between(1, 1000000));
    app.add_option("--batch-size", into.batch_size, "[32]")->type_name("N")->check(between(1, 4096));
    app.add_option("--steps", into.steps, "stop each epoch after so many steps")
        ->type_name("N")
        ->check(between(1, 1000000000));
    app.add_option("--learning-rate", into.learning_rate, "of Adam [0.001]")->type_name("X");
    app.add_option("--seed", into.seed, "of weights, order, split and sentences [1]")
        ->type_name("N")
        ->check(between(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
    app.add_option("--max-length", into.max_length, "words of a text that are read; longer ones are cut [40]")
        ->type_name("N")
        ->check(between(1, 100000));
    app.add_flag("--refuse-long", into.refuse_long, "a longer text is an error that names its row");
    app.add_option("--max-tokens", into.max_tokens, "size of the vocabulary, at most that of the model [40691]")
        ->type_name("N")
        ->check(between(std::int64_t{3}, model_vocabulary));
    app.add_option("--save-vocabulary", into.vocabulary, "write it to this file, a word per line")->type_name("FILE");
    app.add_option("--threads", into.threads, "of the kernels [all]")->type_name("N")->check(between(1, 4096));
    if (!examples::parse(app, argc, argv)) return false;
    if (into.epochs == 0) into.epochs = into.data.empty() ? epochs_of_grammar : epochs_of_tables;
    if (!(into.learning_rate > 0 && into.learning_rate < 1e30))
        throw examples::usage_error("--learning-rate must be above 0");
    return true;
}

} // namespace text_classification
