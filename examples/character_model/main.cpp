/// A language model of characters. `--help` lists the options.

#include "../common/opinions.hpp"
#include "../common/program.hpp"
#include "options.hpp"
#include "picture.hpp"
#include "training.hpp"

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/data/text/windows.hpp>
#include <tapegraph/formats/file.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace data = tapegraph::data;
using character_model::options;
using indices = std::vector<std::int32_t>;

std::string load(const options& o) {
    std::string text;
    if (o.data.empty()) {
        for (const std::string& sentence : examples::opinion_sentences(4000, o.seed).texts)
            text.append(sentence).append(".\n");
    } else {
        const auto bytes = tapegraph::io::read_file(o.data);
        text.assign(bytes.begin(), bytes.end());
        if (text.empty()) throw tapegraph::data_error("'" + o.data + "': empty file");
    }
    return text;
}

character_model::window_sets cut(const options& o, const indices& all, std::int64_t size) {
    const auto held = static_cast<std::ptrdiff_t>(all.size() / 10);
    if (held < o.length + 1)
        throw tapegraph::data_error((o.data.empty() ? "the generated text" : "'" + o.data + "'") + ": " +
                                    std::to_string(all.size()) +
                                    " characters; a tenth of them, which is held out, is no window of " +
                                    std::to_string(o.length) + " characters and one more");
    return {data::next_token_windows(indices(all.begin(), all.end() - held), size, o.length),
            data::next_token_windows(indices(all.end() - held, all.end()), size, o.length)};
}

void run(const options& o) {
    const std::string text = load(o);
    data::text_vectorizer characters(
        {.tokens = {.lower_case = false, .strip_punctuation = false, .unit = data::token_unit::character},
         .max_tokens = character_model::model_vocabulary});
    characters.adapt(std::vector<std::string>{text.substr(0, text.size() - text.size() / 10)});
    const data::vocabulary& known = characters.words();
    const indices all = characters.indices_of(text), prompt = characters.indices_of(o.prompt);
    if (std::find(prompt.begin(), prompt.end(), data::vocabulary::unknown) != prompt.end())
        throw tapegraph::data_error("--prompt: " + tapegraph::io::quoted_text(o.prompt) +
                                    " has characters that the text does not have");
    const character_model::window_sets sets = cut(o, all, known.size());

    std::cout << character_model::layer_table() << '\n'
              << all.size() << " characters " << (o.data.empty() ? "of a generated grammar" : "from " + o.data) << ", "
              << known.words().size() << " different ones, "
              << std::count(all.begin(), all.end(), data::vocabulary::unknown) << " unknown; windows of " << o.length
              << ", " << sets.train.size() << " for training and " << sets.validation.size() << " for validation\n"
              << "batches of " << o.batch_size << ", " << o.mode << " mode, seed " << o.seed << '\n'
              << std::flush;
    const character_model::result r =
        (o.mode == "graph" ? character_model::train_graph : character_model::train_eager)(o, sets, known, prompt);
    std::cout << "\nepoch  seconds   nats per character: training  validation   validation accuracy\n";
    for (std::size_t i = 0; i < r.epochs.epochs.size(); ++i) {
        const tapegraph::epoch_result& e = r.epochs.epochs[i];
        std::printf("%5zu %8.1f %30.4f %11.4f %21.4f\n", i + 1, e.seconds, e.loss, e.validation_loss,
                    e.validation_accuracy);
    }
    const double nats = r.epochs.epochs.back().validation_loss;
    std::printf("\nheld out: %.4f nats per character, perplexity %.2f\n", nats, std::exp(nats));
    if (o.sample > 0) {
        std::cout << "\nwritten at temperature " << o.temperature << ":\n\n";
        for (const character_model::written_character& each : r.written) std::cout << each.text;
        std::cout << '\n';
    }
    if (!o.picture.empty()) {
        const std::string svg = character_model::svg_of(r.written, "What the model writes: darker is less likely");
        tapegraph::io::atomic_file out(o.picture);
        out.write(svg);
        out.commit();
    }
}

} // namespace

int main(int argc, char** argv) {
    return examples::run_program("character_model", [&] {
        options o;
        if (!character_model::parse(argc, argv, o)) return;
        if (o.threads > 0) tapegraph::set_thread_count(o.threads);
        run(o);
    });
}
