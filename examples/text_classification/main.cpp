/// Classifies texts with a recurrent network. `--help` lists the options.

#include "../common/opinions.hpp"
#include "../common/program.hpp"
#include "options.hpp"
#include "training.hpp"

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/data/readers/text_table.hpp>
#include <tapegraph/data/text/vectorizer.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

namespace {

namespace data = tapegraph::data;
using text_classification::options;

data::labelled_texts load(const options& o) {
    if (o.data.empty()) return examples::opinion_sentences(o.sentences, o.seed);
    data::labelled_texts all = data::read_text_table(o.data, {.text = o.text, .label = o.label});
    if (all.class_names.size() != 3) {
        std::string names;
        for (std::size_t i = 0; i < std::min<std::size_t>(all.class_names.size(), 5); ++i)
            names.append(i == 0 ? "" : ", ").append(tapegraph::io::quoted_text(all.class_names[i]));
        throw tapegraph::data_error(all.origin + ": " + std::to_string(all.class_names.size()) +
                                    " classes in column '" + o.label + "' (" + names +
                                    (all.class_names.size() > 5 ? ", ..." : "") + "), the model tells three apart");
    }
    return all;
}

/// "'negative' 9178, 'neutral' 3099"
std::string class_counts(const data::labelled_texts& all) {
    std::string text;
    for (std::size_t c = 0; c < all.class_names.size(); ++c)
        text += (c == 0 ? "" : ", ") + tapegraph::io::quoted_text(all.class_names[c]) + " " +
                std::to_string(std::count(all.labels.begin(), all.labels.end(), static_cast<std::int32_t>(c)));
    return text;
}

/// The accuracy on the validation texts of always predicting the most frequent training class.
double majority_share(const data::split_texts& parts) {
    std::vector<std::int64_t> counts(parts.train.class_names.size());
    for (const auto label : parts.train.labels) ++counts[static_cast<std::size_t>(label)];
    const auto most = static_cast<std::int32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    return static_cast<double>(std::count(parts.validation.labels.begin(), parts.validation.labels.end(), most)) /
           static_cast<double>(parts.validation.size());
}

void run(const options& o) {
    const data::labelled_texts all = load(o);
    const data::split_texts parts = data::train_validation_split(all, o.seed, 0.2);
    // The vocabulary does not use the held-out texts: words that training does not contain are
    // unknown.
    data::text_vectorizer words({.max_tokens = o.max_tokens > 0 ? o.max_tokens : text_classification::model_vocabulary,
                                 .length = o.max_length,
                                 .truncate = !o.refuse_long});
    words.adapt(parts.train);
    if (!o.vocabulary.empty()) words.words().save(o.vocabulary);
    const text_classification::text_sets sets{data::make_dataset(parts.train, words),
                                              data::make_dataset(parts.validation, words)};
    const double majority = majority_share(parts);

    std::cout << text_classification::layer_table() << '\n'
              << sets.train.size() << " training and " << sets.validation.size() << " validation texts "
              << (o.data.empty() ? "of a generated grammar" : "from " + o.data) << ": " << class_counts(all) << '\n'
              << "vocabulary of " << words.words().size() << ", " << o.max_length << " words a text, batches of "
              << o.batch_size << ", " << o.mode << " mode, seed " << o.seed << '\n'
              << std::flush;
    const tapegraph::history h =
        o.mode == "graph" ? text_classification::train_graph(o, sets) : text_classification::train_eager(o, sets);
    std::cout << "\nepoch  seconds   train: loss  accuracy   validation: loss  accuracy\n";
    for (std::size_t i = 0; i < h.epochs.size(); ++i) {
        const tapegraph::epoch_result& e = h.epochs[i];
        std::printf("%5zu %8.1f %13.4f %9.4f %18.4f %9.4f\n", i + 1, e.seconds, e.loss, e.accuracy, e.validation_loss,
                    e.validation_accuracy);
    }
    std::printf("\nvalidation accuracy %.4f, the most frequent class alone %.4f\n", h.epochs.back().validation_accuracy,
                majority);
}

} // namespace

int main(int argc, char** argv) {
    return examples::run_program("text_classification", [&] {
        options o;
        if (!text_classification::parse(argc, argv, o)) return;
        if (o.threads > 0) tapegraph::set_thread_count(o.threads);
        run(o);
    });
}
