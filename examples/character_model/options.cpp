#include "options.hpp"

#include "../common/command_line.hpp"

#include <limits>

namespace character_model {

bool parse(int argc, char** argv, options& into) {
    CLI::App app(
        "Trains an LSTM to foretell the next character of a text, and lets it write. The last tenth of the text is\n"
        "held out. Without --data the text is sentences of a small grammar.",
        "character_model");
    app.get_formatter()->column_width(28);
    using examples::between;
    app.add_option("--data", into.data, "text file (UTF-8)")->type_name("FILE");
    app.add_option("--mode", into.mode, "graph or eager [graph]")
        ->type_name("NAME")
        ->check(examples::one_of({"graph", "eager"}));
    app.add_option("--epochs", into.epochs, "[4]")->type_name("N")->check(between(1, 1000000));
    app.add_option("--batch-size", into.batch_size, "windows a step [32]")->type_name("N")->check(between(1, 4096));
    app.add_option("--steps", into.steps, "stop each epoch after so many steps")
        ->type_name("N")
        ->check(between(1, 1000000000));
    app.add_option("--length", into.length, "characters of a window [64]")->type_name("N")->check(between(1, 100000));
    app.add_option("--learning-rate", into.learning_rate, "of Adam [0.002]")->type_name("X");
    app.add_option("--seed", into.seed, "of weights, order, and what is written [1]")
        ->type_name("N")
        ->check(between(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
    app.add_option("--sample", into.sample, "characters to write [400]")->type_name("N")->check(between(0, 1000000));
    app.add_option("--temperature", into.temperature,
                   "0 always takes the likeliest character, 1 draws as foretold [0.7]")
        ->type_name("X");
    app.add_option("--prompt", into.prompt, "what the written text begins with [a line break]")->type_name("TEXT");
    app.add_option("--picture", into.picture, "SVG of what was written: the darker, the less likely")
        ->type_name("FILE");
    app.add_option("--threads", into.threads, "of the kernels [all]")->type_name("N")->check(between(1, 4096));
    if (!examples::parse(app, argc, argv)) return false;
    if (!(into.learning_rate > 0 && into.learning_rate < 1e30))
        throw examples::usage_error("--learning-rate must be above 0");
    if (!(into.temperature >= 0 && into.temperature < 1e30))
        throw examples::usage_error("--temperature must be at least 0");
    if (into.prompt.empty()) throw examples::usage_error("--prompt: at least one character is needed to begin with");
    return true;
}

} // namespace character_model
